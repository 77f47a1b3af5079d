"""Notebooks in real sandboxes."""

from __future__ import annotations

import json
from pathlib import Path

from mlp_hub.executors.base import AttemptPhase
from support.executors.executor_lab import Lab
from support.files.notebook_files import notebook


def test_a_notebook_is_a_program_and_its_copy_is_in_the_run_s_directory(lab: Lab) -> None:
    home = lab.home("ann")
    (home / "work").mkdir()
    (home / "work" / "near.py").write_text("word = 'found'")
    (home / "work" / "a b.ipynb").write_text(
        notebook(
            "import near, os\nprint(near.word, os.getcwd())", "import mlp\nmlp.report(loss=1)", "undefined"
        )
    )
    for path in (home / "work", *(home / "work").iterdir()):
        if (uid := lab.uid("ann")) is not None:
            import os

            os.chown(path, uid, uid)
    spec = lab.spec(entry="work/a b.ipynb", env={"MLP_JOB": "j"})
    assert lab.run(spec).phase is AttemptPhase.FAILED
    lines = lab.output(spec)
    assert "found /home/ann/work" in lines
    assert lines[-1] == "cell 3 of 3 failed: NameError: name 'undefined' is not defined"
    workspace = Path(lab.workspace(spec))
    cells = json.loads((workspace / "a b.ipynb").read_text())["cells"]
    assert [output["output_type"] for cell in cells for output in cell["outputs"]] == ["stream", "error"]
    points = [file.read_text() for file in (workspace / "metrics").glob("*.jsonl")]
    assert any('"loss":1' in text for text in points)
    assert not list(home.glob(".local/share/jupyter/runtime/*"))
