from __future__ import annotations

import logging

from mlp_hub.hub_integration.log import SafeFormatter


def test_text_from_a_notebook_cannot_forge_a_line_of_the_hubs_log() -> None:
    text = "ended: x\n[I 2026-01-01 00:00:00.000 JupyterHub app:1] User logged in: admin\r\x1b[2J\u202e"
    record = logging.LogRecord("JupyterHub", logging.WARNING, "f", 1, "Server of bob %s", (text,), None)
    first, second = SafeFormatter(fmt="[%(levelname)1.1s] %(message)s").format(record).split("\n")
    assert first == "[W] Server of bob ended: x"
    assert second.startswith("    [I 2026")
    assert second.endswith(r"admin\r\x1b[2J\u202e")
