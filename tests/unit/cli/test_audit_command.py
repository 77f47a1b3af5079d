"""`mlp-hub audit`: what it asks for, what it prints, what it refuses."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import text

from mlp_hub.cli.commands import audit
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.http import HttpAnswer
from mlp_hub.cli.main import run
from mlp_hub.service.audit.checked import CHECKED, CheckedChain
from mlp_hub.service.audit.heads import PublishedHead, append_head
from mlp_hub.store import Database


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


def test_attack_json_of_a_users_words_steers_no_terminal_and_is_the_same(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    service.entries[0]["detail"]["message"] = said = "a\x9b31m\u202eb\u2028\x85\x7f\u00e9\n"
    assert run(["audit", "--json", "--lines", "1"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["detail"]["message"] == said
    assert printed.rstrip("\n").isprintable()
    assert "\u00e9" in printed


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


def test_an_export_has_all_pages_in_a_file_of_its_owner(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text("older")
    assert run(["audit", "--export", str(file), "--actor", "root", "--force"]) == 0
    assert [json.loads(line) for line in file.read_text().splitlines()] == service.entries
    assert file.stat().st_mode & 0o777 == 0o600
    assert service.asked[0]["actor"] == ["root"]
    assert capsys.readouterr().out == f"5 entries are in {file}.\n"
    assert list(tmp_path.iterdir()) == [file]


def test_an_export_replaces_no_file_unless_it_is_forced(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, link = tmp_path / "log.jsonl", tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    file.write_text("older")
    for name in (file, link):
        assert run(["audit", "--export", str(name)]) == 2
    assert service.asked == []
    printed = capsys.readouterr().err
    assert "log.jsonl exists already, and was not changed." in printed
    assert "--force" in printed
    file.unlink()

    def meanwhile(*asked: Any) -> HttpAnswer:
        file.write_text("theirs")
        return service(*asked)

    monkeypatch.setattr(audit, "ask_service", meanwhile)
    assert run(["audit", "--export", str(file)]) == 2
    monkeypatch.setattr("mlp_hub.cli.commands.audit_files.os.link", _no_links)
    file.unlink()
    assert run(["audit", "--export", str(file)]) == 2
    assert file.read_text() == "theirs"
    monkeypatch.setattr(audit, "ask_service", service)
    file.unlink()
    assert run(["audit", "--export", str(file)]) == 0
    assert sorted(tmp_path.iterdir()) == [link, file]


def _no_links(*_paths: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_an_action_that_is_not_found_hints_at_the_actions_that_begin_with_it(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    service.entries.clear()
    assert run(["audit", "--action", "server"]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "--action server." in told.err
    assert run(["audit", "--action", "server.", "--json"]) == 0
    assert capsys.readouterr().err == "No entry passes the filters.\n"


def test_an_export_as_csv_has_no_formulas(
    service: Service, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    service.entries[0] |= {"actor": "=1+1", "object": "@x"}
    assert run(["audit", "--export", "-", "--csv"]) == 0
    rows = list(csv.reader(io.StringIO(capsysbinary.readouterr().out.decode(), newline="")))
    assert rows[0] == ["id", "time", "actor", "action", "object", "tenant", "detail"]
    assert (rows[1][2], rows[1][4], rows[2][4]) == ("'=1+1", "'@x", "a\nb")
    assert json.loads(rows[1][6]) == service.entries[0]["detail"]


def test_an_export_that_fails_leaves_the_older_file(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text("older")

    def away(*_args: object) -> HttpAnswer:
        raise CommandFailed("the hub does not answer")

    monkeypatch.setattr(audit, "ask_service", away)
    assert run(["audit", "--export", str(file), "--force"]) == 1
    assert file.read_text() == "older"
    assert list(tmp_path.iterdir()) == [file]
    monkeypatch.setattr(audit, "ask_service", service)
    assert run(["audit", "--export", str(tmp_path / "none" / "x")]) == 1
    assert "cannot be written: No such file or directory" in capsys.readouterr().err


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A state directory whose log has three entries and a head outside."""
    monkeypatch.setenv("MLP_HOME", str(tmp_path))
    db = Database(str(tmp_path / "db" / "mlp.sqlite"))
    db.create_schema()
    with db.begin() as tx:
        tx.audit_chain.checkpoint(1.0)
        for n in range(3):
            tx.audit.add(float(n), "ann", "tenant.update", f"t{n}")
        append_head(tmp_path / "audit-heads.jsonl", PublishedHead.of(tx.audit_chain.checkpoint(5.0)))
    yield db
    db.close()


def test_a_check_of_a_sound_log_says_what_it_compared(
    log: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", "--verify"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "Checked 3 entries and 4 links, up to link 4."
    assert said[1] == "It matches 1 head outside the database, up to link 4 of 1970-01-01 00:00:05 UTC."
    assert said[2].startswith("Head: ")
    assert said[3] == "No break was found."
    stored = CheckedChain.of(log.read_now(lambda tx: tx.settings.get(CHECKED)))
    assert stored is not None
    assert (stored.sound, stored.entries, stored.seq) == (True, 3, 4)


def test_a_check_names_the_first_broken_entry_and_ends_with_1(
    log: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    with log.begin() as tx:
        tx.connection.execute(text("UPDATE audit SET actor = 'eve' WHERE id = 2"))
    assert run(["audit", "--verify"]) == 1
    assert "BROKEN: entry 2 was changed." in capsys.readouterr().out.splitlines()
    stored = CheckedChain.of(log.read_now(lambda tx: tx.settings.get(CHECKED)))
    assert stored is not None
    assert not stored.sound


def test_a_check_compares_with_copies_of_the_heads(
    log: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(
        (tmp_path / "audit-heads.jsonl").read_bytes() + PublishedHead(9, 7, b"\1" * 32, 9.0).line()
    )
    assert run(["audit", "--verify", "--heads", str(copy)]) == 1
    printed = capsys.readouterr().out
    assert "or an older backup was restored." in printed
    assert "is link 9 of 1970-01-01 00:00:09 UTC: entries" in printed
    assert run(["audit", "--verify", "--heads", str(tmp_path / "none")]) == 1
    assert "is not there." in capsys.readouterr().err
    (tmp_path / "audit-heads.jsonl").unlink()
    assert run(["audit", "--verify"]) == 1
    said = capsys.readouterr().out
    assert "audit-heads.jsonl is not there." in said
    assert "their file was cut or replaced" in said


def test_a_check_without_a_database_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLP_HOME", str(tmp_path))
    assert run(["audit", "--verify"]) == 1
    assert "The audit log cannot be checked" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
