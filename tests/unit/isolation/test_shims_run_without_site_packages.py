"""The shim runs without site-packages: a checkout that is installed as editable has nothing beside the platform's own packages there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mlp_hub

LOADED = """
import sys
sys.path.append(sys.argv[1])
import mlp_hub.sandbox.shim.fork_server, mlp_hub.sandbox.shim.main, mlp_hub.sandbox.shim.slirp
print(*{name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - {"__main__"})
"""


def test_shims_load_nothing_but_the_standard_library_and_the_platform() -> None:
    top = Path(mlp_hub.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-IS", "-c", LOADED, str(top)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= {"mlp_hub", "mlp_language"}
