"""What a sample writes is what the next step takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import mlp
from mlp.serving import loaders


def program_of(sample: str) -> str:
    """Return the program below the magic of a sample's first cell of code."""
    cells = json.loads((Path(mlp.__file__).parent / "samples" / sample).read_text())["cells"]
    return next("".join(c["source"]) for c in cells if c["cell_type"] == "code").partition("\n")[2]


def test_a_trial_of_the_sweep_continues_from_its_file_and_an_app_serves_it(tmp_path: Path) -> None:
    whole = program_of("04-digits-sweep.ipynb")
    assert "epochs = 27\n" in whole

    def run(epochs: int) -> list[str]:
        given = {"MLP_CHECKPOINT_DIR": str(tmp_path), "MLP_PARAMS": '{"hidden": 8, "lr": 0.01}'}
        text = whole.replace("epochs = 27\n", f"epochs = {epochs}\n")
        done = subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, **given},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [line.partition("  accuracy")[0] for line in done.stdout.splitlines()]

    assert run(2) == ["epoch  1", "epoch  2"]
    assert run(3) == ["epoch  3"]
    assert [path.name for path in tmp_path.iterdir()] == ["model.joblib"]
    model = loaders.load(tmp_path)
    found = model.predict({"input": np.zeros((2, 64))})["predict"]
    assert set(found.tolist()) <= set(range(10))
