from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from support.hubs.hub_stack import HubStack


@pytest.fixture(scope="module")
def stack(tmp_path_factory, request):
    """A hub, a proxy and a fake service; `STACK` of the module says how."""
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
