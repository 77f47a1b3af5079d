"""Scripts as people have them: what their first line says holds, and one that cannot run says what to do."""

from __future__ import annotations

import subprocess
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.runtime import BUILT_IN
from mlp_hub.executors import programs, scripts
from mlp_hub.executors.base import CannotStart, Code, EntryPoint, LaunchSpec
from mlp_hub.safe_path import PathKind, peek

SEEN_AT = "/home/ann"
STRICT = b"#!/bin/bash\nset -euo pipefail\nwords=(a b)\n[[ ${#words[@]} == 2 ]] && echo ${BASH_VERSION:0:1}\n"


def launch(**more: Any) -> LaunchSpec:
    fields: dict[str, Any] = {
        "attempt": "a.0", "job": "a", "user": "ann", "uid": None, "tenant": "default", "runtime": BUILT_IN["plain"], "workers": 1,
        "ps": 0, "per_worker": Resources(cpu=500, ram=512), "placement": (), "program": Code("1"), "run": 1, "args": (), "env": {},
    }  # fmt: skip
    return LaunchSpec(**{**fields, **more})


def put(home: Path, name: str, content: bytes, mode: int = 0o644) -> None:
    (home / name).write_bytes(content)
    (home / name).chmod(mode)


def command(home: Path, name: str) -> list[str]:
    """Return the command of such a job as it is run, with the file where it is on this machine."""
    found = programs.program(launch(program=EntryPoint(name)), str(home), "/py", "/c")
    return [*found.by, found.entry.replace(SEEN_AT, str(home), 1)]


