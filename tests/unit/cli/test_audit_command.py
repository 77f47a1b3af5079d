"""`mlp-hub audit`: what it asks for, what it prints, what it refuses."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from mlp_hub.cli.commands import audit
from mlp_hub.cli.http import HttpAnswer
from mlp_hub.cli.main import run


def entry(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "time": f"2026-11-14T23:00:{number:02d}Z",
        "actor": "root",
        "action": "tenant.update",
        "object": "red",
        "tenant": "red",
        "detail": {},
        **more,
    }


class Service:
    """Answers in pages of two, as one would whose entries are long."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self.entries = entries
        self.asked: list[dict[str, list[str]]] = []

    def __call__(self, _settings: object, method: str, path: str) -> HttpAnswer:
        assert method == "GET"
        query = parse_qs(urlsplit(path).query)
        self.asked.append(query)
        before = int(query.get("cursor", ["1000"])[0])
        page = [e for e in self.entries if e["id"] < before][: min(2, int(query["limit"][0]))]
        return HttpAnswer(200, json.dumps(page).encode())


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    found = Service(
        [
            entry(5, detail={"was": {"cpu": 4}, "message": "more"}),
            entry(4, actor="\x1b[2J", object="a\nb", tenant=None),
            entry(3, action="member.set", object="ann"),
            entry(
                2,
                detail={"before": {"cpu": 3, "weight": 1}, "after": {"cpu": 0.5, "weight": 1, "cohort": "m"}},
            ),
            entry(
                1,
                detail={
                    "before": {"borrowing_limit": None, "parent": "org"},
                    "after": {"borrowing_limit": {"cpu": 0}, "parent": None},
                },
            ),
        ]
    )
    monkeypatch.setattr(audit, "ask_service", found)
    return found


def test_the_newest_come_last_and_pages_are_put_together(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", "--lines", "4"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2026-11-14 23:00:02Z  root  tenant.update  red  cpu 3 -> 0.5, cohort none -> m",
        "2026-11-14 23:00:03Z  root  member.set  ann of red",
        "2026-11-14 23:00:04Z  \\x1b[2J  tenant.update  a\\nb",
        '2026-11-14 23:00:05Z  root  tenant.update  red  was {"cpu": 4}, message more',
    ]
    assert [q["limit"] for q in service.asked] == [["4"], ["2"]]


def test_an_unset_value_is_printed_as_its_meaning(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.endswith('tenant.update  red  borrowing_limit no limit -> {"cpu": 0}, parent org -> none')


def test_all_are_printed_as_json_where_fewer_are_there(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found == list(reversed(service.entries))


def test_filters_go_to_the_service(service: Service) -> None:
    args = ["--actor", "a&b", "--action", "quota.", "--object", "x y", "--tenant", "red"]
    assert run(["audit", *args, "--since", "2031-03-01", "--until", "2031-03-01T08:00+02:00"]) == 0
    asked = service.asked[0]
    assert asked == {
        "actor": ["a&b"],
        "action": ["quota."],
        "object": ["x y"],
        "tenant": ["red"],
        "since": ["2031-03-01T00:00:00+00:00"],
        "until": ["2031-03-01T08:00:00+02:00"],
        "limit": ["100"],
    }


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--since", "soon"], "--since is 'soon'"),
        (["--until", "7w"], "--until is '7w'"),
        (["--since", "999999d"], "--since is '999999d'"),
        (["--lines", "0"], "--lines is 0"),
        (["--lines", "100001"], "--lines is 100001"),
    ],
)
def test_a_meaningless_argument_is_refused_before_any_request(
    service: Service, args: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", *args]) == 2
    assert says in capsys.readouterr().err
    assert service.asked == []


def test_a_time_can_be_given_as_a_duration_ago(service: Service) -> None:
    assert run(["audit", "--since", "12h"]) == 0
    assert "since" in service.asked[0]
