"""What the shim says of ranks that were taken along, and what it takes from a traceback."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlp_hub.sandbox.shim.diagnosis.messages import english, msg
from mlp_hub.sandbox.shim.diagnosis.outcome import (
    FirstFailure,
    exception_in,
    hint,
    killed_by,
    mark_stopped,
    without_launcher,
)
from mlp_hub.sandbox.shim.ranks import RankProcess

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


def test_the_exception_of_a_rank_of_torch_is_found_behind_its_number() -> None:
    lines = ("Traceback (most recent call last):", *OWN.split("\n")[:5])
    assert exception_in("\n".join(f"[rank1]: {line}" for line in lines)) == "ValueError: boom"


def test_both_tracebacks_of_a_chain_lose_the_launchers_frames() -> None:
    between = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    assert without_launcher(LAUNCHED + OWN + between + LAUNCHED + OWN).count("runpy") == 2


def test_a_tail_that_begins_within_a_traceback_keeps_what_is_the_programs() -> None:
    assert without_launcher(LAUNCHED.partition("last):\n")[2] + OWN) == OWN


@pytest.mark.parametrize("text", ["", "out of data", '    indented\n  File "a.txt" was read', OWN])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert without_launcher(text) == text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Traceback (most recent call last):\n  File 'a'\n    x\nValueError: bad shape\n",
            "ValueError: bad shape",
        ),
        ("Traceback (most recent call last):\n  x\nmy.module.Broken\n", "my.module.Broken"),
        ("warming up: 3 %\n", ""),
        (
            "  File 'a', line 1\n    x = \n        ^\nSyntaxError: invalid syntax\n",
            "SyntaxError: invalid syntax",
        ),
        (
            "Traceback (most recent call last):\n  a\nKeyError: 1\n\nDuring handling ...\n\n"
            "Traceback (most recent call last):\n  b\nRuntimeError: two\n",
            "RuntimeError: two",
        ),
        (
            "Traceback (most recent call last):\n  a\nValueError: bad shape\nof_the_batch\nsaying goodbye\nbye\n",
            "ValueError: bad shape",
        ),
        ("", ""),
    ],
)
def test_the_exception_that_ended_a_program_is_found_in_its_last_lines(text: str, found: str) -> None:
    assert exception_in(text) == found


def ended(state: str, code: int | None = None, signal: int | None = None, asked: bool = False) -> RankProcess:
    rank = RankProcess(0, "worker")
    rank.state, rank.code, rank.signal, rank.asked = state, code, signal, asked
    return rank


def states(failure: FirstFailure | None, *ranks: RankProcess) -> list[str]:
    for number, rank in enumerate(ranks):
        rank.number = number
    mark_stopped(SimpleNamespace(failure=failure, ranks=list(ranks)))  # type: ignore[arg-type]
    return [rank.state for rank in ranks]


def test_ranks_that_the_first_failure_took_along_are_stopped_and_none_stays_pending() -> None:
    first = FirstFailure("program-error", 1, 1)
    ranks = (
        ended("failed", None, 9),
        ended("failed", 1),
        ended("pending"),
        ended("failed", 3),
        ended("finished", 0),
    )
    assert states(first, *ranks) == ["stopped", "failed", "stopped", "failed", "finished"]


def test_a_rank_that_was_killed_by_itself_has_failed() -> None:
    assert states(FirstFailure("signal", 0, None, 9), ended("failed", None, 9)) == ["failed"]
    assert states(FirstFailure("signal", None, None, 9), ended("failed", None, 9)) == ["failed"]


def test_a_time_limit_and_a_cancel_stop_ranks() -> None:
    assert states(FirstFailure("time-limit"), ended("failed", None, 15, asked=True)) == ["stopped"]
    assert states(None, ended("finished", None, 15, asked=True), ended("finished", 0)) == [
        "stopped",
        "finished",
    ]


def test_a_rank_that_had_not_begun_when_the_job_was_stopped_is_not_left_pending() -> None:
    assert states(None, ended("pending"), ended("finished", None, 15, asked=True)) == ["stopped", "stopped"]


WORDS_OF_NO_NETWORK = [
    "socket.gaierror: [Errno -3] Temporary failure in name resolution",
    "urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>",
    "OSError: [Errno 101] Network is unreachable",
    "curl: (6) Could not resolve host: example.org",
    "wget: unable to resolve host address 'example.org'",
    "Err:1 http://deb.example.org stable InRelease  Temporary failure resolving 'deb.example.org'",
    "java.net.UnknownHostException: example.org",
    "dial tcp: lookup example.org: no such host",
    "Error: getaddrinfo EAI_AGAIN example.org",
    "NameResolutionError: Failed to resolve 'huggingface.co'",
]


def failed(
    text: str, *, network: str = "none", mode: str = "root-userns", held: int | None = 0, refused: int = 0
) -> SimpleNamespace:
    """A sandbox whose one rank ended with these last words."""
    rank = RankProcess(0, "worker")
    rank.streams = (SimpleNamespace(tail=""), SimpleNamespace(tail=text))  # type: ignore[assignment]
    groups = SimpleNamespace(
        memory_peak=lambda: None if held is None else held << 20, refused_processes=lambda: refused
    )
    spec = {"network": network, "limits": {"tmp_mib": 128, "pids": 477}}
    return SimpleNamespace(ranks=[rank], spec=spec, host={"mode": mode}, mode="single", groups=groups)


@pytest.mark.parametrize("text", WORDS_OF_NO_NETWORK)
def test_a_failed_connection_to_another_machine_gets_a_hint_about_the_network(text: str) -> None:
    failure = FirstFailure("program-error", 0, 1)
    assert hint(failure, failed(text)) == ("no-network", 0)  # type: ignore[arg-type]


def test_the_hint_is_absent_if_a_network_exists_or_the_cause_is_another() -> None:
    text = WORDS_OF_NO_NETWORK[0]
    failure = FirstFailure("program-error", 0, 1)
    assert hint(failure, failed(text, network="outbound")) is None  # type: ignore[arg-type]
    assert hint(failure, failed(text, mode="open")) is None  # type: ignore[arg-type]
    assert hint(failure, failed("ValueError: boom")) is None  # type: ignore[arg-type]
    assert hint(FirstFailure("out-of-memory", 0, None, 9), failed(text)) is None  # type: ignore[arg-type]
    assert hint(None, failed(text)) is None  # type: ignore[arg-type]


FULL = "OSError: [Errno 28] No space left on device"


@pytest.mark.parametrize(
    ("sandbox", "found"),
    [
        (failed(FULL, held=130), ("memory-files", 128)),
        (failed(f"{FULL}: '/dev/shm/x'", held=None), ("memory-files", 128)),  # it held all that it may
        (failed(FULL, held=20), None),  # then it was a disk
        (failed(f"{FULL}: '/workspace/ckpt/x'", held=130), None),
        (failed(FULL, held=130, mode="open"), None),
        (failed("BlockingIOError: [Errno 11] Resource temporarily unavailable", refused=3), ("process-limit", 477)),
        (failed("RuntimeError: can't start new thread", refused=1), ("process-limit", 477)),
        (failed("BlockingIOError: [Errno 11] Resource temporarily unavailable"), None),  # a socket
    ],
)  # fmt: skip
def test_a_limit_that_was_met_is_named_with_its_number(
    sandbox: SimpleNamespace, found: tuple[str, int] | None
) -> None:
    assert hint(FirstFailure("program-error", 0, 1), sandbox) == found  # type: ignore[arg-type]


def test_too_many_open_files_say_how_many_there_may_be() -> None:
    text = "OSError: [Errno 24] Too many open files: '/data/1'"
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert hint(FirstFailure("program-error", 0, 1), failed(text)) == ("descriptor-limit", most)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("program", "found"),
    [
        ("input('how many? ')", "nobody-answers"),
        ("open('config.yaml')", "starts-at-home"),
        ("import os; os.execlp('python3', 'python3', 'train.py')", "starts-at-home"),
        ("breakpoint()\nprint('on')", "nobody-answers"),
        ("import no_such_package.part", "module-missing"),
        (
            "try:\n    import no_such_package\nexcept ImportError as error:\n    raise RuntimeError('no speed-up') from error",
            None,
        ),
        ("get_ipython().run_line_magic('matplotlib', 'inline')", "own-program"),
        ("print(lr)", None),  # of a script that is a mistake like any other
        ("open('/data/x')", None),
        ("raise EOFError('of my own')", None),
    ],
)
def test_a_failure_caused_by_a_difference_from_a_terminal_gets_a_hint(
    tmp_path: Path, program: str, found: str | None
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    told = hint(FirstFailure("program-error", 0, 1), failed(done.stderr))  # type: ignore[arg-type]
    assert told == (found and (found, 0))


@pytest.mark.parametrize("before", ["", "[rank1]: "], ids=["alone", "beside others"])
@pytest.mark.parametrize(
    ("place", "found"), [("/workspace/code/main.py", "own-program"), ("/home/ann/lib.py", None)]
)
def test_a_cell_with_a_name_of_the_notebook_gets_a_hint(before: str, place: str, found: str | None) -> None:
    said = f"""Traceback (most recent call last):
  File "/workspace/code/main.py", line 2, in <module>
    f()
  File "{place}", line 7, in f
    print(lr)
