"""The names of platform and users' servers: which are taken, which are refused, and that no two users share one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.settings import Settings, SettingsError
from mlp_hub.settings.origins import Origins, label


def origins(**environ: str) -> Origins:
    return Settings.load({f"MLP_{key.upper()}": value for key, value in environ.items()}).origins


def test_on_one_machine_each_user_has_a_name_below_localhost() -> None:
    found = origins(port="9000")
    assert (found.platform, found.of_user("ann")) == ("http://localhost:9000", "ann.localhost")
    assert found.cookie("x") == "__Host-x", "browsers take localhost for as safe as TLS"


def test_behind_a_domain_users_have_a_second_one() -> None:
    found = origins(public_url="https://Hub.example.org/", users_domain="hub-users.example.org")
    assert (found.platform, found.host) == ("https://hub.example.org", "hub.example.org")
    assert found.of_user("ann") == "ann.hub-users.example.org"
    assert found.guarded_cookies


def test_without_tls_behind_a_domain_browsers_keep_no_host_cookies() -> None:
    found = origins(public_url="http://hub.lan:8000", users_domain="users.lan")
    assert found.apart
    assert found.cookie("x") == "x"


def test_a_single_name_for_all_servers_is_available_on_request() -> None:
    found = origins(users_domain="none")
    assert (found.apart, found.users, found.cookie("x")) == (False, "", "x")
    assert not origins(public_url="https://hub.example.org", users_domain="none").apart


def test_a_hub_with_a_certificate_is_reached_over_tls() -> None:
    assert origins(tls_cert="/c.pem").platform == "https://localhost:8000"
    assert origins(tls_cert="/c.pem", users_domain="none").platform == "https://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("environ", "platform"),
    [
        ({"bind": "::"}, "http://[::1]:8000"),
        ({"bind": "2001:db8::5", "port": "80"}, "http://[2001:db8::5]:80"),
        ({"public_url": "https://[2001:DB8::5]:8443/"}, "https://[2001:db8::5]:8443"),
        ({"public_url": "https://10.0.0.5"}, "https://10.0.0.5"),
    ],
)
def test_one_name_for_all_may_be_an_address(environ: dict[str, str], platform: str) -> None:
    assert origins(users_domain="none", **environ).platform == platform


@pytest.mark.parametrize(
    ("environ", "word"),
    [
        ({"public_url": "https://hub.example.org"}, "MLP_USERS_DOMAIN is not set"),
        (
            {"public_url": "https://hub.example.org", "users_domain": "hub.example.org"},
            "neither may be the other",
        ),
        ({"public_url": "https://hub.example.org", "users_domain": "users.hub.example.org"}, "or below it"),
        ({"public_url": "https://hub.example.org", "users_domain": "example.org"}, "or below it"),
        ({"public_url": "http://hub.localhost:8000", "users_domain": "localhost"}, "or below it"),
        (
            {"public_url": "https://hub.example.org/jh/", "users_domain": "u.org"},
            "address of the platform's pages",
        ),
        ({"public_url": "hub.example.org", "users_domain": "u.org"}, "address of the platform's pages"),
        ({"public_url": "https://a:b@hub.org", "users_domain": "u.org"}, "address of the platform's pages"),
        ({"public_url": "https://hub.org:0", "users_domain": "u.org"}, "address of the platform's pages"),
        ({"public_url": "https://hub.org:x", "users_domain": "u.org"}, "address of the platform's pages"),
        ({"public_url": "http://10.0.0.5:8000", "users_domain": "u.org"}, "need a name"),
        ({"public_url": "http://[2001:db8::5]:8000", "users_domain": "u.org"}, "need a name"),
        ({"public_url": "http://[2001:db8::5", "users_domain": "none"}, "address of the platform's pages"),
        ({"public_url": "http://[hub]/", "users_domain": "none"}, "address of the platform's pages"),
        ({"public_url": "http://localhost:80", "tls_cert": "/c.pem"}, "begin it with https"),
        ({"tls_key": "/k.pem"}, "MLP_TLS_KEY is set, and MLP_TLS_CERT is not"),
        ({"users_domain": "*.u.org"}, "must be a domain"),
        ({"users_domain": "10.0.0.5"}, "must be a domain"),
        ({"bind": "10.0.0.5"}, "MLP_PUBLIC_URL"),
    ],
)
def test_names_that_cannot_be_meant_fail_the_start_and_say_what_would_be_right(
    environ: dict[str, str], word: str
) -> None:
    with pytest.raises(SettingsError, match=re.escape(word)):
        origins(**environ)


NAMES = st.one_of(
    st.text(min_size=1, max_size=80),
    st.text(alphabet="ann-_.AN1\u0130\u212a", min_size=1, max_size=12),
    st.from_regex(r"\Au-[a-z]{1,3}--[a-z2-7]{26}\Z"),
)


@given(NAMES)
def test_every_name_has_a_label_that_a_host_may_have(name: str) -> None:
    found = label(name)
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", found)
    assert len(found) <= 63
    assert found[2:4] != "--", "kept for names in other alphabets"


@given(NAMES, NAMES)
def test_no_two_names_share_a_label_in_whatever_case(one: str, other: str) -> None:
    assert (label(one) == label(other)) == (one == other)


@pytest.mark.parametrize("other", ["ANN", "ann.", "ann_", "a.nn", "u-ann--x", "ann--ann", "\uff41nn"])
def test_look_alikes_of_a_plain_name_get_another_label(other: str) -> None:
    assert label("ann") == "ann"
    assert label(other).startswith("u-")


def test_a_label_shows_its_user_even_if_it_cannot_contain_the_whole_name() -> None:
    assert label("ann.smith").startswith("u-annsmith--")
    assert label("a" * 41).startswith("u-aaaa")


@pytest.mark.parametrize(
    ("path", "base"),
    [("/", ""), ("/mlp/", "/mlp"), ("/mlp", "/mlp"), ("/a-b/c_d.e/", "/a-b/c_d.e"), ("", "")],
)
def test_all_of_the_hub_may_be_below_a_path(path: str, base: str) -> None:
    settings = Settings.load({"MLP_BASE_PATH": path})
    assert (settings.base, settings.url) == (base, f"http://localhost:8000{base}/")


@pytest.mark.parametrize(
    "path",
    [
        "mlp/",
        "//mlp/",
        "/mlp//x",
        "/../x",
        "/./",
        "/mlp/..",
        "/m%20lp",
        "/m lp",
        "/mlp?x",
        "/mlp#x",
        "/\\evil",
        "/mlp\r\nX: y",
        "https://hub.example.org/mlp/",
        "/hub/",
        "/user",
        "/services/mlp",
    ],
)
def test_a_path_that_cannot_be_meant_fails_the_start(path: str) -> None:
    with pytest.raises(SettingsError, match=r"MLP_BASE_PATH is .*as /mlp/"):
        Settings.load({"MLP_BASE_PATH": path})
