"""Notebooks run as jobs run them, with real kernels: log, progress, curves, copy, and how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.files.notebook_files import PICTURE, everything, notebook, written
from support.waiting import PATIENCE_S, wait_for


@dataclass
class Ran:
    status: int
    out: str
    err: str
    workspace: Path

    @property
    def copy(self) -> list[dict[str, Any]]:
        return json.loads((self.workspace / "work.ipynb").read_text())["cells"]

    @property
    def points(self) -> list[dict[str, float]]:
        files = (self.workspace / "metrics").glob("*.jsonl")
        return [json.loads(line)["v"] for file in files for line in file.read_text().splitlines()[1:]]

    @property
    def last(self) -> str:
        return (self.err.splitlines() or self.out.splitlines())[-1]


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    (tmp_path / "home" / "sub").mkdir(parents=True)

    def go(text: str, **env: str) -> subprocess.Popen[str]:
        (tmp_path / "home" / "sub" / "work.ipynb").write_text(text)
        known = {k: v for k, v in os.environ.items() if not k.startswith(("MLP_", "JUPYTER", "VIRTUAL_"))}
        mine = {
            "HOME": str(tmp_path / "home"),
            "MLP_JOB": "j",
            "MLP_RANK": "0",
            "MLP_WORKSPACE": str(tmp_path),
        }
        return subprocess.Popen(
            [sys.executable, "-u", "-m", "mlp.notebook_run", "sub/work.ipynb"],
            cwd=tmp_path / "home",
            env={**known, **mine, "MLP_METRICS_DIR": str(tmp_path / "metrics"), **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return go


@pytest.fixture
def run(start: Start, tmp_path: Path) -> Callable[..., Ran]:
    def go(text: str, **env: str) -> Ran:
        process = start(text, **env)
        out, err = process.communicate(timeout=PATIENCE_S)
        return Ran(process.returncode, out, err, tmp_path)

    return go


def test_cells_run_with_parameters_and_their_curves_and_the_copy_has_all(run: Callable[..., Ran]) -> None:
    ran = run(
        notebook(
            ("lr = 1.0", "parameters"),
            "import mlp, pathlib\nmlp.report(loss=lr)\nprint('here', pathlib.Path.cwd().name, mlp.params.lr)",
            "%mlp help submit\nlr",
        ),
        MLP_PARAMS='{"lr": 0.25}',
    )
    assert ran.status == 0, ran.err
    assert "here sub 0.25" in ran.out
    assert ran.out.splitlines()[-2:] == ["0.25", f"executed copy: {ran.workspace}/work.ipynb"]
    assert {"loss": 0.25} in ran.points
    assert [p["progress"] for p in ran.points if "progress" in p] == [0, 25.0, 50.0, 75.0, 100.0]
    assert [cell["execution_count"] for cell in ran.copy] == [1, 2, 3, 4]


def saved_by_jupyter(tmp_path: Path, *cells: str | tuple[str, str]) -> str:
    """Return a notebook's file as the server of JupyterLab writes it, in a process with its own filters of warnings."""
    there = tmp_path / "saved"
    there.mkdir()
    model = {"type": "notebook", "format": "json", "content": everything(*cells)}
    program = (
        "import json, sys; from jupyter_server.services.contents.filemanager import FileContentsManager as Files\n"
        "Files(root_dir=sys.argv[1]).save(json.load(sys.stdin), 'work.ipynb')"
    )
    words = [sys.executable, "-c", program, str(there)]
    subprocess.run(words, input=json.dumps(model), text=True, check=True, timeout=PATIENCE_S)
    return (there / "work.ipynb").read_text()


@pytest.mark.parametrize("tagged", [True, False])
def test_cells_have_the_numbers_of_the_notebook_that_its_author_sees(
    run: Callable[..., Ran], tmp_path: Path, tagged: bool
) -> None:
    first: str | tuple[str, str] = ("lr = 1.0", "parameters") if tagged else "import os"
    text = saved_by_jupyter(tmp_path, first, "print('two', lr)", "", "1 / 0", "print('never')")
    ran = run(text, MLP_PARAMS='{"lr": 0.25}')
    assert ran.last == "cell 3 of 4 failed: ZeroDivisionError: division by zero"
    cells = [line for line in ran.out.splitlines() if line.startswith("[")]
    injected = ["[cell 1 of 4]", "[parameters]"] if tagged else ["[parameters]", "[cell 1 of 4]"]
    assert cells == [*injected, "[cell 2 of 4]", "[cell 3 of 4]"]
    assert "two 0.25" in ran.out