NameError: name 'lr' is not defined. Did you mean: 'ls'?
"""
    told = hint(FirstFailure("program-error", 0, 1), failed(before + said.replace("\n", f"\n{before}")))  # type: ignore[arg-type]
    assert told == (found and (found, 0))


@pytest.mark.parametrize(
    ("shell", "script", "found"),
    [
        ("bash", "conda activate tools\npython3 -c 'import no_such_package'", "command-missing"),
        (
            "bash",
            "echo job.sh: 1: source: not found >&2\npython3 -c 'import no_such_package'",
            "command-missing",
        ),
        ("sh", "no-such-tool --version", "command-missing"),
        ("bash", "no-such-tool --version\npython3 -c 'import no_such_package'", "module-missing"),
        ("bash", "no-such-tool --version\npython3 -c 'raise ValueError'", None),
        (
            "bash",
            "echo \"CondaError: Run 'conda init' before 'conda activate'\" >&2; exit 1",
            "command-missing",
        ),
    ],
)
def test_a_command_from_a_terminals_settings_gets_a_hint(
    tmp_path: Path, shell: str, script: str, found: str | None
) -> None:
    (tmp_path / "job.sh").write_text(script)
    done = subprocess.run([shell, "job.sh"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert hint(FirstFailure("program-error", 0, 1), failed(done.stderr)) == (found and (found, 0))  # type: ignore[arg-type]


def test_a_notebook_starts_in_its_own_directory() -> None:
    said = "Cell In[2], line 1\n----> 1 open('x.csv')\n\nFileNotFoundError: [Errno 2] No such file or directory: 'x.csv'"
    assert hint(FirstFailure("program-error", 0, 1), failed(said)) is None  # type: ignore[arg-type]


def test_a_signal_has_its_name() -> None:
    assert english(killed_by(msg("rank {n}", n=1), 11)) == "rank 1 was killed by signal 11 (SIGSEGV)"
    assert english(killed_by(msg("rank {n}", n=1), 99)) == "rank 1 was killed by signal 99 (unknown)"
