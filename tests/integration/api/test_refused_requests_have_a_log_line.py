"""An operator who is given the id of a refused request finds its line in the log."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from mlp_hub.api.edge.refusals import LINES
from mlp_hub.logs.lines import JsonLines
from support.rigs.api_rig import ApiRig


@pytest.fixture
def lines() -> Iterator[list[dict[str, str]]]:
    """Lines of the service's log, as an operator's INFO level shows them."""
    found: list[dict[str, str]] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.INFO and record.name != "mlp_hub.access":  # only below INFO
                found.append(json.loads(JsonLines().format(record)))

    keeping, root = Keeping(), logging.getLogger("mlp_hub")
    level = root.level
    root.addHandler(keeping)
    root.setLevel(logging.INFO)
    yield found
    root.removeHandler(keeping)
    root.setLevel(level)


def line_of(lines: list[dict[str, str]], request_id: str) -> dict[str, str]:
    (line,) = [one for one in lines if one.get("request_id") == request_id]
    return line


REFUSED: list[tuple[str, str, Any, str, str]] = [
    ("GET", "/users/ann/jobs/none", None, "ann", "403 NotFound"),
    ("GET", "/users/bob/jobs/none", None, "ann", "403 NotFound"),
    ("GET", "/none/such", None, "ann", "403 NotFound"),
    ("POST", "/users/ann/jobs", {"name": "UP", "code": "x", "cpu": -1}, "ann", "403 Invalid"),
    ("PUT", "/tenants/default", {"cpu": 1}, "ann", "403 NotFound"),
    ("GET", "/users/ann/jobs", None, "", "401"),
    ("GET", "/users/ann/jobs", None, "not-a-token", "401"),
]


@pytest.mark.parametrize(("method", "path", "body", "who", "shown"), REFUSED)
def test_each_refusal_has_one_line_with_its_id_below_warning(
    rig: ApiRig, lines: list[dict[str, str]], method: str, path: str, body: Any, who: str, shown: str
) -> None:
    token = rig.ann if who == "ann" else who or None
    answer = rig.ask(method, path, body, token=token)
    assert answer.status in (401, 403), answer.body
    line = line_of(lines, answer.json["request_id"])
    assert line["level"] == "info"
    assert line["message"].startswith(f"{method} /services/mlp/api/v1{path} was refused: {shown}, to ")


def test_a_line_names_who_asked_and_has_no_word_of_the_answer(
    rig: ApiRig, lines: list[dict[str, str]]
) -> None:
    key = "a-secret-that-was-sent"
    answer = rig.ask("POST", f"/users/ann/jobs?{key}=1", {key: 1}, token=rig.ann)
    line = line_of(lines, answer.json["request_id"])
    assert line["message"].endswith("403 Invalid, to ann")
    assert not [one for one in lines if key in json.dumps(one)]


def test_a_refused_websocket_a_foreign_host_and_a_page_have_lines(
    rig: ApiRig, lines: list[dict[str, str]]
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        rig.socket("/users/ann/job_metrics/none", token=rig.ann)
    line = line_of(lines, refused.value.response.headers["X-Request-ID"])
    assert "was refused: 403 NotFound" in line["message"]

    answer = rig.ask("GET", "/auth", token=rig.ann, headers={"Host": "evil.example"})
    assert "was refused: 403 Forbidden" in line_of(lines, answer.json["request_id"])["message"]

    page = rig.ask("GET", "/oauth_callback", headers={"X-Request-ID": "of-a-browser"}, base="/services/mlp")
    assert page.status >= 400
    assert f"was refused: {page.status}" in line_of(lines, "of-a-browser")["message"]


def test_names_in_a_path_cannot_forge_a_line_or_make_it_long(
    rig: ApiRig, lines: list[dict[str, str]]
) -> None:
    answer = rig.ask("GET", f"/users/ann/jobs/{'x' * 5000}%0aforged%1b", token=rig.ann)
    line = line_of(lines, answer.json["request_id"])
    assert len(line["message"]) < 400


def test_a_flood_of_one_caller_is_counted_and_hides_nobody_elses_line(
    rig: ApiRig, lines: list[dict[str, str]]
) -> None:
    burst, flood = int(LINES["caller"].burst), 200
    before = len(lines)
    for _ in range(flood):
        rig.ask("GET", "/users/bob/jobs/none", token=rig.ann)
    of_flood = [one for one in lines[before:] if one["message"].endswith(", to ann")]
    assert burst // 2 <= len(of_flood) < flood, "a second of the test gives one more"
    answer = rig.ask("GET", "/users/ann/jobs/none", token=rig.bob)
    assert line_of(lines, answer.json["request_id"])["user"] == "bob"
    (counted,) = [one for one in lines[before:] if "no line of their own" in one["message"]][-1:]
    assert int(re.match(r"\d+", counted["message"])[0]) > 0  # type: ignore[index]
