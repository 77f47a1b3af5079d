"""Requests that are too big, too deep, malformed, or too many; and a hub that is down."""

from __future__ import annotations

import gc
import json
import logging
import re
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.api.edge.limits import Rate
from mlp_hub.logs.lines import JsonLines
from support.rigs.api_rig import PLENTY, Answer, ApiRig
from support.waiting import PATIENCE_S

BIG = "x" * 10_000_000


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps({"name": BIG, "code": "x"}).encode(),
        json.dumps({"name": "a", "code": BIG}).encode(),
        b"[" * 1_900_000,
        b'{"name":"a","code":"x","args":' + b"[" * 500_000 + b"]" * 500_000 + b"}",
        b'{"name":"a","code":"x","env":' + b'{"A":' * 300_000,
        b'{"name":"a","code":"x","cpu":NaN}',
        b'{"name":"a","code":"x","cpu":Infinity}',
        b'{"name":"a","code":"x","cpu":-Infinity}',
        b'{"name":"a","code":"x","cpu":1e999}',
        b'{"name":"a","code":"x","cpu":-1}',
        b'{"name":"a","code":"x","ram":' + b"9" * 5000 + b"}",
        b'{"name":"a","code":"x","ram":-5}',
        b'{"name":"a","code":"x","params":{"lr":' + b"9" * 400 + b"}}",
        b'{"name":"a","code":"x","params":{"lr":9223372036854775808}}',
        b'{"name":"a","code":"\\ud800"}',
        b'{"name":"a\xff","code":"x"}',
        b"\xff\xfe",
        b"",
        b"null",
        b"[]",
        b'"x"',
        b'{"name":"a","code":"x"}garbage',
    ],
)
def test_a_body_that_cannot_be_is_refused_with_a_short_answer(rig: ApiRig, raw: bytes) -> None:
    answer = rig.ask("POST", "/users/ann/jobs", raw=raw, token=rig.ann)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")
    assert len(answer.body) < 1000
    assert rig.ask("GET", "/health").status == 200


def test_a_big_body_of_nobody_is_answered_with_401(rig: ApiRig) -> None:
    assert rig.ask("POST", "/users/ann/jobs", raw=BIG.encode()).status == 401


def test_big_names_in_paths_and_queries_are_refused_with_a_short_answer(rig: ApiRig) -> None:
    for path in (
        f"/users/ann/jobs/{BIG[:20_000]}",
        f"/users/{BIG[:20_000]}/jobs",
        f"/users/ann/jobs?cursor={BIG[:20_000]}",
    ):
        answer = rig.ask("GET", path, token=rig.ann)
        assert answer.status == 403
        assert len(answer.body) < 1000


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=x", "limit=1&limit=2", "nope=1", "limit=1e9", "state=done", "limit=%ff", "=", "limit"],
)
def test_a_query_that_is_unknown_repeated_or_wrong_is_refused(rig: ApiRig, query: str) -> None:
    answer = rig.ask("GET", f"/users/ann/jobs?{query}", token=rig.ann)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")


TRICKS = [
    "..",
    "%2e%2e",
    "%252e%252e",
    ".%2e",
    "..%2f..%2fadmin",
    "..%5c..",
    "digits;x",
    "digits%3bx",
    "digits%00",
    "%00",
    "digits%0a",
    "digits%0d%0aX-A:%20b",
    "%ff",
    "digits%2F",
    "/digits",
    "digits/",
    "DIGITS",
    "digits%20",
    "%EF%BD%84igits",
    "digits%3Acancel",
    "digits:nope",
    ":cancel",
]


@pytest.mark.parametrize("trick", TRICKS)
def test_no_spelling_of_a_path_reaches_what_it_should_not(rig: ApiRig, trick: str) -> None:
    answer = rig.ask("GET", f"/users/ann/jobs/{trick}", token=rig.ann)
    assert (answer.status, answer.json["reason"]) == (403, "NotFound")
    for user in (trick, f"ann{trick}"):
        assert rig.ask("GET", f"/users/{user}/jobs/digits", token=rig.ann).status == 403


@pytest.mark.parametrize(
    "trick", ["/health/../users/ann/jobs", "/health/%2e%2e/nodes", "//health", "/health/", "/v2", "/"]
)
def test_a_path_beside_the_table_is_refused(rig: ApiRig, trick: str) -> None:
    assert rig.ask("GET", trick).status == 401
    assert rig.ask("GET", trick, token=rig.ann).json["reason"] == "NotFound"


