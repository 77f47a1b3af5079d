"""`mlp-hub node` and `mlp-hub user import`: what they ask for, what they print, what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.cli.commands import nodes, people
from mlp_hub.cli.errors import AwayFailure
from mlp_hub.cli.http import HttpAnswer
from mlp_hub.cli.main import run

NODE = {
    "name": "n1",
    "holders": [{}],
    "conditions": [{"kind": "Drained", "message": "a new\x1b[2J kernel"}],
}
STOPS = [
    {"kind": "job", "name": "digits", "user": "ann", "tenant": "red", "ranks": 1, "of": 3, "ending": False},
    {"kind": "server", "name": "", "user": "bob", "tenant": "red", "ranks": 1, "of": 1, "ending": True},
]


class Service:
    """Answers as the service would; notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.keys: list[str | None] = []
        self.stops = STOPS

    def __call__(
        self,
        _: object,
        method: str,
        path: str,
        *,
        body: Any = None,
        timeout: float = 30,
        key: str | None = None,
    ) -> HttpAnswer:
        del timeout
        self.keys.append(key)
        self.asked.append((method, path, body))
        if path == "/users:import":
            return HttpAnswer(200, json.dumps(self._imported(body)).encode())
        found = (
            [NODE] if path == "/nodes" else {"node": "n1", "drain": None, "others": 1, "stops": self.stops}
        )
        return HttpAnswer(200, json.dumps(found).encode())

    def _imported(self, body: dict[str, Any]) -> dict[str, Any]:
        rows = [line.split(",") for line in body["csv"].splitlines()[1:]]
        states = {True: "new", False: "made"}
        told = [
            {
                "line": at,
                "name": name,
                "team": team,
                "admin": admin == "yes",
                "state": "refused" if name.startswith("=") else states[body["dry_run"]],
                "note": "no name" if name.startswith("=") else "",
                "password": None if body["dry_run"] or name.startswith("=") else f"pw-{name}",
            }
            for at, (name, team, admin) in enumerate(rows, 2)
        ]
        return {"people": told, "done": 1, "refused": sum(one["state"] == "refused" for one in told)}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Service:
    made = Service()
    for module in (nodes, people):
        monkeypatch.setattr(module, "ask_service", made)
    monkeypatch.setenv("MLP_HOME", str(tmp_path))
    return made


