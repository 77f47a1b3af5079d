"""What the shim says of ranks that were taken along, and which frames of a traceback it keeps."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mlp_hub.executors import runtimes
from mlp_hub.executors.runtimes.base import Shape
from mlp_hub.executors.shim.outcome import Failure, mark_stopped, without_launcher
from mlp_hub.executors.shim.ranks import Rank

LAUNCHED = """warming up
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "<frozen runpy>", line 88, in _run_code
  File "/env/lib/python3.11/site-packages/mpi4py/__main__.py", line 8, in <module>
    main()
    ^^^^^^
  File "/env/lib/python3.11/site-packages/mpi4py/run.py", line 53, in run_command_line
    run_path(sys.argv[0], run_name="__main__")
  File "<frozen runpy>", line 291, in run_path
"""
OWN = """  File "/workspace/code/main.py", line 9, in <module>
    train()
  File "/usr/lib/python3.11/runpy.py", line 3, in called_by_the_program
    raise ValueError("boom")
ValueError: boom
    an indented line of its own"""


def test_a_traceback_begins_with_the_programs_own_frames() -> None:
    head = "warming up\nTraceback (most recent call last):\n"
    assert without_launcher(LAUNCHED + OWN) == head + OWN


def test_both_tracebacks_of_a_chain_lose_the_launchers_frames() -> None:
    between = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    assert without_launcher(LAUNCHED + OWN + between + LAUNCHED + OWN).count("runpy") == 2


def test_a_tail_that_begins_within_a_traceback_keeps_what_is_the_programs() -> None:
    assert without_launcher(LAUNCHED.partition("last):\n")[2] + OWN) == OWN


@pytest.mark.parametrize("text", ["", "out of data", '    indented\n  File "a.txt" was read', OWN])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert without_launcher(text) == text


def ended(state: str, code: int | None = None, signal: int | None = None, asked: bool = False) -> Rank:
    rank = Rank(0, "worker")
    rank.state, rank.code, rank.signal, rank.asked = state, code, signal, asked
    return rank


def states(failure: Failure | None, *ranks: Rank) -> list[str]:
    for number, rank in enumerate(ranks):
        rank.number = number
    mark_stopped(SimpleNamespace(failure=failure, ranks=list(ranks)))  # type: ignore[arg-type]
    return [rank.state for rank in ranks]


def test_ranks_that_the_first_failure_took_along_are_stopped_and_none_stays_pending() -> None:
    first = Failure("program-error", 1, 1)
    ranks = (
        ended("failed", None, 9),
        ended("failed", 1),
        ended("pending"),
        ended("failed", 3),
        ended("finished", 0),
    )
    assert states(first, *ranks) == ["stopped", "failed", "stopped", "failed", "finished"]


def test_a_rank_that_was_killed_by_itself_has_failed() -> None:
    assert states(Failure("signal", 0, None, 9), ended("failed", None, 9)) == ["failed"]
    assert states(Failure("signal", None, None, 9), ended("failed", None, 9)) == ["failed"]


def test_a_time_limit_and_a_cancel_stop_ranks() -> None:
    assert states(Failure("time-limit"), ended("failed", None, 15, asked=True)) == ["stopped"]
    assert states(None, ended("finished", None, 15, asked=True), ended("finished", 0)) == [
        "stopped",
        "finished",
    ]


def test_a_runtime_names_what_its_environment_lacks(tmp_path) -> None:
    python = str(tmp_path / "bin" / "python")
    assert runtimes.missing("torch", python) == "torch"
    assert runtimes.missing("plain", python) is None
    package = tmp_path / "lib" / "python3.11" / "site-packages" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    assert runtimes.missing("torch", python) is None


def test_tensorflow_is_quiet_about_itself() -> None:
    assert runtimes.build("tf", Shape(("p",), 2, 0, "/env/bin/python")).env["TF_CPP_MIN_LOG_LEVEL"] == "2"
