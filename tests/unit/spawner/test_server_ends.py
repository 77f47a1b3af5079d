"""What is said of a server that ended: its last words, and no more than that."""

from __future__ import annotations

from pathlib import Path

from mlp_hub.sandbox import SandboxExit, SandboxPhase, SandboxState
from mlp_spawner.server import note_end, noted_end, why_it_ended

FORGED = "x\n[I 2026-01-01 00:00:00.000 JupyterHub app:1] User logged in: admin\r\n\x1b]0;t\x07\u202eend"


def test_the_last_words_of_a_notebook_forge_no_line_and_steer_no_terminal(tmp_path: Path) -> None:
    log = tmp_path / "rank-0.log"
    log.write_text("".join(f"2026-01-01T00:00:00Z stderr F {line}\n" for line in FORGED.split("\n")))
    for tail in (FORGED, ""):
        end = SandboxExit("program-error", 1.0, code=1, message=FORGED, tail=tail)
        said = str(why_it_ended(SandboxState(SandboxPhase.EXITED, 1, exit=end), tmp_path))
        assert said.isprintable()
        assert "x | [I 2026" in said
        assert said.endswith("| end")


def test_a_server_that_ran_out_of_memory_says_its_limit_and_is_remembered_for_its_user(
    tmp_path: Path,
) -> None:
    file = tmp_path / "-.ended.json"
    assert not noted_end(file)
    for stopped in (True, False):
        end = SandboxExit("signal", 1.0, signal=9, oom=True, stopped=stopped, ram_mib=512)
        state = SandboxState(SandboxPhase.EXITED, 1, exit=end)
        note_end(state, file)
        assert file.exists() is not stopped
    assert noted_end(file) == why_it_ended(state, tmp_path)
    assert noted_end(file).args == {"ram": 512}
    file.write_text("{")
    assert not noted_end(file)