@pytest.mark.parametrize("method", ["PATCH", "OPTIONS", "TRACE", "HEAD", "PROPFIND", "POST"])
def test_a_method_beside_the_table_is_refused(rig: ApiRig, method: str) -> None:
    assert rig.ask(method, "/users/ann/jobs/digits").status == 401
    assert rig.ask(method, "/users/ann/jobs/digits", token=rig.ann).status == 403


@pytest.mark.parametrize(
    "header",
    [
        "Basic YW5uOng=",
        "Bearer",
        "Bearer ",
        "ann-token",
        "Bearer ann-token x",
        f"Bearer {'x' * 5000}",
        "Bearer \u00e9",
    ],
)
def test_an_invalid_bearer_token_is_401(rig: ApiRig, header: str) -> None:
    assert rig.ask("GET", "/auth", headers={"Authorization": header}).status == 401


def test_an_idempotency_key_that_cannot_be_is_refused(rig: ApiRig) -> None:
    body = {"name": "a", "code": "x"}
    for key in ("a b", "x" * 256, "\u00e9"):
        answer = rig.ask("POST", "/users/ann/jobs", body, token=rig.ann, headers={"Idempotency-Key": key})
        assert answer.json["reason"] == "Invalid"


def test_metrics_that_cannot_be_are_refused_and_a_full_batch_is_taken(rig: ApiRig) -> None:
    path = "/users/ann/job_metrics/digits"
    for raw in (
        b'{"source":"0.0.a","points":[{"n":1,"t":1,"v":{"a":NaN}}]}',
        b'{"source":"0.0.a","points":[{"n":0,"t":1,"v":{"a":1}}]}',
        b'{"source":"0.0.a","points":[{"n":1,"t":1,"v":{"a":"x"}}]}',
        b'{"source":"../x","points":[]}',
        json.dumps(
            {"source": "0.0.a", "points": [{"n": 1, "t": 1, "v": {str(i): 1 for i in range(101)}}]}
        ).encode(),
    ):
        assert rig.ask("POST", path, raw=raw, token=rig.ann).json["reason"] == "Invalid"
    points = [{"n": n, "t": n, "v": {"loss": 0.5}} for n in range(1, 20_001)]
    answer = rig.ask("POST", path, {"source": "0.0.full", "points": points}, token=rig.ann)
    assert (answer.status, answer.json) == (200, {"last": 20_000})


def test_a_slow_clients_stream_does_not_hold_up_others(rig: ApiRig) -> None:
    with rig.socket("/users/ann/jobs/digits:stream", token=rig.ann):
        # nothing is read from it; the point arrives elsewhere all the same
        point = {"source": "0.0.slow", "points": [{"n": 1, "t": 1, "v": {"slow": 1}}]}
        assert rig.ask("POST", "/users/ann/job_metrics/digits", point, token=rig.ann).status == 200