def test_nodes_are_listed_and_obey_no_terminal(service: Service, capsys: Any) -> None:
    assert run(["node", "list"]) == 0
    assert capsys.readouterr().out == "n1  Drained (a new\\x1b[2J kernel)  holders: 1\n"
    assert run(["node", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [NODE]
    assert {a[:2] for a in service.asked} == {("GET", "/nodes")}


def test_a_dry_run_of_drain_lists_the_work_on_the_node_and_changes_nothing(
    service: Service, capsys: Any
) -> None:
    assert run(["node", "drain", "n1", "--dry-run"]) == 0
    assert capsys.readouterr().out == "job digits  ann  red  1/3\nnotebook server   bob  red  ending\n"
    assert service.asked == [("GET", "/nodes/n1/drain", None)]


def test_a_node_is_drained_with_its_reason_and_returned(service: Service, capsys: Any) -> None:
    assert run(["node", "drain", "n1", "--reason", "a new kernel", "--evict"]) == 0
    assert run(["node", "return", "n1"]) == 0
    assert service.asked[1:] == [
        ("PUT", "/nodes/n1:drain", {"reason": "a new kernel", "evict": True}),
        ("PUT", "/nodes/n1:return", None),
    ]
    assert "n1 accepts no new work until: mlp-hub node return n1" in capsys.readouterr().out


def test_a_drain_without_a_reason_is_refused_before_anything_is_asked(service: Service, capsys: Any) -> None:
    assert run(["node", "drain", "n1"]) == 2
    assert "--reason" in capsys.readouterr().err
    assert service.asked == []


def test_people_of_a_file_are_made_lot_by_lot_and_their_passwords_printed(
    service: Service, tmp_path: Path, capsys: Any
) -> None:
    file = tmp_path / "people.csv"
    lines = [f"p{i},red,no" for i in range(55)]
    file.write_bytes("\n".join(["name,team,admin", *lines, "=cmd,red,no"]).encode("utf-16"))
    assert run(["user", "import", str(file)]) == 1  # a line is refused
    told = capsys.readouterr()
    printed = told.out.splitlines()
    assert printed[:2] == ["=cmd  refused  no name", "p0  made  pw-p0"]
    assert len(printed) == 56
    assert told.err.splitlines() == ["50 of 55 people done", "55 of 55 people done"]
    assert [a[2]["dry_run"] for a in service.asked] == [True, False, False]
    assert "=cmd" not in service.asked[1][2]["csv"]


def test_a_lot_that_was_not_answered_is_asked_for_again_by_the_same_key(
    service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    lost: list[str | None] = []

    def answers(*asked: Any, key: str | None = None, **more: Any) -> HttpAnswer:
        answer = service(*asked, key=key, **more)
        if not more["body"]["dry_run"] and len(lost) < 2:
            lost.append(key)
            raise AwayFailure("the answer was lost")
        return answer

    monkeypatch.setattr(people, "ask_service", answers)
    monkeypatch.setattr(people, "AGAIN_S", 0.0)
    file = tmp_path / "people.csv"
    file.write_text("name,team,admin\nann,red,no\n")
    assert run(["user", "import", str(file)]) == 0
    assert capsys.readouterr().out == "ann  made  pw-ann\n"
    assert len(service.keys) == 4
    assert set(service.keys[1:]) == set(lost)
    assert len(set(lost)) == 1
    assert service.keys[0] not in lost


@pytest.mark.parametrize("column", ["admin", "platform_admin"])
def test_new_platform_administrators_are_printed(
    service: Service, tmp_path: Path, capsys: Any, column: str
) -> None:
    file = tmp_path / "people.csv"
    file.write_text(f"name,team,{column}\ntina,red,yes\nann,red,no\n=x,red,yes\n")
    assert run(["user", "import", str(file), "--dry-run"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "tina  would be made, would become platform administrator",
        "ann  would be made",
        "=x  refused  no name",
    ]
    assert run(["user", "import", str(file)]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "tina  made, is now platform administrator  pw-tina",
        "ann  made  pw-ann",
    ]
    assert service.asked[-1][2]["csv"] == "name,team,platform_admin\ntina,red,yes\nann,red,no"


def test_an_account_that_was_made_with_a_note_has_the_note_beside_its_password(capsys: Any) -> None:
    one = {"name": "tina", "team": "", "admin": True, "state": "made", "note": "no hub", "password": "pw"}
    people._print_people([one, {**one, "state": "there", "note": "", "password": None}])
    assert capsys.readouterr().out.splitlines() == [
        "tina  made  pw  no hub",
        "tina  already exists, is platform administrator already",
    ]


def test_help_says_that_an_administrator_is_one_of_the_platform(capsys: Any) -> None:
    for verb in ("import", "add"):
        with pytest.raises(SystemExit):
            run(["user", verb, "--help"])
    with pytest.raises(SystemExit):
        run(["user", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "platform_admin" in printed
    assert "make the user a platform administrator" in printed


def test_a_dry_run_makes_nobody(service: Service, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "people.csv"
    file.write_text("name,team,admin\nann,red,no\n")
    assert run(["user", "import", str(file), "--dry-run"]) == 0
    assert capsys.readouterr().out == "ann  would be made\n"
    assert [a[2]["dry_run"] for a in service.asked] == [True]


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"j\xf6rg,red,no", "not text in UTF-8"), (b"a,red,no\n" * 60_000, "too large"), (None, "read")],
)
def test_an_invalid_list_of_people_is_refused_before_any_request(
    service: Service, tmp_path: Path, capsys: Any, data: bytes | None, why: str
) -> None:
    file = tmp_path / "people.csv"
    if data is not None:
        file.write_bytes(data)
    assert run(["user", "import", str(file)]) == 2
    assert why in capsys.readouterr().err
    assert service.asked == []
