"""The exception that ended a program is found, however long its message and its traceback are."""

from __future__ import annotations

import pytest

from mlp_hub.sandbox.shim.diagnosis.exception_line import AT_ONCE_S, TRACEBACK, Raised
from mlp_hub.sandbox.shim.diagnosis.outcome import exception_in, without_launcher
from mlp_hub.sandbox.shim.logs.writer import TAIL, Stream

HEAD = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    load()\n'
LINE = "my.Mismatch: Error(s) in loading state_dict for Net:"
REST = "".join(f"\tsize mismatch for layer{n}.weight\n" for n in range(400))
FRAMES = '  File "a.py", line 2, in deeper\n    deeper()\n' * 200


def tail_of(*parts: str) -> str:
    stream = Stream(None, "stderr")
    for part in parts:
        stream.feed(part.encode())
    return without_launcher(stream.tail)


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20], ids=str)
@pytest.mark.parametrize("rank", ["", "[rank3]: "])
def test_a_long_message_leaves_the_line_that_names_the_exception_first(size: int, rank: str) -> None:
    text = f"{HEAD}{LINE}\n{REST}"
    text = "".join(f"{rank}{line}\n" for line in text.splitlines())
    tail = tail_of("warming up\n", *(text[at : at + size] for at in range(0, len(text), size)))
    assert exception_in(tail) == LINE
    assert tail.splitlines()[2] == LINE
    assert tail.endswith("layer399.weight")
    assert len(tail) < TAIL + 500


def test_of_a_deep_traceback_the_end_is_kept_and_the_exception_found_whatever_its_name() -> None:
    tail = tail_of(f"{HEAD}{FRAMES}my.Broken\n")
    assert exception_in(tail) == "my.Broken"
    assert tail.startswith("Traceback (most recent call last):\n  ...\n")
    assert tail.endswith("\nmy.Broken")


def test_an_exception_that_is_shown_whole_stays_as_it_is() -> None:
    assert tail_of(f"{HEAD}{LINE}\n") == f"{HEAD}{LINE}"


def test_one_that_the_program_caught_is_not_what_ended_it() -> None:
    raised = Raised()
    raised.feed(TRACEBACK + b"\n  x\nValueError: caught\n", now=0.0)
    raised.feed(b"more", now=AT_ONCE_S + 1)
    assert raised.before("last words") == "last words"