def test_an_executed_copy_that_runs_again_keeps_its_numbers(run: Callable[..., Ran]) -> None:
    text = notebook(("lr = 1", "parameters"), ("lr = 2", "injected-parameters"), "1 / 0")
    ran = run(text, MLP_PARAMS='{"lr": 3}')
    assert ran.last == "cell 3 of 3 failed: ZeroDivisionError: division by zero"


def test_parameters_that_are_not_python_fail_in_their_cell(run: Callable[..., Ran]) -> None:
    ran = run(notebook("print(lr)"), MLP_PARAMS='{"lr": NaN}')
    assert ran.last == "the cell of parameters failed: NameError: name 'nan' is not defined"


@pytest.mark.parametrize("minor", [0, 4, 5])
def test_a_file_with_texts_outputs_and_pictures_runs_and_its_copy_has_them(
    run: Callable[..., Ran], minor: int
) -> None:
    ran = run(written(everything("a = 1\nb = 2\nprint('sum', a + b)", "a", minor=minor)))
    assert ran.status == 0, ran.err
    assert "sum 3" in ran.out
    words, first, _, raw = ran.copy
    assert [o["output_type"] for o in first["outputs"]] == ["stream"]
    assert "".join(raw["source"]) == "raw\ntext"
    if minor:
        assert "".join(words["attachments"]["a.png"]["image/png"]) == PICTURE


def test_a_cell_that_fails_ends_it_with_its_number_and_the_copy_has_the_traceback(
    run: Callable[..., Ran],
) -> None:
    ran = run(notebook("print('x' * 9_000_000)", "1 / 0", "print('never')"))
    assert ran.status == 1
    assert ran.last == "cell 2 of 3 failed: ZeroDivisionError: division by zero"
    assert len(ran.out) > 9_000_000
    printed, failed, never = (cell["outputs"] for cell in ran.copy)
    assert len("".join(printed[0]["text"])) == 8_000_000
    assert "More output than is kept here" in "".join(printed[-1]["text"])
    assert (failed[0]["output_type"], failed[0]["ename"], never) == ("error", "ZeroDivisionError", [])


def test_a_notebook_that_is_asked_to_end_can_save_and_reports_where_it_stopped(
    start: Start, tmp_path: Path
) -> None:
    waits = "import time\ntry:\n    print('waits', flush=True); time.sleep(600)\nfinally:\n    print('saved')"
    process = start(notebook(waits, "print('never')"))
    assert process.stdout is not None
    wait_for(lambda: "waits" in process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=PATIENCE_S)
    ran = Ran(process.returncode, out, err, tmp_path)
    assert (ran.status, ran.last) == (143, "stopped in cell 1 of 2")
    assert "saved" in ran.out
    assert [o["output_type"] for o in ran.copy[0]["outputs"]][-1] == "error"


def test_one_that_was_saved_with_an_environments_kernel_runs_in_the_jobs(run: Callable[..., Ran]) -> None:
    ran = run(notebook("print('here')", kernel="mlp-env-tools"), VIRTUAL_ENV=sys.prefix)
    assert (ran.status, "here" in ran.out) == (0, True), ran.err


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (
            notebook("import os; os._exit(3)"),
            1,
            "the kernel ended in cell 1 of 1: the cell ended it with exit status 3",
        ),
        (
            notebook("import ctypes; ctypes.string_at(0)"),
            1,
            "the kernel ended in cell 1 of 1: it crashed (SIGSEGV) in compiled code",
        ),
        (
            notebook("input('how many? ')"),
            1,
            "nobody answers questions in a job; give the value with --param",
        ),
        (notebook("raise SystemExit"), 0, "To exit: use"),
        (
            notebook("1", kernel="nowhere"),
            2,
            "kernel nowhere does not exist where the job runs; available: python3",
        ),
        (
            notebook("1", kernel="mlp-env-tools"),
            2,
            "saved with the kernel of environment tools: submit it with --env-name tools",
        ),
    ],
)
def test_each_other_end_says_what_it_was(run: Callable[..., Ran], text: str, status: int, said: str) -> None:
    ran = run(text)
    assert (ran.status, said in ran.last) == (status, True), ran.err
    assert ("Fatal Python error: Segmentation fault" in ran.err) == ("SIGSEGV" in said)


def test_exit_in_a_cell_ends_it_well_and_no_cell_behind_it_runs(run: Callable[..., Ran]) -> None:
    ran = run(notebook("print('enough'); exit()", *["print('never')"] * 3))
    assert ran.status == 0, ran.err
    assert "enough" in ran.out
    assert "never" not in ran.out


def test_a_notebook_copy_that_cannot_be_written_is_a_failure(run: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "work.ipynb").mkdir()
    ran = run(notebook("1"))
    assert ran.status == 1
    assert "cannot be written" in ran.last
