"""One-time codes of `mlp login`: what they are bound to, how long and how often they are good."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mlp_hub.hub_integration.tokens.cli_codes import (
    BROUGHT_S,
    KEPT,
    KEPT_OF_ONE,
    TYPED_S,
    Asked,
    Codes,
    Wrong,
    challenge_of,
    is_loopback,
)

VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
BACK = "http://127.0.0.1:5000/"
BROUGHT = Asked(challenge_of(VERIFIER), "laptop", BACK, "s" * 43)
TYPED = Asked(challenge_of(VERIFIER), "laptop")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def codes(clock: Clock) -> Codes:
    return Codes(clock)


def test_the_challenge_is_that_of_the_standard() -> None:
    # RFC 7636, appendix B
    assert challenge_of(VERIFIER) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_a_code_is_good_once(codes: Codes) -> None:
    code = codes.make("ann", "c1", BROUGHT)
    assert codes.redeem_code(code, VERIFIER, BACK).user == "ann"
    with pytest.raises(Wrong):
        codes.redeem_code(code, VERIFIER, BACK)


@pytest.mark.parametrize(
    ("verifier", "back"), [("", BACK), ("x" * 43, BACK), (VERIFIER, ""), (VERIFIER, "http://127.0.0.1:5001/")]
)
def test_a_code_that_is_shown_with_anything_wrong_is_spent(codes: Codes, verifier: str, back: str) -> None:
    code = codes.make("ann", "c1", BROUGHT)
    for tried in ((verifier, back), (VERIFIER, BACK)):
        with pytest.raises(Wrong):
            codes.redeem_code(code, *tried)


@pytest.mark.parametrize(("asked", "lasts"), [(BROUGHT, BROUGHT_S), (TYPED, TYPED_S)])
def test_a_code_holds_for_its_time(codes: Codes, clock: Clock, asked: Asked, lasts: float) -> None:
    early, late = codes.make("ann", "c1", asked), codes.make("ann", "c1", asked)
    clock.now += lasts - 0.1
    assert codes.redeem_code(early, VERIFIER, asked.redirect_uri)
    clock.now += 0.1
    with pytest.raises(Wrong):
        codes.redeem_code(late, VERIFIER, asked.redirect_uri)


def test_requesting_many_codes_displaces_only_the_users_own_codes(codes: Codes) -> None:
    others = codes.make("bob", "c2", BROUGHT)
    mine = [codes.make("ann", "c1", BROUGHT) for _ in range(KEPT_OF_ONE + 1)]
    with pytest.raises(Wrong):
        codes.redeem_code(mine[0], VERIFIER, BACK)
    assert codes.redeem_code(mine[1], VERIFIER, BACK).user == "ann"
    assert codes.redeem_code(others, VERIFIER, BACK).user == "bob"


def test_no_more_codes_are_kept_than_there_is_room_for(codes: Codes) -> None:
    made = [codes.make(f"user{n}", "c", BROUGHT) for n in range(KEPT + 1)]
    with pytest.raises(Wrong):
        codes.redeem_code(made[0], VERIFIER, BACK)
    assert codes.redeem_code(made[-1], VERIFIER, BACK)


@pytest.mark.parametrize("uri", ["http://127.0.0.1:1/", "http://127.0.0.1:65535/", "http://[::1]:8080/"])
def test_a_port_of_this_machine(uri: str) -> None:
    assert is_loopback(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "http://localhost:80/", "https://127.0.0.1:80/", "http://127.0.0.1/", "http://127.0.0.1:0/",
        "http://127.0.0.1:65536/", "http://127.0.0.1:80", "http://127.0.0.1:80/x", "http://127.0.0.1:80/?a",
        "http://127.0.0.1:80/#a", "http://127.0.0.1:80/\n", "http://a@127.0.0.1:80/", "http://127.0.0.2:80/",
        "http://127.1:80/", "http://[::]:80/", "HTTP://127.0.0.1:80/", " http://127.0.0.1:80/", "http://１27.0.0.1:80/",
        "http://127.0.0.1:80\\@evil.example/", "http://127.0.0.1:８0/",
    ],
)  # fmt: skip
def test_no_port_of_this_machine(uri: str) -> None:
    assert not is_loopback(uri)


def fields(**given: str) -> Callable[[str], str]:
    right = {
        "challenge": challenge_of(VERIFIER),
        "machine": "laptop",
        "redirect_uri": BACK,
        "state": "s" * 43,
    }
    return lambda name: {**right, **given}.get(name, "")


def test_a_valid_request_is_parsed() -> None:
    assert Asked.from_fields(fields()) == BROUGHT
    assert Asked.from_fields(fields(redirect_uri="", state="")) == TYPED
    assert Asked.from_fields(fields(days="365")).days == 365


@pytest.mark.parametrize("days", ["0", "366", "-1", "1.5", "1e3", "٣", "9" * 5000])
def test_a_time_that_no_token_may_have_is_refused(days: str) -> None:
    with pytest.raises(Wrong) as wrong:
        Asked.from_fields(fields(days=days))
    assert "1 to 365 days" in str(wrong.value.message)
