"""The magics in real kernels: what a notebook shows and what it keeps."""

from __future__ import annotations

import re

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from mlp.display.job_monitor import JOB_VIEW
from support.clients.mlp_stand_in import FAILED, FINISHED, RUNNING, StandIn, job_record, ranks
from support.waiting import PATIENCE_S

PROGRAM = "import mlp\nfor epoch in mlp.progress(range(3)):\n    mlp.report(loss=1 / (epoch + 1))\n"


@pytest.fixture
def world(monkeypatch, tmp_path):
    with StandIn() as stand_in:
        for name in (
            "JPY_SESSION_NAME",
            "VSCODE_PID",
            "VSCODE_CWD",
            "MLP_DISPLAY",
            "MLP_JOB",
            "JUPYTERHUB_USER",
        ):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
        for name, value in stand_in.env().items():
            monkeypatch.setenv(name, value)
        yield stand_in


def run(*cells, tmp_path, check=True):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(c) for c in ("%load_ext mlp", *cells)]
    )
    client = NotebookClient(notebook, timeout=PATIENCE_S, resources={"metadata": {"path": str(tmp_path)}})
    try:
        client.execute()
    except CellExecutionError:
        if check:
            raise
    return [cell.outputs for cell in notebook.cells[1:]]


def text(outputs):
    parts = [o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in outputs]
    parts += [
        re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(o.traceback)) for o in outputs if o.output_type == "error"
    ]
    return "\n".join(parts).strip()


def pictures(outputs):
    return [o for o in outputs if "text/html" in o.get("data", {})]


def test_without_a_front_end_a_cell_is_submitted_followed_and_drawn(world, tmp_path):
    (shown, result) = run(
        f"%%mlp submit --workers 2 --name digits --wait\n{PROGRAM}", "_mlp.result()", tmp_path=tmp_path
    )
    assert world.requests[0]["code"] == f"# %%mlp submit\n{PROGRAM}"
    assert "digits  running" in text(shown)
    (picture,) = pictures(shown)
    assert "finished" in picture.data["text/html"]
    assert "data:image/svg+xml" in picture.data["text/html"]
    assert "'epoch': 3" in text(result)


def test_a_submit_returns_at_once_and_its_picture_is_kept_right(world, tmp_path):
    world.step_every = 1.0
    (submitted, after, _) = run(
        f"%%mlp submit --name digits\n{PROGRAM}",
        "_mlp.phase",
        "_mlp.wait()",
        tmp_path=tmp_path,
    )
    assert text(after) == "'queued'"
    (picture,) = pictures(submitted)
    assert "<b style" in picture.data["text/html"]
    assert "digits  finished" in picture.data["text/plain"]


def test_a_cell_shows_its_job_and_a_picture_before_and_after_the_end(world, tmp_path, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "notebook.ipynb")
    world.jobs["runs"] = job_record("runs", **RUNNING, ranks=ranks("running"))
    (live, ended, _) = run(
        "%mlp watch runs",
        f"%%mlp submit --name digits\n{PROGRAM}",
        "_mlp.wait()",
        tmp_path=tmp_path,
    )
    (shown,) = pictures(live)
    assert (shown.data[JOB_VIEW]["user"], shown.data[JOB_VIEW]["name"]) == ("ann", "runs@1")
    assert "runs  running" in shown.data["text/plain"]
    (picture,) = pictures(ended)
    assert picture.data[JOB_VIEW]["name"] == "digits@1"
    assert picture.data[JOB_VIEW]["snapshot"]["job"]["phase"] == "finished"
    assert "digits  finished" in picture.data["text/plain"]
    assert not [d for o in (shown, picture) for d in o.data if "widget" in d], (
        "no model that a kernel must have"
    )


def test_an_ended_job_is_watched_as_live_as_any_other(world, tmp_path, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "notebook.ipynb")
    world.jobs["over"] = job_record("over", **FINISHED)
    (shown,) = run("%mlp watch over", tmp_path=tmp_path)
    (picture,) = pictures(shown)
    assert picture.data[JOB_VIEW]["name"].startswith("over")


