"""The table of runs over REST and by the command: searched, written on, compared, and closed to others."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from mlp.cli import main
from mlp.handles.compared_runs import Csv
from support.rigs.api_rig import BASE, ApiRig, parts_of_story
from support.waiting import wait_for

RUNS = "/users/ann/runs"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiRig]:
    with ApiRig(tmp_path_factory.mktemp("runs")) as rig:
        parts_of_story(rig)
        for number, name in enumerate(("one", "two"), 1):
            env = {"SIM_DURATION": "600"}
            rig.job(
                "ann",
                name,
                rig.ann,
                env=env,
                code=f"x = {number}\n",
                params={"lr": number / 10, "opt": "adam"},
            )
            rig.until("ann", name, "running")
            report(
                rig, name, [{"accuracy": number / 10, "loss": 3.0, SCRIPT: 1.0}, {"accuracy": number / 20}]
            )
        yield rig


def report(rig: ApiRig, name: str, values: list[dict[str, float]]) -> None:
    points = [{"n": n, "t": float(n), "v": {"step": n, **v}} for n, v in enumerate(values, 1)]
    path = f"/users/ann/job_metrics/{name}"
    answer = rig.ask("POST", path, {"source": "0.0.a", "points": points}, token=rig.ann)
    assert answer.json == {"last": len(points)}


def search(rig: ApiRig, token: str | None = None, path: str = RUNS, **query: object) -> Any:
    return rig.ask("GET", f"{path}?{urlencode(query)}", token=token or rig.ann)


def summed(rig: ApiRig, name: str) -> dict[str, Any]:
    """Return the run once what it reported is summed up."""

    def look() -> dict[str, Any] | None:
        (run,) = search(rig, search=f"name={name}").json["runs"]
        return run if run["metrics"] else None

    return wait_for(look, message=f"for {name} to be summed up")


@pytest.fixture
def shell(rig: ApiRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be ann in a shell of hers, in an empty directory."""
    socket = quote(str(rig.sockets[True]), safe="")
    monkeypatch.setenv("MLP_API_URL", f"http+unix://{socket}{BASE}")
    monkeypatch.setenv("MLP_TOKEN", rig.ann)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_runs_are_searched_sorted_and_paged(rig: ApiRig) -> None:
    one = summed(rig, "one")
    summed(rig, "two")
    assert one["metrics"]["accuracy"] == {"last": 0.05, "best": 0.1, "low": 0.05, "high": 0.1}
    assert (one["params"], one["metrics"]["loss"]["best"]) == ({"lr": 0.1, "opt": "adam"}, 3.0)
    found = search(rig, search="lr<0.15 best.accuracy>=0.1").json
    assert ([r["name"] for r in found["runs"]], found["total"], found["params"]) == (
        ["one"],
        1,
        ["lr", "opt"],
    )
    page = search(rig, search="lr>0", sort="-lr", limit=1).json
    assert ([r["name"] for r in page["runs"]], page["total"]) == (["two"], 2)
    rest = search(rig, search="lr>0", sort="-lr", limit=1, cursor=page["next"]).json
    assert ([r["name"] for r in rest["runs"]], rest["next"]) == (["one"], None)
    for query, says in (
        ({"search": "name~.*"}, "regular expressions are not supported"),
        ({"search": "lr<"}, "compares with nothing"),
        ({"search": "x" * 1001}, "at most 1000 characters"),
        ({"sort": "-"}, "is not a column"),
        ({"cursor": "nonsense"}, "cursor must be the value of next of the page before"),
        ({"limit": 1001}, "at most 1000"),
    ):
        answer = search(rig, **query)
        assert (answer.status, answer.json["reason"]) == (403, "Invalid"), query
        assert says in answer.json["msg"]


