"""A program of a rank finds all as by `python PROGRAM`, and ends soon after its traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mlp_hub.sandbox.shim.programs import by_python
from support.waiting import PATIENCE_S

LOOKS = """
import atexit, beside, inspect, multiprocessing, pickle, sys, threading
class Mine: pass
def again(number): return number + 1
def late(when):
    print(when, pickle.loads(pickle.dumps(Mine())).__class__.__name__, inspect.getsource(again))
def ends():
    threading.main_thread().join()
    late("a thread")
if __name__ == "__main__":
    print(__name__, __file__, __spec__, __package__, __doc__, __cached__, type(__loader__).__name__, __builtins__)
    print(sorted(globals().keys() - {"__annotations__"}), sys.argv, sys.path[0], beside.__file__)
    print(compile("a: int", "x", "exec").co_flags, sys.modules["__main__"].again is again)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(again, [1, 2]))
    atexit.register(late, "the end")
    threading.Thread(target=ends).start()
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Make a program with a module beside, and return a link to it from elsewhere, where another module of the name is."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "beside.py").touch()
    (tmp_path / "there" / "program.py").write_text(LOOKS)
    (tmp_path / "here" / "program.py").symlink_to("../there/program.py")
    return tmp_path / "here" / "program.py"


def seen(*words: object) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, check=False, cwd="/"
    )
    return done.returncode, done.stdout, done.stderr


def test_a_program_finds_all_as_by_python_alone(program: Path) -> None:
    told = seen(program, "--lr", "0.1")
    assert "a thread Mine" in told[1]
    assert "the end Mine" in told[1]
    assert seen(by_python.__file__, program, "--lr", "0.1") == told


def test_modules_beside_a_program_are_not_found_in_isolated_mode(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys; print(sys.path)")
    assert seen("-I", by_python.__file__, program) == seen("-I", program)


def test_failed_programs_end_with_their_status_although_a_thread_is_still_running(tmp_path: Path) -> None:
    begun = []
    for number, ends in enumerate(
        ["sys.exit(7)", "sys.exit(2**40 + 7)", "sys.exit('no')", "raise ValueError"]
    ):
        program = tmp_path / f"{number}.py"
        thread = "threading.Thread(target=time.sleep, args=(3600,)).start()"
        program.write_text(f"import sys, threading, time\n{thread}\n{ends}\n")
        words = [sys.executable, by_python.__file__, str(program)]
        begun.append(subprocess.Popen(words, stderr=subprocess.DEVNULL))
    assert [each.wait(PATIENCE_S) for each in begun] == [7, 7, 1, 1]


@pytest.mark.parametrize("hook", [False, True], ids=["Python's hook", "a hook of the program"])
def test_a_traceback_begins_in_the_program(tmp_path: Path, hook: bool) -> None:
    program = tmp_path / "raises.py"
    own = "import sys, traceback\nsys.excepthook = lambda *e: traceback.print_exception(*e)\n" if hook else ""
    program.write_text(f"{own}def f():\n    raise RuntimeError('out of data')\nf()\n")
    alone = seen(program)
    assert seen(by_python.__file__, program) == alone
    assert alone[0] == 1


def test_a_program_that_cannot_be_read_says_where(tmp_path: Path) -> None:
    program = tmp_path / "wrong.py"
    program.write_text("print(\n")
    assert seen(by_python.__file__, program) == seen(program)