def test_a_script_runs_with_the_interpreter_of_its_first_line(tmp_path: Path) -> None:
    put(tmp_path, "job.sh", STRICT)
    done = subprocess.run(command(tmp_path, "job.sh"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip().isdigit()


@pytest.mark.parametrize(
    ("head", "by"),
    [
        (b"echo 1\n", ("/bin/sh",)),
        (b"", ("/bin/sh",)),
        (b"# a comment\n#!/bin/bash\n", ("/bin/sh",)),
        (b"#!/bin/bash\n", ("/bin/bash",)),
        (b"#! /bin/bash -eu \n", ("/bin/bash", "-eu")),
        (b"#!/usr/bin/env bash", ("/usr/bin/env", "bash")),
        # one option, as the kernel hands it on
        (b"#!/usr/bin/env -S bash -e\n", ("/usr/bin/env", "-S bash -e")),
        (b"#!\n", ("/bin/sh",)),
        (b"#!/bin/ba\0sh\n", ("/bin/ba",)),
    ],
)
def test_a_first_line_is_read_as_the_kernel_reads_it(head: bytes, by: tuple[str, ...]) -> None:
    assert scripts.interpreter(head) == by


REFUSED = [
    ("win.sh", b"#!/bin/bash\r\nset -e\r\n", 0o644, r"Windows line ends in line 1: run `sed -i 's/\r$//' win.sh`"),
    ("bare.sh", b"set -e\r\necho 1\r\n", 0o644, r"Windows line ends in line 1: run `sed -i 's/\r$//' bare.sh`"),
    ("win", b"#!/bin/bash\r\nset -e\r\n", 0o755, r"Windows line ends in line 1: run `sed -i 's/\r$//' win`"),
    ("bom.sh", b"\xef\xbb\xbf#!/bin/bash\necho 1\n", 0o755, r"byte order mark, as Windows writes it: run `sed -i '1s/^\xEF\xBB\xBF//' bom.sh`"),
    ("wide.py", "print(1)".encode("utf-16"), 0o644, "wide.py is UTF-16"),
    ("TRAIN.PY", b"print(1)\n", 0o644, "ending in capital letters: run `mv TRAIN.PY TRAIN.py`"),
    ("my job.SH", b"#!/bin/sh\necho 1\n", 0o644, "run `mv 'my job.SH' 'my job.sh'`"),
    ("TRAIN.Py", b"print(1)\n", 0o777, "ending in capital letters"),  # as a disk of Windows has all files
    ("train", b"#!/usr/bin/env python3\nprint(1)\n", 0o644, "is not executable: name it .py, .sh or .ipynb, or run `chmod +x train`"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "mode", "said"), REFUSED)
def test_a_script_that_cannot_run_shows_the_reason_and_the_remedy(
    tmp_path: Path, name: str, content: bytes, mode: int, said: str
) -> None:
    put(tmp_path, name, content, mode)
    found = scripts.find(tmp_path, name, SEEN_AT)
    assert found.kind is PathKind.FILE
    assert said in str(found.unfit)
    with pytest.raises(CannotStart) as refused:  # it became so while the job waited
        command(tmp_path, name)
    assert said in str(refused.value)


BEHIND = "nohup python train.py > log 2>&1 &"


@pytest.mark.parametrize(
    ("name", "content", "refused"),
    [
        ("job.sh", f"{BEHIND}\n", True),
        ("job.sh", f"#!/bin/bash\nset -e\n{BEHIND}\n\n# the end\n", True),
        ("job", f"#!/usr/bin/env bash\n{BEHIND}\n", True),
        ("job.sh", "#!/bin/bash\nfor i in 1 2; do\n  python train.py $i\ndone &\n", True),
        ("job.sh", f"{BEHIND}\nwait\n", False),
        ("job.sh", f"trap wait EXIT\n{BEHIND}\n", False),
        ("job.sh", f"{BEHIND}\npython eval.py\n", False),
        ("job.sh", "a &&\n  b\n", False),
        ("job.sh", "a &&\n", False),
        ("job.sh", f"#!/usr/bin/awk -f\n{BEHIND}\n", False),
        ("job.py", f"# {BEHIND}\nx = 1 &\n", False),
    ],
)
def test_a_script_that_leaves_its_last_command_behind_would_end_at_once(
    tmp_path: Path, name: str, content: str, refused: bool
) -> None:
    put(tmp_path, name, content.encode(), 0o755)
    said = str(scripts.find(tmp_path, name, SEEN_AT).unfit or "")
    assert ("remove the & at its end, or add the line `wait`" in said) == refused


@pytest.mark.parametrize("remedy", ["win.sh", "bom.sh"])
def test_the_remedies_help(tmp_path: Path, remedy: str) -> None:
    name, content, mode, _ = next(one for one in REFUSED if one[0] == remedy)
    put(tmp_path, name, content, mode)
    said = str(scripts.find(tmp_path, name, SEEN_AT).unfit)
    subprocess.run(["/bin/sh", "-c", said.split("`")[1]], cwd=tmp_path, check=True)
    assert scripts.find(tmp_path, name, SEEN_AT).unfit is None
    assert command(tmp_path, name)[0] == "/bin/bash"


@pytest.mark.parametrize(
    ("name", "content", "mode"),
    [
        ("train.py", b"\xef\xbb\xbfprint(1)\r\n", 0o644),  # Python takes both
        ("job.sh", b"echo 1\nx=$'\\r'\n", 0o644),
        ("run", b"#!/usr/bin/env python3\n", 0o755),
        ("run", b"\x7fELF\r\n", 0o755),
        ("TRAIN.PY", b"#!/usr/bin/env python3\n", 0o755),
    ],
)
def test_a_runnable_script_is_accepted(tmp_path: Path, name: str, content: bytes, mode: int) -> None:
    put(tmp_path, name, content, mode)
    assert scripts.find(tmp_path, name, SEEN_AT).unfit is None
    assert command(tmp_path, name)[-1] == str(tmp_path / name)


def test_a_name_that_looks_the_same_is_found(tmp_path: Path) -> None:
    there = unicodedata.normalize("NFD", "träin.py")
    (tmp_path / "sub").mkdir()
    put(tmp_path / "sub", there, b"")
    put(tmp_path, "crlf.py", b"")
    assert (
        scripts.find(tmp_path, unicodedata.normalize("NFC", "sub/träin.py"), SEEN_AT).alike == f"sub/{there}"
    )
    assert scripts.find(tmp_path, "Crlf.py", SEEN_AT).alike == "crlf.py"
    assert scripts.find(tmp_path, "other.py", SEEN_AT).alike == ""
    assert scripts.find(tmp_path, "../Crlf.py", SEEN_AT).alike == ""


def test_only_the_beginning_of_a_plain_file_is_read(tmp_path: Path) -> None:
    put(tmp_path, "a.sh", b"x" * 1000)
    (tmp_path / "b.sh").symlink_to("/etc/passwd")
    (tmp_path / "c.sh").symlink_to("/home/ann/a.sh")
    assert peek(tmp_path, "a.sh", SEEN_AT, scripts.HEAD).head == b"x" * 256
    assert peek(tmp_path, "b.sh", SEEN_AT, scripts.HEAD) == (PathKind.OUTSIDE, 0, b"")
    assert peek(tmp_path, "c.sh", SEEN_AT, 3).head == b"xxx"
    assert peek(tmp_path, ".", SEEN_AT, 3).head == b""