def test_tags_and_notes_of_a_run_are_bounded_and_stay_text(rig: ApiRig) -> None:
    for body, says in (
        ({"tags": ["two words"]}, "one word of at most 50"),
        ({"tags": ["x" * 51]}, "at most 50 characters"),
        ({"tags": [f"t{n}" for n in range(21)]}, "at most 20 entries"),
        ({"note": "x" * 2001}, "at most 2000 characters"),
    ):
        answer = rig.ask("PUT", f"{RUNS}/one", body, token=rig.ann)
        assert (answer.status, answer.json["reason"]) == (403, "Invalid")
        assert says in answer.json["msg"]
    note = f"=HYPERLINK(1) {SCRIPT}"
    written = rig.ask("PUT", f"{RUNS}/one", {"tags": ["best", SCRIPT], "note": note}, token=rig.ann)
    assert (written.json["tags"], written.json["note"]) == ([SCRIPT, "best"], note)
    answer = rig.ask("GET", f"{RUNS}:csv?search=lr%3C0.15", token=rig.ann)
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["x-content-type-options"] == "nosniff"
    (line,) = csv.DictReader(io.StringIO(answer.body.decode()))
    assert 0 < float(line["core_hours"]) < 1
    (listed,) = rig.ask("GET", f"{RUNS}?search=lr%3C0.15", token=rig.ann).json["runs"]
    assert line["submitted_at"] == listed["submitted_at"]
    assert line["submitted_at"].endswith("Z")
    assert (line["name"], line["note"], line["param.lr"], line["best.accuracy"]) == (
        "one",
        f"'{note}",
        "0.1",
        "0.1",
    )


@pytest.mark.parametrize("begin", list("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"))
def test_attacks_no_text_is_a_formula_in_a_spreadsheet_or_steers_a_terminal(rig: ApiRig, begin: str) -> None:
    note = f"{begin}cmd|' /C calc'!A0\x1b]0;title\x07\x1b[2J\u202e"
    assert rig.ask("PUT", f"{RUNS}/one", {"note": note}, token=rig.ann).status == 200
    text = rig.ask("GET", f"{RUNS}:csv?search=name=one", token=rig.ann).body
    (line,) = csv.DictReader(io.StringIO(text.decode(), newline=""))
    assert line["note"] == f"'{note}", "all of it is there, as a text"
    shown = repr(Csv(text))
    assert not set(shown) & set("\x1b\x07\r\u202e"), "nothing of it steers who looks at it"
    assert "calc" in shown


def test_many_are_acted_on_in_one_request_each_with_its_answer(rig: ApiRig) -> None:
    body = {"act": "tag", "runs": ["one", "two@1", "nobody"], "tags": ["both"]}
    told = rig.ask("PUT", f"{RUNS}:act", body, token=rig.ann).json
    assert [(o["run"], o["reason"]) for o in told] == [("one", ""), ("two@1", ""), ("nobody", "NotFound")]
    assert search(rig, search="tag=both").json["total"] == 2
    told = rig.ask("PUT", f"{RUNS}:act", {"act": "delete", "runs": ["one"]}, token=rig.ann).json
    assert told[0]["reason"] == "WrongState"
    too_many = {"act": "cancel", "runs": [f"j{n}" for n in range(1001)]}
    assert rig.ask("PUT", f"{RUNS}:act", too_many, token=rig.ann).json["reason"] == "Invalid"


def test_curves_are_thinned_out(rig: ApiRig) -> None:
    found = rig.ask("GET", f"{RUNS}/one/curves?by=step&metric=accuracy", token=rig.ann).json
    assert (found["run"]["name"], found["reported"]) == ("one", 2)
    assert found["curves"] == [{"metric": "accuracy", "rank": 0, "x": [1.0, 2.0], "y": [0.1, 0.05]}]
    both = rig.ask("GET", f"{RUNS}:curves?runs=one,two@1,one&by=time", token=rig.ann).json
    assert [c["run"]["name"] for c in both] == ["one", "two"]
    many = ",".join(f"j{n}" for n in range(51))
    assert "at most 50" in rig.ask("GET", f"{RUNS}:curves?runs={many}", token=rig.ann).json["msg"]
    assert rig.ask("GET", f"{RUNS}/one/curves?by=colour", token=rig.ann).json["reason"] == "Invalid"


