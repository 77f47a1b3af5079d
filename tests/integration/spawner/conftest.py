from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[2] / "support"


def _load(name: str):
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, SUPPORT / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


for _name in ("hub_stack", "kernel_client"):
    _load(_name)


@pytest.fixture(scope="module")
def stack(tmp_path_factory, request):
    """A hub, a proxy and a fake service; `STACK` of the module says how."""
    from hub_stack import HubStack

    # Short, because of the sockets; new each time, because a run that was killed leaves its accounts behind.
    home = Path(tempfile.mkdtemp(prefix="mlp-t", dir="/tmp"))
    home.chmod(0o755)  # other users pass through it
    made = HubStack(home, **getattr(request.module, "STACK", {}))
    try:
        made.up()
        yield made
    finally:
        print(made.log("hub")[-3000:], made.log("proxy")[-1500:])
        made.down()
