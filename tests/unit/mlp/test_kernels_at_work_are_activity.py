"""A notebook server is used while a kernel of it is at work, as what culls idle servers is told."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from types import SimpleNamespace

from mlp import kernelactivity

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_kernel_that_works_without_a_word_keeps_its_server_and_an_idle_one_does_not() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports
        from jupyter_server.serverapp import ServerWebApplication

    kernels = [
        {"id": "a", "execution_state": "idle"},
        {"id": "b", "execution_state": "starting"},
        {"id": "c"},
    ]
    settings = {
        "started": LONG_AGO,
        "kernel_manager": SimpleNamespace(last_kernel_activity=LONG_AGO),
        "last_activity_times": {"shutdown": LONG_AGO},
    }
    server = SimpleNamespace(
        kernel_manager=SimpleNamespace(list_kernels=lambda: kernels),
        web_app=SimpleNamespace(settings=settings),
    )
    kernelactivity.look(server)
    assert ServerWebApplication.last_activity(server.web_app) == LONG_AGO
    kernels[0]["execution_state"] = "busy"
    before = datetime.now(UTC)
    kernelactivity.look(server)
    assert ServerWebApplication.last_activity(server.web_app) >= before