class TestLimits:
    """Each with its own service, because what is used up stays so."""

    @pytest.fixture
    def few(self, tmp_path: Path) -> Iterator[ApiRig]:
        rates = {**PLENTY, "api": Rate(0.01, 3), "unknown-token": Rate(0.01, 5), "signup": Rate(0.01, 2)}
        with ApiRig(tmp_path, rates=rates) as rig:
            yield rig

    def test_a_caller_with_too_many_requests_gets_a_retry_time_and_others_are_unaffected(
        self, few: ApiRig
    ) -> None:
        statuses = [few.ask("GET", "/auth", token=few.ann).status for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        refused = few.ask("GET", "/auth", token=few.ann)
        assert 1 <= int(refused.headers["retry-after"]) <= 100
        assert few.ask("GET", "/auth", token=few.bob).status == 200

    def test_guessing_tokens_is_slowed_without_asking_the_hub(self, few: ApiRig) -> None:
        statuses = [
            few.ask("GET", "/auth", token=f"guess-{n}", headers={"X-Forwarded-For": "9.9.9.9"}).status
            for n in range(7)
        ]
        assert statuses == [401] * 5 + [429] * 2
        assert len([r for r in few.hub.requests if r == "GET /hub/api/user"]) == 5
        assert few.ask("GET", "/auth", token=few.ann).status == 200

    def test_signing_up_is_limited_per_address(self, few: ApiRig) -> None:
        def sign_up(n: int, address: str) -> int:
            body = {"username": f"u{n}", "password": "long enough"}
            return few.ask(
                "POST", "/users", body, headers={"X-Forwarded-For": f"1.2.3.{n}, {address}"}
            ).status

        # the first addresses of the header are the caller's own words
        assert [sign_up(n, "9.9.9.9") for n in range(3)] == [201, 201, 429]
        assert sign_up(9, "8.8.8.8") == 201

    def test_audited_changes_are_limited_per_person_but_not_for_platform_admins(self, tmp_path: Path) -> None:
        with ApiRig(tmp_path, rates={**PLENTY, "change": Rate(0.01, 3)}) as rig:
            rig.tenant("red", "rita", members=("ann",))

            def change(who: str, role: str) -> Answer:
                return rig.ask("PUT", "/tenants/red/members/ann", {"role": role}, token=who)

            answers = [change(rig.rita, ("admin", "member")[n % 2]) for n in range(5)]
            assert [a.status for a in answers] == [200, 200, 200, 429, 429]
            assert 1 <= int(answers[-1].headers["retry-after"]) <= 100
            assert rig.ask("GET", "/tenants/red", token=rig.rita).status == 200, "looking goes on"
            assert {change(rig.root_user, "member").status for _ in range(9)} == {200}
            assert rig.ask("GET", "/tenants/red/members/ann", token=rig.rita).json["role"] == "member"

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("PUT", "/users/ann/jobs/x:keep", {"hours": 1}),
            ("PUT", "/users/ann/idle_servers:keep", {"hours": 1}),
            ("PUT", "/users/ann/apps/x:scale", {"replicas": 1}),
            ("PUT", "/users/ann/models/x@1:stage", {"stage": "production"}),
            ("PUT", "/users/ann/secrets/x", {"values": {"A": "b"}}),
            ("DELETE", "/users/ann/secrets/x", None),
        ],
    )
    def test_no_change_to_and_fro_fills_the_audit_log(
        self, tmp_path: Path, method: str, path: str, body: dict[str, Any] | None
    ) -> None:
        """Each repetition is a link of the chain, which is shipped: hundreds a second would bury the others."""
        with ApiRig(tmp_path, rates={**PLENTY, "change": Rate(0.001, 3)}) as rig:
            rig.tenant("red", "rita", members=("ann",))
            answers = [rig.ask(method, path, body, token=rig.ann) for _ in range(5)]
            assert [one.status for one in answers[3:]] == [429, 429], path
            assert 429 not in {one.status for one in answers[:3]}


def test_a_hub_that_is_down_means_503_instead_of_401_and_known_callers_continue_for_a_moment(
    tmp_path: Path,
) -> None:
    with ApiRig(tmp_path) as rig:
        rig.job("ann", "digits", rig.ann)
        uid = rig.ask("GET", "/users/ann/jobs/digits", token=rig.ann).json["uid"]
        token = rig.job_token(uid)
        rig.hub.down = True
        assert rig.ask("GET", "/auth", token=rig.ann).status == 200
        unknown = rig.ask("GET", "/auth", token=rig.bob)
        assert unknown.status == 503
        assert "hub does not answer" in unknown.json["msg"]
        # a job's own token does not need the hub
        with rig.socket("/users/ann/jobs/digits:stream", token=rig.ann) as socket:
            time.sleep(0.5)
            batch = {"source": "0.0.a", "points": []}
            assert rig.ask("POST", "/users/ann/job_metrics/digits", batch, token=token).status == 200
            rig.hub.down = False
            assert socket.recv(PATIENCE_S)