@pytest.mark.parametrize("front", ["notebook.ipynb", ""])
def test_a_job_that_fails_while_a_cell_waits_is_told_once(world, tmp_path, monkeypatch, front):
    if front:
        monkeypatch.setenv("JPY_SESSION_NAME", front)
    world.script = [RUNNING, FAILED]
    (shown,) = run(f"%%mlp submit --name digits --wait\n{PROGRAM}", tmp_path=tmp_path, check=False)
    (picture,) = pictures(shown)
    others = text([o for o in shown if o is not picture])
    assert picture.data["text/html"].count("ValueError: no such digit") == 1
    assert "no such digit" not in others
    assert text(shown[-1:]) == "Job failed: digits: The program ended with an error (rank 1, exit code 3)"


def test_a_time_limit_without_a_unit_is_said_back_in_seconds(world, tmp_path):
    (bare, said, python) = run(
        f"%%mlp submit --name a --time-limit 5 --detach\n{PROGRAM}",
        f"%%mlp submit --name b --time-limit 5m --detach\n{PROGRAM}",
        "import mlp; _ = mlp.submit(code='1', name='c', time_limit=5)",
        tmp_path=tmp_path,
    )
    word = "--time-limit 5: a number without a unit is seconds, so the job is ended after 5 s; for 5 minutes write 5m"
    assert word in text(bare)
    assert text(said).startswith("b was submitted, time limit 5 min. Follow it")
    assert text(python) == word


def test_a_cell_that_runs_again_starts_the_next_run_or_shows_the_active_one(world, tmp_path):
    cell = f"%%mlp submit --name Lr-0.001 --wait\n{PROGRAM}"
    (first, second, one) = run(
        cell, cell, "import mlp; mlp.job('Lr-0.001@1').run, _mlp.reference", tmp_path=tmp_path
    )
    assert "Lr-0.001  finished" in text(first)
    assert "Lr-0.001 run 2  finished" in text(second)
    assert "(1, 'Lr-0.001@2')" in text(one)
    world.jobs["Lr-0.001"] = job_record("Lr-0.001", run=3, **RUNNING)
    (again,) = run(f"%%mlp submit --name Lr-0.001\n{PROGRAM}", tmp_path=tmp_path)
    word = "Nothing was submitted: Lr-0.001 run 3 still runs, and is shown here as it was submitted. To run it again, cancel it first, or give another --name"
    assert word in text(again)
    (picture,) = pictures(again)
    assert "Lr-0.001 run 3" in picture.data["text/html"]
    assert len([r for r in world.requests if r.get("name") == "Lr-0.001"]) == 3


def test_a_job_that_fails_fails_the_cell_that_waits_with_one_sentence(world, tmp_path):
    world.script = [RUNNING, FAILED]
    (shown,) = run(f"%%mlp submit --name digits --wait\n{PROGRAM}", tmp_path=tmp_path, check=False)
    error = shown[-1]
    assert error.output_type == "error"
    assert text([error]).startswith(
        "Job failed: digits: The program ended with an error (rank 1, exit code 3)"
    )
    assert "File" not in text([error])


def test_refusals_and_wrong_lines_are_one_sentence(world, tmp_path):
    world.jobs["digits"] = job_record(**FINISHED)
    for cell, said in [
        ("%mlp watch none", "Refused (NotFound): job none does not exist"),
        ("%%mlp submit --name -digits\n1", "beginning with a letter, a digit or _"),
        (
            "%%mlp submit --wrokers 2\n1",
            "Wrong input: %mlp submit has no option --wrokers. Did you mean --workers?",
        ),
        ("%%mlp submit\nx = = 1", "Syntax error: invalid syntax, in line 2 of the cell"),
        ("%mlp submit none.py", "Wrong input: none.py does not exist"),
        ("%%mlp jobs\n1", "a cell's text is a program"),
    ]:
        (shown,) = run(cell, tmp_path=tmp_path, check=False)
        assert said in text(shown)
        # a syntax error shows its line and a mark below the place, too
        assert len(text(shown).splitlines()) == (3 if said.startswith("Syntax error") else 1)


