"""What is said of a server that ended: its last words, and no more than that."""

from __future__ import annotations

from pathlib import Path

from mlp_hub.executors.sandbox import SandboxExit, SandboxPhase, SandboxState
from mlp_spawner.server import why_it_ended

FORGED = "x\n[I 2026-01-01 00:00:00.000 JupyterHub app:1] User logged in: admin\r\n\x1b]0;t\x07\u202eend"


def test_the_last_words_of_a_notebook_forge_no_line_and_steer_no_terminal(tmp_path: Path) -> None:
    log = tmp_path / "rank-0.log"
    log.write_text("".join(f"2026-01-01T00:00:00Z stderr F {line}\n" for line in FORGED.split("\n")))
    for tail in (FORGED, ""):
        end = SandboxExit("program-error", 1.0, code=1, message=FORGED, tail=tail)
        said = why_it_ended(SandboxState(SandboxPhase.EXITED, 1, exit=end), tmp_path)
        assert said.isprintable()
        assert "x | [I 2026" in said
        assert said.endswith("| end")
