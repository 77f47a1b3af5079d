"""A notebook as a job's program: what can be one, how parameters get in, what is kept of its outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlp import notebook_run
from mlp.errors import UsageError
from mlp.notebooks import notebook_files
from mlp.notebooks.outputs import MOST_OF_CELL, MOST_OF_ERROR, MOST_OUTPUTS, CopiedOutputs
from mlp.submitting import program
from support.files.notebook_files import document, everything, notebook, old, written


def build(
    path: Path, given: dict[str, Any] | None = None, *, home: Path | None = None, **more: Any
) -> dict[str, Any]:
    env = {} if home is None else {"JUPYTERHUB_USER": "ann", "HOME": str(home)}
    return program.build(given or {}, entry=path, env=env, clock=lambda: 0, **more)


def test_a_notebook_of_the_home_is_named_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "work.ipynb"
    path.write_text(notebook("1"))
    assert build(path, {"params": {"lr": 0.1}}, home=tmp_path) == {
        "name": "work",
        "entry": "work.ipynb",
        "params": {"lr": 0.1},
    }


def test_from_another_machine_it_travels_without_its_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "it's.ipynb"
    text = 'print(\'ä """ \\n\')\nprint(2)'
    shown = everything(text)
    shown.cells[1].outputs[0].text = "x" * 2_000_000
    path.write_text(written(shown))
    ran: list[tuple[str, str]] = []
    monkeypatch.setattr("mlp.notebook_run.run_text", lambda name, text: ran.append((name, text)))
    with pytest.raises(SystemExit):
        exec(build(path)["code"], {})  # noqa: S102 - as a job would run it
    ((name, carried),) = ran
    cells = json.loads(carried)["cells"]
    assert (name, cells[1]["source"], cells[1]["outputs"]) == ("it's.ipynb", text, [])
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "raw"]


