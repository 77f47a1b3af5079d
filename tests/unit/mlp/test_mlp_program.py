"""From what a person writes to the request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlp.errors import ProgramError, UsageError
from mlp.submitting import program

NOTEBOOK = {"JUPYTERHUB_USER": "ann"}
NAMES = json.loads((Path(__file__).parents[3] / "widgets/test/jobs/jobnames.json").read_text())


def build(given=None, **more):
    return program.build(given or {}, env={}, clock=lambda: 0, **more)


def run(text, variables):
    space = {"__name__": "__main__"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(program.VARIABLES, json.dumps(variables))
        exec(compile(text, "cell", "exec"), space)  # noqa: S102 - as a job would run it
    return space


def test_only_what_differs_from_the_defaults_is_sent():
    body = build({"name": "digits", "workers": 2, "cpu": 1.0, "ram": 1024}, code="print(1)\n")
    assert body == {"name": "digits", "workers": 2, "code": "print(1)\n"}


def test_a_job_without_a_name_is_named_after_runtime_and_date():
    assert build(code="1", given={"workers": 2})["name"].startswith("mpi-0101-")
    assert build(code="1")["name"].startswith("plain-0101-")


@pytest.mark.parametrize(("file", "name"), NAMES)
def test_a_file_without_another_name_gives_its_own_as_in_the_form_of_jupyterlab(tmp_path, file, name):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"cells": [{"cell_type": "code", "source": "1"}]}' if file.endswith(".ipynb") else "1\n")
    made = program.build({}, entry=path, env={}, clock=lambda: 0)["name"]
    assert made == (name or "plain-0101-000000")


def test_nothing_to_run_and_two_programs_are_refused():
    with pytest.raises(UsageError, match="nothing to run"):
        build()
    with pytest.raises(UsageError, match="nothing to run"):
        build(code="  \n")
    with pytest.raises(UsageError, match="both"):
        build(code="1", entry="a.py")


def test_a_script_is_named_relative_to_the_home_directory(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "train.py").write_text("1")
    monkeypatch.chdir(tmp_path / "sub")
    body = program.build({}, entry="train.py", env={**NOTEBOOK, "HOME": str(tmp_path)}, args=["--epochs", 5])
    assert body["entry"] == "sub/train.py"
    assert body["args"] == ["--epochs", "5"]


def test_a_script_that_is_not_there_or_outside_of_the_home_is_refused(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        build(entry=tmp_path / "no.py")
    with pytest.raises(UsageError, match="a directory"):
        build(entry=tmp_path)
    (tmp_path / "a.py").write_text("1")
    with pytest.raises(UsageError, match="not below your home"):
        program.build({}, entry=tmp_path / "a.py", env={**NOTEBOOK, "HOME": str(tmp_path / "home")})


def test_from_another_machine_a_script_travels_as_text(tmp_path):
    (tmp_path / "a.py").write_text("print('ä')")
    assert build(entry=tmp_path / "a.py")["code"] == "print('ä')"


def test_a_program_that_does_not_parse_is_refused_with_its_line():
    with pytest.raises(ProgramError) as told:
        build(code="import os\nx = = 1")
    assert str(told.value).splitlines() == [
        "invalid syntax, in line 2 of the cell. Nothing was submitted",
        "    x = = 1",
        "        ^",
    ]
    assert told.value._render_traceback_()[0].startswith("Syntax error: invalid syntax")
    with pytest.raises(ProgramError, match=r"'\(' was never closed, in line 2 of the cell"):
        build(code="a = 1\nprint((1)")
    with pytest.raises(UsageError, match="lines with ! and %"):
        build(code="!pip install x")


def test_a_tenants_own_runtime_may_run_anything():
    assert build({"runtime": "julia"}, code="println(1) end")["code"] == "println(1) end"


def test_a_program_that_is_too_long_is_refused():
    with pytest.raises(UsageError, match="at most 1,048,576"):
        build(code="#" * program.CODE_LIMIT + "\n1")


@pytest.mark.parametrize(
    "text",
    [
        "# %%mlp submit\nline = __import__('sys')._getframe().f_lineno\nfound = (lr, names)",
        '"""Text."""\nline = __import__(\'sys\')._getframe().f_lineno\nfound = (lr, names)',
        "from __future__ import annotations  # ü\nline = __import__('sys')._getframe().f_lineno\nfound = (lr, names)",
    ],
)
def test_variables_are_there_from_the_first_line_and_move_no_line(text):
    space = run(program.with_prologue(text), {"lr": 0.1, "names": ["ä"]})
    assert space["found"] == (0.1, ["ä"])
    assert space["line"] == 2


def test_a_docstring_stays_one():
    assert run(program.with_prologue('"""Text."""\nx = lr'), {"lr": 1})["__doc__"] == "Text."


def test_variables_of_numpy_become_plain():
    np = pytest.importorskip("numpy")
    text = program.variables_json({"a": np.float32(0.5), "b": np.arange(3), "c": {"d": (1, 2)}})
    assert json.loads(text) == {"a": 0.5, "b": [0, 1, 2], "c": {"d": [1, 2]}}


def test_variables_that_cannot_be_sent_are_named():
    with pytest.raises(UsageError, match="model cannot be sent"):
        program.variables_json({"lr": 1, "model": object()})
    with pytest.raises(UsageError, match="loss cannot be sent"):
        program.variables_json({"loss": float("nan")})
    with pytest.raises(UsageError, match=r"data has 7.*at most 65,536"):
        program.variables_json({"data": "x" * 70_000})


SPACE = {
    "lr": 0.1,
    "np": object(),
    "model": print,
    "In": [],
    "_": 1,
    "data": [],
    "i": 0,
    "self": 1,
    "print": print,
}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("print(model(lr))", "lr, model"),
        ("def f(lr):\n    return np.sum(lr)\nf(1)", "np"),
        ("import numpy as np\nfor i in range(3):\n    lr = i\nprint(np, lr)", ""),
        ("def f():\n    global data\n    data = []\nf()\nprint(data)", ""),
        ("class A:\n    def f(self):\n        return self\nprint([i for i in range(2)])", ""),
        ("display(1)", "display"),
        ("print(_, __name__)", ""),
        ("print(undefined)", ""),  # of a mistake its failure tells
        ("from mine import *\nprint(lr)", ""),
        ("print(lr", ""),
        ("np.sum(lr, model, data, i, self, In)", "In, data, i, lr, model ..."),
    ],
)
def test_names_of_the_notebook_that_a_program_does_not_see_are_told(text, names):
    said = program.unseen(text, SPACE)
    assert said == (
        names
        and f"The program does not see {names} of this notebook: send variables with --with, import or define the rest in the cell"
    )


def test_a_variable_that_is_sent_is_seen():
    assert program.unseen("print(lr)", SPACE, ("lr",)) == ""