def test_a_fault_is_503_without_its_details(rig: ApiRig, caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> None:
        raise RuntimeError("secret detail")

    nodes = rig.platform.nodes
    kept = nodes.list
    nodes.list = broken  # type: ignore[method-assign,assignment]
    try:
        answer = rig.ask("GET", "/nodes", token=rig.root_user)
    finally:
        nodes.list = kept  # type: ignore[method-assign]
    assert (answer.status, list(answer.json)) == (503, ["msg", "detail", "request_id"])
    assert b"secret" not in answer.body
    assert "secret detail" in caplog.text


@pytest.mark.parametrize("proxy", [True, False], ids=["proxy", "sandbox"])
def test_an_error_names_its_request_and_a_sandbox_cannot_choose_the_name(rig: ApiRig, proxy: bool) -> None:
    for path, token in (("/users/ann/jobs/none", rig.ann), ("/users/ann/jobs", None), ("/none", rig.ann)):
        given = {"X-Request-ID": "of-somebody-else"}
        answer = rig.ask("GET", path, token=token, headers=given, proxy=proxy)
        assert answer.status in (401, 403)
        assert answer.json["request_id"] == answer.headers["x-request-id"]
        assert (answer.json["request_id"] == "of-somebody-else") is proxy


@pytest.mark.parametrize(
    "given",
    ["", "short", "x" * 65, "x" * 10_000, "a b c d e f", "-abcdefgh", 'abc"}{"msg": 1', "abcdefgh\x1b[2J"],
    ids=["empty", "short", "long", "10 kB", "blanks", "dash", "JSON", "escape"],
)
def test_a_bad_id_of_a_request_is_replaced(rig: ApiRig, given: str) -> None:
    answer = rig.ask("GET", "/users/ann/jobs/none", token=rig.ann, headers={"X-Request-ID": given})
    # a control character ends the request before anybody reads it
    assert answer.status in (400, 403)
    if answer.status == 403:
        assert re.fullmatch("[0-9a-f]{16}", answer.json["request_id"])
        assert re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"])


def test_a_page_of_the_service_names_its_request(rig: ApiRig) -> None:
    given = {"X-Request-ID": "of-a-browser"}
    answer = rig.ask("GET", "/oauth_callback", headers=given, base="/services/mlp")
    assert b"Request of-a-browser" in answer.body, answer.body


def test_the_log_of_a_fault_has_the_id_and_who_asked(rig: ApiRig) -> None:
    lines: list[dict[str, str]] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(JsonLines().format(record)))

    async def broken() -> None:
        raise RuntimeError("broken")

    keeping = Keeping()
    nodes = rig.platform.nodes
    kept = nodes.list
    logging.getLogger("mlp_hub").addHandler(keeping)
    nodes.list = broken  # type: ignore[method-assign,assignment]
    try:
        given = {"X-Request-ID": "of-an-operator"}
        answer = rig.ask("GET", "/nodes", token=rig.root_user, headers=given)
    finally:
        nodes.list = kept  # type: ignore[method-assign]
        logging.getLogger("mlp_hub").removeHandler(keeping)
    assert answer.json["request_id"] == "of-an-operator"
    (line,) = [one for one in lines if "broken" in one.get("exception", "")]
    assert (line["request_id"], line["user"], line["level"]) == ("of-an-operator", "admin", "error")


def test_a_job_keeps_the_id_of_the_request_that_submitted_it(rig: ApiRig) -> None:
    body = {"name": "traced", "code": "x", "cpu": 0.1, "ram": 100, "env": {"SIM_DURATION": "86400"}}
    given = {"X-Request-ID": "of-the-submit"}
    answer = rig.ask("POST", "/users/ann/jobs", body, token=rig.ann, headers=given)
    assert answer.status == 201, answer.body
    (job,) = [one for one in rig.platform.board.jobs.values() if one.spec.name == "traced"]
    assert job.spec.request_id == "of-the-submit"
    assert "request_id" not in answer.json
    assert rig.ask("PUT", "/users/ann/jobs/traced:cancel", token=rig.ann).status == 200


def test_refused_programs_leave_nothing_in_memory(rig: ApiRig) -> None:
    body = {"name": "digits", "code": "#" + "x" * 1_000_000}  # a name that ann's job has
    rig.ask("POST", "/users/ann/jobs", body, token=rig.ann)
    gc.collect()
    gc.disable()  # a service with a large backlog collects so rarely that it may as well not do it
    tracemalloc.start()
    try:
        for _ in range(20):
            answer = rig.ask("POST", "/users/ann/jobs", body, token=rig.ann)
            assert (answer.status, answer.json["reason"]) == (403, "Conflict")
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert left < 10_000_000


def test_a_variable_of_a_notebook_that_no_column_holds_is_kept_as_text(rig: ApiRig) -> None:
    rig.job("ann", "vast", rig.ann, env={"NOTEBOOK_VARIABLES": '{"lr": ' + "9" * 400 + "}"})
    listed = rig.ask("GET", "/users/ann/runs?search=vast", token=rig.ann)
    assert listed.status == 200, listed.body
    assert str(listed.json["runs"][0]["params"]["lr"]).startswith("0x")


def test_a_sweep_over_numbers_that_no_column_holds_is_refused(rig: ApiRig) -> None:
    body = b'{"name":"vast","code":"x","grid":{"lr":[' + b"9" * 400 + b"]}}"
    refused = rig.ask("POST", "/users/ann/sweeps", raw=body, token=rig.ann)
    assert (refused.status, refused.json["reason"]) == (403, "Invalid")


def test_a_point_of_a_number_that_no_column_holds_is_refused(rig: ApiRig) -> None:
    for number in (2**63, 2**64, 10**400):
        body = f'{{"source":"0.0.a","points":[{{"n":{number},"t":1,"v":{{}}}}]}}'.encode()
        refused = rig.ask("POST", "/users/ann/job_metrics/digits", raw=body, token=rig.ann)
        assert (refused.status, refused.json["reason"]) == (403, "Invalid")