@pytest.mark.parametrize("minor", range(6))
def test_a_file_that_nbformat_wrote_is_read_whatever_its_minor_version(minor: int) -> None:
    text = written(everything("a = 1\nb = 2\n", ("c = 0\n", "parameters"), minor=minor))
    assert isinstance(json.loads(text)["cells"][1]["source"], list)
    found = notebook_files.read("work.ipynb", text.encode("utf-8-sig"))
    assert [cell["source"] for cell in found["cells"]][1:3] == ["a = 1\nb = 2\n", "c = 0\n"]
    assert notebook_files.inject(found, {"c": 1}) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("{", "broken JSON"),
        ("[" * 100_000, "broken JSON"),
        ("[]", "lacks nbformat"),
        ("{}", "lacks nbformat"),
        ('{"nbformat": 4}', "no list of cells"),
        ('{"nbformat": 4, "cells": [1]}', "no list of cells"),
        (old("1"), "old format 3"),
        (notebook(), "no cell with code"),
        (notebook("  \n", ("1", "skip-execution")), "no cell with code"),
        (
            notebook("1", "%%mlp submit --workers 2\nprint(1)"),
            r"cell 2 of .* submits a job itself \(%%mlp submit\)",
        ),
        (notebook("1\n  %mlp  sweep a.py --grid lr=1"), "cell 1 of .* submits a job itself"),
    ],
)
def test_a_notebook_that_cannot_be_a_job_is_refused_before_it_waits(
    tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "work.ipynb"
    path.write_text(text)
    with pytest.raises(UsageError, match=why):
        build(path)


def test_a_cell_that_submits_may_be_left_out_or_only_ask(tmp_path: Path) -> None:
    path = tmp_path / "work.ipynb"
    path.write_text(
        notebook("1", ("%%mlp submit\n1", "skip-execution"), "%mlp submit a.py --dry-run", "%mlp jobs")
    )
    assert build(path, home=tmp_path)["entry"] == "work.ipynb"


@pytest.mark.parametrize("given", [{"workers": 2}, {"workers": "1:2"}, {"ps": 1}])
def test_a_notebook_has_one_worker(tmp_path: Path, given: dict[str, Any]) -> None:
    (tmp_path / "work.ipynb").write_text(notebook("1"))
    with pytest.raises(UsageError, match="one kernel"):
        build(tmp_path / "work.ipynb", given)


def test_a_notebook_takes_parameters_for_arguments(tmp_path: Path) -> None:
    (tmp_path / "work.ipynb").write_text(notebook("1"))
    with pytest.raises(UsageError, match=r"--param lr=0\.1"):
        build(tmp_path / "work.ipynb", args=["--lr", "0.1"])


def sources(of: dict[str, Any]) -> list[str]:
    return [notebook_files.source(cell) for cell in of["cells"]]


def test_parameters_follow_the_cell_that_is_tagged_for_them_and_replace_earlier_ones() -> None:
    given = document(
        "import os", ("lr = 1\nname = 'a'", "parameters"), ("lr = 9", "injected-parameters"), "print(lr)"
    )
    assert notebook_files.inject(given, {"lr": 0.5, "name": "b'\n", "deep": True}) == [
        "parameter deep is not among those of the cell tagged parameters"
    ]
    assert sources(given) == [
        "import os",
        "lr = 1\nname = 'a'",
        '# Parameters\nlr = 0.5\nname = "b\'\\n"\ndeep = True',
        "print(lr)",
    ]
    assert given["cells"][2]["metadata"] == {"tags": ["injected-parameters"]}


def test_without_such_a_cell_they_come_first_and_without_parameters_nothing_changes() -> None:
    given = document("print(lr)")
    assert notebook_files.inject(given, {"lr": 1, "a.b": 2, "class": 3}) == []
    assert sources(given)[0].splitlines() == [
        "# Parameters",
        "lr = 1",
        "# a.b is in mlp.params['a.b']",
        "# class is in mlp.params['class']",
    ]
    assert notebook_files.inject(untouched := document("1"), {}) == []
    assert untouched == document("1")


def test_a_parameter_that_a_later_cell_overwrites_is_said_to_have_no_effect() -> None:
    given = document("import os", "lr = 0.01\nlr = lr / 2", "width = 3", "lr = 1", "print(lr, depth)")
    assert notebook_files.inject(given, {"width": 5, "lr": 0.5, "depth": 2}) == [
        "parameter width may have no effect: cell 3 assigns width; give that cell the tag parameters",
        "parameter lr may have no effect: cell 2 assigns lr; give that cell the tag parameters",
    ]


def test_other_languages_are_told_where_parameters_are() -> None:
    given = document("x <- 1", kernel="ir", language="R")
    (said,) = notebook_files.inject(given, {"lr": 1})
    assert "MLP_PARAMS" in said
    assert sources(given) == ["x <- 1"]


def test_kept_outputs_of_a_cell_are_limited_and_texts_keep_their_beginning() -> None:
    kept = CopiedOutputs()
    first = kept.fitting(0, "stream", {"name": "stdout", "text": "x" * (MOST_OF_CELL + 5)})
    assert first is not None
    assert len(first["text"]) == MOST_OF_CELL
    assert kept.fitting(0, "stream", {"name": "stdout", "text": "y"}) is None
    assert kept.fitting(0, "display_data", {"data": {"text/plain": "a"}}) is None
    assert [kept.first_lost(0), kept.first_lost(0), kept.first_lost(1)] == [True, False, True]
    kept.cleared(0)
    assert kept.fitting(0, "stream", {"name": "stdout", "text": "y"}) == {"name": "stdout", "text": "y"}


def test_all_cells_together_are_bounded_and_an_error_is_kept_always() -> None:
    kept = CopiedOutputs()
    for cell in range(MOST_OUTPUTS // MOST_OF_CELL):
        assert kept.fitting(cell, "stream", {"text": "x" * MOST_OF_CELL})
    assert kept.fitting(99, "stream", {"text": "x"}) is None
    long = "x" * (MOST_OF_ERROR + 5)
    error = kept.fitting(99, "error", {"ename": "E", "evalue": long, "traceback": [long]})
    assert error == {"ename": "E", "evalue": long[:-5], "traceback": [long[5:]]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"nbformat": 4, "nbformat_minor": 5, "cells": [{"cell_type": "cod', "broken JSON"),
        (
            '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code", "source": "1"}]}',
            "is not a notebook",
        ),
        (notebook("%%mlp submit\n1"), "submits a job itself"),
    ],
)
def test_a_job_says_what_is_wrong_before_a_kernel_starts(
    text: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert notebook_run.run_text("work.ipynb", text) == notebook_run.UNUSABLE
    assert said in capfd.readouterr().err


def test_its_cells_run_in_its_directory_or_in_that_of_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/work.ipynb").write_text(notebook("1"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(notebook_run, "_run", lambda *given: given[-1])
    monkeypatch.delenv("MLP_WORKDIR", raising=False)
    assert notebook_run.run_file("sub/work.ipynb") == tmp_path / "sub"
    monkeypatch.setenv("MLP_WORKDIR", str(tmp_path))
    assert notebook_run.run_file("sub/work.ipynb") == tmp_path