def test_a_program_that_reads_names_of_the_notebook_says_so_before_it_waits(world, tmp_path):
    world.jobs["digits"] = job_record(**FINISHED)
    line = "%%mlp submit --name digits --with names --detach"
    *_, shown = run(
        "lr, names = 0.1, ['a']\ndef model(): ...", f"{line}\nmodel(lr, names)", tmp_path=tmp_path
    )
    assert text(shown).startswith(
        "The program does not see lr, model of this notebook: send variables with --with"
    )
    (shown,) = run(f"{line.replace(' --with names', '')}\n{PROGRAM}", tmp_path=tmp_path)
    assert "does not see" not in text(shown)


def test_the_other_verbs_show_tables_and_sentences(world, tmp_path):
    world.jobs["digits"] = job_record()
    jobs, why, quota, offer, cancel, helped, job = run(
        "%mlp jobs", "%mlp why digits", "%mlp quota", "%mlp offer --workers 2", "%mlp cancel digits", "%mlp", "%mlp job digits",
        tmp_path=tmp_path,
    )  # fmt: skip
    assert re.search(r"^digits  1    queued  0 %.* place 1 in the queue$", text(jobs), re.MULTILINE)
    assert "<table" in jobs[0].data["text/html"]
    assert "red may use 4 cpu; 2.2 are in use" in text(why)
    assert "1.8" in text(quota)
    assert "Would start now: 2 ranks on n1" in text(offer)
    assert "digits was cancelled" in text(cancel)
    assert text(helped).count("\n  %") >= 10
    assert "digits  cancelled" in text(job)


def test_variables_travel_and_dollar_names_expand(world, tmp_path):
    (_, shown) = run(
        "lr, count, sizes = 0.5, 3, [1, 2]",
        "%%mlp submit --workers $count --with lr,sizes --name digits --detach\nprint(lr)",
        tmp_path=tmp_path,
    )
    (sent,) = world.requests
    assert sent["workers"] == 3
    assert sent["env"] == {"NOTEBOOK_VARIABLES": '{"lr": 0.5, "sizes": [1, 2]}'}
    assert sent["code"].splitlines()[1] == "print(lr)"
    assert "%mlp watch digits" in text(shown)


def test_the_tab_key_knows_options_and_names(world, tmp_path):
    world.jobs["digits"] = job_record()
    asked = """from IPython.core.completer import provisionalcompleter
with provisionalcompleter():
    print([sorted(c.text for c in get_ipython().Completer.completions(line, len(line))) for line in {!r}])"""
    lines = [
        "%mlp watch di",
        "%%mlp submit --worke",
        "%mlp submit --runtime t",
        "%mlp submit --runtime=m",
        "%mlp sub",
        "%mlp watch ",
    ]
    (shown,) = run(asked.format(lines), tmp_path=tmp_path)
    found = eval(text(shown))  # noqa: S307 - a list that we printed
    assert found[0] == ["digits"]
    assert found[1] == ["--workers"]
    assert found[2] == ["tf"]
    assert any(x.endswith("mpi") for x in found[3])
    assert found[4] == ["submit"]
    assert found[5] == ["digits"]  # and no word of Python


def test_an_interrupt_ends_the_waiting_and_not_the_job(world, tmp_path):
    world.script = [RUNNING]
    cell = (
        "import os, signal, threading\n"
        "threading.Timer(2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "get_ipython().run_cell_magic('mlp', 'submit --name digits --wait', 'print(1)')"
    )
    (shown,) = run(cell, tmp_path=tmp_path)
    assert "digits continues" in text(shown)
    assert world.jobs["digits"]["phase"] == "running"


def test_the_hub_going_away_for_a_moment_is_not_the_end_of_watching(world, tmp_path):
    world.drop_after = 4
    (shown,) = run(f"%%mlp submit --name digits --wait\n{PROGRAM}", tmp_path=tmp_path)
    assert "the connection was lost" in text(shown)
    assert "digits  finished" in text(shown)