def test_runs_of_others_are_not_there(rig: ApiRig) -> None:
    for path in (RUNS, f"{RUNS}:csv", f"{RUNS}:curves?runs=one", f"{RUNS}/one", f"{RUNS}/one/curves"):
        answer = rig.ask("GET", path, token=rig.bob)
        assert answer.status == 403, path
        assert b"accuracy" not in answer.body
    for path, body in ((f"{RUNS}/one", {"note": "x"}), (f"{RUNS}:act", {"act": "cancel", "runs": ["one"]})):
        assert rig.ask("PUT", path, body, token=rig.bob).status == 403
        assert rig.ask("PUT", path, body, token=rig.rita).status == 403, (
            "a tenant's admin looks and writes nothing"
        )
    of_red = "/tenants/red/runs"
    for token in (rig.ann, rig.bob):
        assert rig.ask("GET", of_red, token=token).status == 403
    found = search(rig, rig.rita, of_red, search="lr>0").json
    assert {(r["user"], r["name"]) for r in found["runs"]} == {("ann", "one"), ("ann", "two")}
    assert rig.ask("GET", f"{RUNS}/one", token=rig.rita).json["program"] == "x = 1\n"
    assert search(rig, rig.bob, "/users/bob/runs", search="user=ann").json["total"] == 0


def test_runs_of_several_people_can_be_compared_only_by_users_who_may_see_them(
    rig: ApiRig, shell: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del shell
    summed(rig, "one")
    rig.job("rita", "one", rig.rita, env={"SIM_DURATION": "600"}, code="x = 3\n", params={"lr": 0.3})

    def said(token: str, *words: str, status: int = 0) -> str:
        monkeypatch.setenv("MLP_TOKEN", token)
        assert main(words) == status, capsys.readouterr()
        out = capsys.readouterr()
        return re.sub(r"Request \w+", "Request ID", out.out or out.err)

    compared = said(rig.rita, "compare", "ann/one", "one")  # as the admin of their team
    for word in ("ann/one", "rita/one", "-x = 1", "+x = 3", "accuracy"):
        assert word in compared
    assert "ann/one" in said(rig.rita, "runs", "lr>0", "--tenant", "red")
    own = said(rig.ann, "compare", "ann/one@1", "two")
    assert "ann/one" not in own  # all are of one, so nobody has to be told whose
    missing = said(rig.bob, "compare", "ann/none", "ann/two", status=3)
    for token in (rig.bob, rig.ann):
        others = said(token, "compare", "rita/one", "rita/none", status=3)
        assert "accuracy" not in others
        assert "x = 3" not in others
    assert said(rig.bob, "compare", "ann/one", "ann/two", status=3).replace("one", "none") == missing


def test_the_command_lists_writes_and_compares(
    rig: ApiRig, shell: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del shell
    summed(rig, "one")
    summed(rig, "two")

    def said(*words: str, status: int = 0) -> str:
        assert main(words) == status, capsys.readouterr()
        out = capsys.readouterr()
        return out.out or out.err

    table = said("runs", "lr>0", "--sort", "lr")
    assert table.index("\none ") < table.index("\ntwo ")
    assert "2 runs" in table
    assert [r["name"] for r in json.loads(said("runs", "lr<0.15", "--json"))] == ["one"]
    assert said("runs", "lr<0.15", "--csv").startswith("name,run,user,tenant,state,reason,")
    assert "write no spaces around" in said("runs", "lr", "<", "1", status=3)
    assert "second thought" in said("runs", "note", "two", "second", "thought")
    assert "done" in said("runs", "tag", "two", "later")
    assert "later" in said("runs", "show", "two@1")
    compared = said("compare", "one", "two")
    for word in ("Parameters that differ", "lr", "-x = 1", "+x = 2", "accuracy", "--- one"):
        assert word in compared
    data = json.loads(said("compare", "one", "two", "--metric", "accuracy", "--json"))
    assert (data["params"], list(data["curves"])) == ({"lr": [0.1, 0.2]}, ["accuracy"])
    assert "which runs?" in said("compare", "one", status=2)
