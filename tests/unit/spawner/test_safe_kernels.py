"""Kernels load nothing of the directory that they start in, whichever environment they are of and however old it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import mlp_spawner
from mlp_hub.sandbox import ENVIRONMENTS_AT
from mlp_spawner.kernelspecs import SafeKernelSpecs

CONFIG = Path(mlp_spawner.__file__).parent / "etc" / "ipython" / "ipython_config.py"


@pytest.mark.parametrize(
    ("argv", "safe"),
    [
        ([f"{ENVIRONMENTS_AT}/pets/bin/python", "-m", "ipykernel_launcher"], True),  # as it was made once
        ([f"{ENVIRONMENTS_AT}/pets/bin/python", "-P", "-m", "ipykernel_launcher"], True),
        (["/home/ann/old/bin/python", "-m", "ipykernel_launcher"], False),  # which may not know it
        ([], False),
    ],
)
def test_a_kernel_of_an_environment_starts_with_it(tmp_path: Path, argv: list[str], safe: bool) -> None:
    (tmp_path / "pets").mkdir()
    spec = {"argv": argv, "display_name": "pets", "language": "python"}
    (tmp_path / "pets" / "kernel.json").write_text(json.dumps(spec))
    found = SafeKernelSpecs(kernel_dirs=[str(tmp_path)]).get_kernel_spec("pets").argv
    assert found.count("-P") == safe
    assert [word for word in found if word != "-P"] == [word for word in argv if word != "-P"]


def test_an_ipython_that_does_not_know_of_it_is_told() -> None:
    program = (
        "import sys; from traitlets.config import Config; c = Config(); path = sys.argv[1]\n"
        "exec(compile(open(path).read(), path, 'exec'), {'get_config': lambda: c})\n"
        "print(c.InteractiveShellApp.ignore_cwd)"
    )
    words = [sys.executable, "-c", program, str(CONFIG)]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip() == "True"
