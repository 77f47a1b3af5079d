"""The audit log and the scheduler's decisions: for platform admins only, bounded, and no input upsets them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote

import pytest

from mlp_hub.cli.commands.audit_files import export
from mlp_hub.service.audit import log as audit
from support.rigs.api_rig import ApiRig

SCRIPT = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiRig]:
    """A rig whose log is known from its first entry on."""
    root: Path = tmp_path_factory.mktemp("audit")
    with ApiRig(root) as rig:
        rig.tenant("red", "rita", members=("ann",), cpu=2.0, description=SCRIPT)
        rig.tenant("cyan")
        rig.job("ann", "digits", rig.ann, tenant="red", cpu=1.0)
        yield rig


def actions(rig: ApiRig, query: str = "") -> list[tuple[str, str, str]]:
    answer = rig.ask("GET", f"/audit?limit=1000{query}", token=rig.root_user)
    assert answer.status == 200, answer.body
    return [(e["actor"], e["action"], e["object"]) for e in answer.json]


@pytest.mark.parametrize("path", ["/audit", "/decisions", "/audit?tenant=red", "/decisions?user=ann"])
@pytest.mark.parametrize("who", ["ann", "bob", "rita", "blue", "notebook", "spawner"])
def test_only_a_platform_admin_reads_them_not_even_a_tenants_admin_its_own_part(
    own: ApiRig, who: str, path: str
) -> None:
    answer = own.ask("GET", path, token=getattr(own, who))
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert own.ask("GET", path).status == 401


def test_audit_entries_name_their_actor_newest_first(own: ApiRig) -> None:
    told = actions(own)
    made = [object_ for actor, action, object_ in told if (actor, action) == ("admin", "tenant.create")]
    assert made == ["cyan", "red"]
    entry = own.ask("GET", "/audit?object=red&action=tenant.create", token=own.root_user).json[0]
    assert entry["detail"]["description"] == SCRIPT, "as it is: who shows it escapes it"
    assert entry["tenant"] == "red"
    assert entry["time"].endswith("Z")
    assert actions(own, "&actor=nobody") == []
    assert {a for _, a, _ in actions(own, "&action=member.")} == {"member.set"}
    assert {o for _, _, o in actions(own, "&tenant=cyan")} == {"cyan"}
    assert actions(own, "&until=2001-01-01T00:00:00Z") == []
    assert actions(own, "&since=2001-01-01T00:00:00Z") == told


def test_of_a_tenant_is_told_what_was_not_set_before_and_what_is_not_any_more(own: ApiRig) -> None:
    own.tenant("lime", cpu=2.0, cohort="m")
    for asked in ({"borrowing_limit": {"cpu": 0}}, {"borrowing_limit": {"cpu": 0}, "description": "x"}, {}):
        body = {"cpu": 2.0, "cohort": "m", **asked}
        assert own.ask("PUT", "/tenants/lime", body, token=own.root_user).status == 200
    entries = own.ask("GET", "/audit?object=lime&action=tenant.update", token=own.root_user).json
    assert [e["detail"] for e in reversed(entries)] == [
        {"before": {"borrowing_limit": None}, "after": {"borrowing_limit": {"cpu": 0.0}}},
        {"before": {"description": None}, "after": {"description": "x"}},
        {
            "before": {"borrowing_limit": {"cpu": 0.0}, "description": "x"},
            "after": {"borrowing_limit": None, "description": None},
        },
    ]


def test_pages_follow_each_other_to_the_end(own: ApiRig) -> None:
    whole = own.ask("GET", "/audit?limit=1000", token=own.root_user).json
    seen, cursor = [], ""
    while True:
        page = own.ask("GET", f"/audit?limit=2{cursor}", token=own.root_user)
        assert len(page.json) <= 2
        seen += page.json
        if "x-next-cursor" not in page.headers:
            break
        cursor = f"&cursor={page.headers['x-next-cursor']}"
    assert seen == whole


def test_long_entries_come_in_smaller_pages(own: ApiRig, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = own.ask("GET", "/audit?limit=1000", token=own.root_user).json
    monkeypatch.setattr(audit, "MOST_BYTES", 200)
    page = own.ask("GET", "/audit?limit=1000", token=own.root_user)
    assert 0 < len(page.json) < len(whole)
    assert page.headers["x-next-cursor"] == str(page.json[-1]["id"])


BAD = [
    "limit=0",
    "limit=1001",
    "limit=1e9",
    "cursor=",
    "cursor=-1",
    "cursor=1%0A",
    "cursor=9999999999999999999",
    "cursor=0x10",
    "actor=",
    "actor=%00",
    "actor=a%0Ab",
    "actor=ann%0A",
    f"actor={'x' * 256}",
    f"action={'x' * 65}",
    "tenant=..%2Fred",
    "tenant=Red",
    "since=yesterday",
    "since=2026-01-01",
    "since=2026-01-01T00:00:00",
    "since=NaN",
    "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
    "since=2026-01-01T00:00:00Z&until=2026-01-01T00:00:00Z",
    "actor=a&actor=b",
    "surprise=1",
    "%ff=1",
]


@pytest.mark.parametrize("query", BAD)
def test_a_query_that_means_nothing_is_refused(own: ApiRig, query: str) -> None:
    answer = own.ask("GET", f"/audit?{query}", token=own.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid"), answer.body
    assert len(answer.body) < 1000


@pytest.mark.parametrize("query", ["kind=guessed", "job=%00", "user=%00", "object=x", "cursor=x"])
def test_a_query_for_decisions_that_means_nothing_is_refused(own: ApiRig, query: str) -> None:
    answer = own.ask("GET", f"/decisions?{query}", token=own.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid"), answer.body


@pytest.mark.parametrize("text", ["' OR 1=1 --", "%", "_", "\\", SCRIPT, "\N{PILE OF POO}", "red%2e%2e"])
def test_filters_are_texts_and_nothing_else(own: ApiRig, text: str) -> None:
    for name in ("actor", "action", "object"):
        assert actions(own, f"&{name}={quote(text)}") == []
        assert actions(own, f"&{name}={quote(text[:10] + '.')}") == []


def test_nobody_writes_or_removes_an_entry(own: ApiRig) -> None:
    before = actions(own)
    for method in ("POST", "PUT", "DELETE"):
        for path in ("/audit", "/audit/1", "/decisions", "/decisions/1"):
            assert own.ask(method, path, {}, token=own.root_user).status in (403, 405)
    assert actions(own) == before


def test_an_admin_sees_why_any_job_was_admitted_then_and_there(own: ApiRig) -> None:
    def ask(query: str) -> list[dict[str, object]]:
        answer = own.ask("GET", f"/decisions?{query}", token=own.root_user)
        assert answer.status == 200, answer.body
        found: list[dict[str, object]] = answer.json
        return found

    (one,) = ask("user=ann&job=digits")
    assert (one["user"], one["job"], one["tenant"]) == ("ann", "digits", "red")
    decision = own.ask("GET", "/users/ann/jobs/digits/decisions", token=own.root_user).json[0]
    assert one["decision"] == decision
    assert decision["kind"] == "admitted"
    assert decision["nodes"][0]["node"] == "n1"
    assert ask("kind=admitted") == [one]
    assert ask("kind=preempted") == ask("user=bob") == ask("until=2001-01-01T00:00:00Z") == []


FILES = ["/audit:csv", "/audit:lines", "/audit:head"]


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("who", ["ann", "bob", "rita", "blue", "notebook", "spawner"])
def test_only_a_platform_admin_exports_the_log(own: ApiRig, who: str, path: str) -> None:
    answer = own.ask("GET", path, token=getattr(own, who))
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert own.ask("GET", path).status == 401


def test_an_export_has_all_entries_that_pass_the_filters(own: ApiRig) -> None:
    whole = own.ask("GET", "/audit?limit=1000", token=own.root_user).json
    lines = own.ask("GET", "/audit:lines", token=own.root_user)
    assert lines.headers["content-type"] == "text/plain; charset=utf-8"
    assert lines.headers["content-disposition"] == 'attachment; filename="audit.jsonl"'
    assert [json.loads(line) for line in lines.body.splitlines()] == whole
    some = own.ask("GET", "/audit:lines?actor=admin&action=tenant.&object=red", token=own.root_user)
    assert {(e["actor"], e["object"]) for e in map(json.loads, some.body.splitlines())} == {("admin", "red")}
    table = own.ask("GET", "/audit:csv", token=own.root_user)
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.reader(io.StringIO(table.body.decode(), newline="")))
    assert rows[0] == ["id", "time", "actor", "action", "object", "tenant", "detail"]
    assert [int(row[0]) for row in rows[1:]] == [e["id"] for e in whole]
    assert [json.loads(row[6]) for row in rows[1:]] == [e["detail"] for e in whole]
    none = own.ask("GET", "/audit:lines?until=2001-01-01T00:00:00Z", token=own.root_user)
    assert (none.status, none.body) == (200, b"")


@pytest.mark.parametrize(("path", "as_csv"), [("/audit:csv", True), ("/audit:lines", False)])
def test_the_command_and_rest_write_the_same_bytes(
    own: ApiRig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str, as_csv: bool
) -> None:
    def ask(_: object, method: str, asked: str) -> SimpleNamespace:
        answer = own.ask(method, asked, token=own.root_user)
        return SimpleNamespace(json=lambda: answer.json)

    monkeypatch.setattr("mlp_hub.cli.commands.audit.ask_service", ask)
    file = tmp_path / "audit"
    assert export(cast("Any", None), {}, str(file), as_csv=as_csv) == 0
    rest = own.ask("GET", path, token=own.root_user).body
    assert file.read_bytes() == rest
    times = re.findall(rb"\b2\d{3}-\d\d-\d\dT[^,\"]*", rest)
    assert times
    assert all(re.fullmatch(rb"[^+]+Z", at) for at in times), times


def test_an_export_is_read_page_by_page_and_ends_at_its_bound(
    own: ApiRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = own.ask("GET", "/audit:lines", token=own.root_user).body
    monkeypatch.setattr(audit, "EXPORT_PAGE", 2)
    assert own.ask("GET", "/audit:lines", token=own.root_user).body == whole
    monkeypatch.setattr(audit, "MOST_EXPORTED", 3)
    assert len(own.ask("GET", "/audit:lines", token=own.root_user).body.splitlines()) == 3


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "=cmd|' /C calc'!A0"]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_an_export_is_a_formula(own: ApiRig, text: str) -> None:
    own.run(own.rig.db.write(lambda tx: tx.audit.add(1.0, text, "a.b", text, detail={"x": text})))
    body = own.ask("GET", f"/audit:csv?until=1970-01-02T00:00:00Z&object={quote(text)}", token=own.root_user)
    if body.status == 200:
        (row,) = list(csv.reader(io.StringIO(body.body.decode(), newline="")))[1:]
        assert row[2] == row[4] == f"'{text}"
    everything = own.ask("GET", "/audit:csv?until=1970-01-02T00:00:00Z", token=own.root_user)
    for row in csv.reader(io.StringIO(everything.body.decode(), newline="")):
        assert not any(cell[:1] in tuple("=+-@\t\r\n") and cell for cell in row), row


@pytest.mark.parametrize(
    "query", ["limit=5", "cursor=1", "surprise=1", "since=yesterday", "actor=%00", "tenant=Red", "action="]
)
@pytest.mark.parametrize("path", FILES[:2])
def test_an_export_with_a_query_that_means_nothing_is_refused(own: ApiRig, path: str, query: str) -> None:
    answer = own.ask("GET", f"{path}?{query}", token=own.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid"), answer.body


def test_the_head_of_the_chain_changes_with_each_entry(own: ApiRig) -> None:
    before = own.ask("GET", "/audit:head", token=own.root_user).json
    own.tenant("mauve")
    after = own.ask("GET", "/audit:head", token=own.root_user).json
    assert after["link"] > before["link"]
    assert len(after["hash"]) == 64
    assert after["hash"] != before["hash"]
    assert (after["checked"], after["sound"]) == (None, None)


def test_a_change_that_cannot_be_written_down_does_not_happen(own: ApiRig) -> None:
    """Of rights and of quota nothing changes without its entry: both are in one transaction."""
    own.tenant("plum", cpu=2.0)
    told = actions(own)
    block = "CREATE TRIGGER deaf BEFORE INSERT ON audit_link BEGIN SELECT RAISE(ABORT, 'no room'); END"
    own.run(own.rig.db.write(lambda tx: tx.connection.exec_driver_sql(block)))
    try:
        asked = (
            ("PUT", "/tenants/plum", {"cpu": 9.0}),
            ("POST", "/tenants", {"name": "olive", "cpu": 1.0}),
            ("DELETE", "/tenants/plum", None),
            ("PUT", "/tenants/red/members/bob", {"role": "admin"}),
            ("DELETE", "/tenants/red/members/ann", None),
            ("PUT", "/tenants/red/caps", {"user": "ann", "cpu": 1.0}),
            ("PUT", "/users/ann:admin", {"admin": True}),
            ("PUT", "/users/ann:password", {"password": "long enough"}),
        )
        for method, path, body in asked:
            answer = own.ask(method, path, body, token=own.root_user)
            assert answer.status == 503, (method, path, answer.body)
    finally:
        own.run(own.rig.db.write(lambda tx: tx.connection.exec_driver_sql("DROP TRIGGER deaf")))
    assert own.ask("GET", "/tenants/plum", token=own.root_user).json["cpu"] == 2.0
    assert own.ask("GET", "/tenants/olive", token=own.root_user).status == 403
    assert own.ask("GET", "/users/ann", token=own.root_user).json["admin"] is False
    members = own.ask("GET", "/tenants/red/members", token=own.root_user).json
    assert {m["user"]: m["role"] for m in members} == {"rita": "admin", "ann": "member"}
    assert actions(own) == told


# --- files of a tenant's admins


FILES = ["audit:csv", "audit:lines"]


@pytest.fixture(scope="module")
def tree(own: ApiRig) -> ApiRig:
    """Teams below each other, each with an admin and an entry that only it has."""
    for name in ("olga", "alf", "bea", "emil", "mia", "otto"):
        own.hub.user(name, f"{name}-token")
    own.tenant("oak", "olga", members=("mia",))
    own.tenant("oak-a", "alf")
    own.tenant("oak-a-b", "bea")
    own.tenant("elm", "emil")
    for name, parent in (("oak-a", "oak"), ("oak-a-b", "oak-a")):
        for more in ({}, {"description": "=cmd|' /C calc'!A0"}):
            body = {"parent": parent, **more}
            assert own.ask("PUT", f"/tenants/{name}", body, token=own.root_user).status == 200
    for name in ("oak", "elm"):
        assert (
            own.ask("PUT", f"/tenants/{name}", {"description": "@SUM(1)"}, token=own.root_user).status == 200
        )
    return own


def tenants_in(rig: ApiRig, tenant: str, token: str, form: str = "audit:lines", query: str = "") -> set[str]:
    answer = rig.ask("GET", f"/tenants/{tenant}/{form}{query}", token=token)
    assert answer.status == 200, answer.body
    if form == "audit:lines":
        return {json.loads(line)["tenant"] for line in answer.body.splitlines()}
    return {row["tenant"] for row in csv.DictReader(io.StringIO(answer.body.decode()))}


@pytest.mark.parametrize("form", FILES)
def test_a_teams_admin_exports_its_own_entries_and_those_of_teams_below_and_no_others(
    tree: ApiRig, form: str
) -> None:
    token = {name: tree.hub.user(name, f"{name}-token") for name in ("olga", "alf", "bea", "emil", "mia")}
    assert tenants_in(tree, "oak", token["olga"], form) == {"oak", "oak-a", "oak-a-b"}
    assert tenants_in(tree, "oak-a", token["alf"], form) == {"oak-a", "oak-a-b"}
    assert tenants_in(tree, "oak-a-b", token["bea"], form) == {"oak-a-b"}
    assert tenants_in(tree, "elm", token["emil"], form) == {"elm"}
    assert tenants_in(tree, "oak", tree.root_user, form) == {"oak", "oak-a", "oak-a-b"}
    refused = [
        ("oak", "emil", "NotFound"),
        ("oak", "alf", "NotFound"),
        ("oak-a", "olga", "NotFound"),
        ("elm", "olga", "NotFound"),
        ("oak", "mia", "Forbidden"),
        ("none-such", "olga", "NotFound"),
    ]
    for tenant, who, reason in refused:
        answer = tree.ask("GET", f"/tenants/{tenant}/{form}", token=token[who])
        assert (answer.status, answer.json["reason"]) == (403, reason), (tenant, who)
    assert tree.ask("GET", f"/tenants/none-such/{form}", token=tree.root_user).status == 403
    assert tree.ask("GET", f"/tenants/oak/{form}").status == 401
    assert tree.ask("GET", f"/tenants/oak/{form}", token=tree.notebook).status == 403


@pytest.mark.parametrize("form", FILES)
def test_a_token_without_the_scope_and_odd_filters_give_no_file(tree: ApiRig, form: str) -> None:
    weak = tree.hub.user("olga", "olga-weak", held=("access:services!service=mlp", "custom:mlp:jobs:read"))
    assert tree.ask("GET", f"/tenants/oak/{form}", token=weak).json["reason"] == "Forbidden"
    olga = tree.hub.user("olga", "olga-token")
    for bad in (
        "tenant=elm",
        "object=x",
        "limit=5",
        "actor=",
        "since=yesterday",
        "below=0",
        "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
    ):
        answer = tree.ask("GET", f"/tenants/oak/{form}?{bad}", token=olga)
        assert (answer.status, answer.json["reason"]) == (403, "Invalid"), bad
    assert tenants_in(tree, "oak", olga, form, "?action=tenant.update&actor=admin") == {
        "oak",
        "oak-a",
        "oak-a-b",
    }
    assert tenants_in(tree, "oak", olga, form, "?actor=nobody") == set()


def test_entries_of_an_earlier_team_of_the_name_and_of_a_team_that_moved_away_are_not_exported(
    tree: ApiRig,
) -> None:
    olga = tree.hub.user("olga", "olga-token")
    tree.tenant("oak-old", "otto")
    for body in ({"parent": "oak"}, {"parent": "oak", "description": "secret of the first"}):
        assert tree.ask("PUT", "/tenants/oak-old", body, token=tree.root_user).status == 200
    assert b"secret of the first" in tree.ask("GET", "/tenants/oak/audit:lines", token=olga).body
    assert tree.ask("DELETE", "/tenants/oak-old/members/otto", token=tree.root_user).status == 200
    gone = tree.ask("DELETE", "/tenants/oak-old", token=tree.root_user)
    assert gone.status == 200, gone.body
    assert "oak-old" not in tenants_in(tree, "oak", olga)
    tree.tenant("oak-old", "otto")
    assert tree.ask("PUT", "/tenants/oak-old", {"parent": "oak"}, token=tree.root_user).status == 200
    assert "oak-old" not in tenants_in(tree, "oak", olga), "the move itself tells how the team was before"
    body = {"parent": "oak", "description": "new"}
    assert tree.ask("PUT", "/tenants/oak-old", body, token=tree.root_user).status == 200
    assert b"secret of the first" not in tree.ask("GET", "/tenants/oak/audit:lines", token=olga).body
    assert "oak-old" in tenants_in(tree, "oak", olga)
    assert tree.ask("PUT", "/tenants/oak-old", {"parent": "elm"}, token=tree.root_user).status == 200
    assert "oak-old" not in tenants_in(tree, "oak", olga)


@pytest.mark.parametrize("form", FILES)
def test_an_export_leaves_out_entries_of_a_team_from_before_its_move(tree: ApiRig, form: str) -> None:
    """An admin of a team takes a team over, and reads its past: neither the first time nor after a second move."""
    olga, emil = (tree.hub.user(name, f"{name}-token") for name in ("olga", "emil"))

    def put(name: str, parent: str | None, said: str) -> None:
        body = {"description": said} | ({} if parent is None else {"parent": parent})
        assert tree.ask("PUT", f"/tenants/{name}", body, token=tree.root_user).status == 200

    def seen(team: str, token: str) -> set[str]:
        body = tree.ask("GET", f"/tenants/{team}/{form}", token=token).body.decode()
        return {said for said in ("at-home", "at-oak", "at-elm", "at-last", "of-leaf") if said in body}

    root, leaf = f"ash-{form[-3:]}", f"ash-leaf-{form[-3:]}"
    tree.tenant(root)
    tree.tenant(leaf)
    put(root, None, "at-home")
    put(leaf, root, "of-leaf")
    put(leaf, root, "")
    try:
        put(root, "oak", "at-oak")
        put(root, "oak", "")
        assert seen("oak", olga) == {"at-oak"}, "of the move and before it nothing, of the team below neither"
        put(root, "elm", "at-elm")
        put(root, "elm", "")
        assert (seen("oak", olga), seen("elm", emil)) == (set(), {"at-elm"})
        put(root, "oak", "at-elm")  # back again, within the minutes in which equal entries are one
        put(root, "oak", "at-last")
        assert seen("oak", olga) - {"at-last"} <= {"at-elm"}
        assert "at-last" in seen("oak", olga)
        assert "of-leaf" not in seen("oak", olga)
        put(leaf, "oak", "of-leaf")  # within oak: it was below it before, so the entry of this move is oak's
        assert "of-leaf" in seen("oak", olga)
    finally:
        put(leaf, None, "")
        put(root, None, "")


def test_a_move_that_is_repeated_at_once_opens_no_past(tree: ApiRig) -> None:
    """Equal entries of some minutes are one in the log, with the number of the first."""
    olga = tree.hub.user("olga", "olga-token")
    tree.tenant("fir")
    move, back = {"parent": "oak"}, {"description": ""}
    for body in (move, back, {"description": "between"}, back, move):
        assert tree.ask("PUT", "/tenants/fir", body, token=tree.root_user).status == 200
    assert b"between" not in tree.ask("GET", "/tenants/oak/audit:lines", token=olga).body
    assert tree.ask("PUT", "/tenants/fir", {}, token=tree.root_user).status == 200


def test_no_cell_of_a_teams_file_is_a_formula(tree: ApiRig) -> None:
    olga = tree.hub.user("olga", "olga-token")
    with tree.platform.db.begin() as tx:
        tx.audit.add(
            tree.platform.clock(), "=HYPERLINK(1)", "x.y", "+1+1", tenant="oak", detail={"a": "\r\n=1"}
        )
    answer = tree.ask("GET", "/tenants/oak/audit:csv", token=olga)
    assert answer.headers["content-disposition"] == 'attachment; filename="audit-oak.csv"'
    rows = list(csv.reader(io.StringIO(answer.body.decode(), newline="")))
    assert rows[0] == ["id", "time", "actor", "action", "object", "tenant", "detail"]
    assert rows[1][2:5] == ["'=HYPERLINK(1)", "x.y", "'+1+1"]
    cells = [cell for row in rows for cell in row]
    assert not any(cell.startswith(tuple("=+-@\t\r\n")) for cell in cells)


def test_no_reader_of_older_entries_sees_the_names_of_mail_addresses(rig: ApiRig) -> None:
    listed = "work (ann.secret@example.org), hook (https://hooks.example.org)"
    now = rig.service.clock()

    def work(tx: Any) -> None:
        tx.audit.add(now, "ann", "notifications.set", "ann-of-old", detail={"channels": listed})

    rig.run(rig.rig.db.write(work))
    for path in ("/audit", "/audit:csv", "/audit:lines"):
        answer = rig.ask("GET", f"{path}?object=ann-of-old", token=rig.root_user)
        assert answer.status == 200
        assert b"ann.secret" not in answer.body
        assert b"work (***@example.org), hook (https://hooks.example.org)" in answer.body
