"""From what a person wrote to the request that is sent: a cell or a file, its options, its variables."""

from __future__ import annotations

import ast
import builtins
import json
import os
import re
import symtable
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlp.client import settings
from mlp.errors import ProgramError, UsageError
from mlp.grammar.job_options import SUBMIT, as_sent, default_runtime, most_workers
from mlp.inputs.variables import VARIABLES
from mlp.language import say
from mlp.notebooks import notebook_files
from mlp.submitting import scripts
from mlp.terms import RUNTIMES

CODE_LIMIT = 1_048_576
VARIABLES_LIMIT = 65_536
_OF_A_NOTEBOOK = frozenset({"display", "get_ipython"})
_ALL_OF = re.compile(r"^\s*from\s+\S+\s+import\s+\*", re.MULTILINE)
_SHOWN = 5
PROLOGUE = "globals().update(__import__('json').loads(__import__('os').environ['NOTEBOOK_VARIABLES']))"


def build(
    given: Mapping[str, Any],
    *,
    entry: str | os.PathLike[str] | None = None,
    code: str | None = None,
    args: Sequence[object] = (),
    variables: Mapping[str, Any] | None = None,
    env: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.time,
) -> dict[str, Any]:
    """Make the body of a submit; options at their default are left to the service.

    Raises `UsageError`; `given` holds parsed values by option name.
    """
    body = as_sent(
        {o.name: given[o.name] for o in SUBMIT if o.wire and given.get(o.name) not in (None, o.default)}
    )
    runtime = given.get("runtime") or default_runtime(given.get("workers") or 1, given.get("ps") or 0)
    body.setdefault(
        "name", _name_of(entry) or f"{runtime}-{time.strftime('%m%d-%H%M%S', time.localtime(clock()))}"
    )
    if (entry is None) == (code is None or not code.strip()):
        raise UsageError(
            say("nothing to run: give a script, or write the program of one rank into the cell")
            if entry is None
            else say(
                "a script and a program's text are both given: give a script, or write the program of one rank into the cell"
            )
        )
    if entry is not None:
        if notebook_files.is_notebook(str(entry)):
            check_shape(given, args)
        body |= program_file(Path(entry), env)
    else:
        body["code"] = _carried("script", code or "")
    if variables:
        body["env"] = {**body.get("env", {}), VARIABLES: variables_json(variables)}
    if "code" in body:
        text = body["code"]
        if runtime in RUNTIMES:  # another may run anything: its program is not looked at
            check_syntax(text, cell=entry is None)
            text = with_prologue(text) if variables else text
        if len(text) > CODE_LIMIT:
            raise UsageError(
                say(
                    "the program is {n} characters; at most {most}. Put data into a file",
                    n=f"{len(text):,}",
                    most=f"{CODE_LIMIT:,}",
                )
            )
        body["code"] = text
    if args:
        body["args"] = [str(a) for a in args]
    return body


def program_file(path: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Name a file in the user's home, or, from a machine that is not the hub's, carry its text along."""
    if not path.is_file():
        where = {"path": str(path), "here": str(Path.cwd())}
        if path.is_dir():
            raise UsageError(say("{path} is a directory; the current directory is {here}", **where))
        if meant := scripts.meant(path):
            raise UsageError(
                say(
                    "{path} does not exist; did you mean {meant}? Its name differs in case or in the encoding of its letters",
                    path=str(path),
                    meant=meant,
                )
            )
        raise UsageError(say("{path} does not exist; the current directory is {here}", **where))
    if notebook_files.is_notebook(path.name):
        found = _notebook(path)
        if not settings.on_platform(env):
            return {"code": notebook_files.carried(path.name, found)}
    elif not settings.on_platform(env):
        try:
            return {"code": _carried(path.name, path.read_bytes().decode("utf-8"))}
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(say("{path} cannot be read: {why}", path=str(path), why=str(error))) from None
    home = Path(env.get("HOME", "/")).resolve()
    full = path.resolve()
    if not full.is_relative_to(home):
        raise UsageError(
            say(
                "{path} is not below your home directory ({home}); a job can see nothing else of this server",
                path=str(path),
                home=str(home),
            )
        )
    return {"entry": str(full.relative_to(home))}


def _name_of(entry: str | os.PathLike[str] | None) -> str:
    """Return a file's name as that of a job; empty where none is left of it.

    The form in JupyterLab has the same rule: `widgets/test/jobs/jobnames.json` holds both to it.
    """
    stem = "" if entry is None else re.sub(r"\.[^.]*\Z", "", Path(entry).name)
    return re.sub(r"^[^A-Za-z0-9_]+", "", re.sub(r"[^A-Za-z0-9._-]+", "-", stem))[:50]


def _carried(name: str, text: str) -> str:
    """Return what is sent of a program's text: a shell's script within a program that runs it."""
    by = scripts.interpreter(name, text)
    if by:
        return scripts.carried(name, text, by)
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def check_shape(given: Mapping[str, Any], args: Sequence[object]) -> None:
    """Refuse what a notebook cannot have: it is one process, and takes no arguments."""
    if most_workers(given.get("workers") or 1) > 1 or given.get("ps"):
        raise UsageError(
            say(
                "a notebook runs in one kernel, so it has one worker: leave --workers and --ps out, or put code for several ranks into a script"
            )
        )
    if args:
        raise UsageError(
            say("a notebook takes no arguments: give parameters, such as --param {example}", example="lr=0.1")
        )


def _notebook(path: Path) -> dict[str, Any]:
    """Return a notebook that can be a job's program."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            say("{path} cannot be read: {why}", path=str(path), why=str(error.strerror))
        ) from None
    found = notebook_files.read(str(path), data)
    notebook_files.check(str(path), found)
    return found


def variables_json(variables: Mapping[str, Any]) -> str:
    """Write variables as JSON; numpy's numbers and arrays become numbers and lists."""
    parts = {}
    for key, value in variables.items():
        try:
            parts[key] = json.dumps(value, default=_plain, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UsageError(
                say(
                    "{name} cannot be sent as JSON: {why}. Save it to a file and read it there",
                    name=key,
                    why=str(error),
                )
            ) from None
    text = "{" + ", ".join(f"{json.dumps(k)}: {v}" for k, v in parts.items()) + "}"
    if len(text) > VARIABLES_LIMIT:
        biggest = max(parts, key=lambda k: len(parts[k]))
        raise UsageError(
            say(
                "the variables are {n} characters as JSON ({biggest} has {its}); at most {most}. "
                "Save {biggest} to a file and read it there",
                n=f"{len(text):,}",
                biggest=biggest,
                its=f"{len(parts[biggest]):,}",
                most=f"{VARIABLES_LIMIT:,}",
            )
        )
    return text


def _plain(value: object) -> object:
    """Turn what has `tolist` (numpy, torch, pandas) into lists and numbers."""
    tolist = getattr(value, "tolist", None)
    if callable(tolist):
        plain: object = tolist()
        return plain
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(say("{type} is not a number, text, list or dict", type=type(value).__name__))


def _tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def check_syntax(text: str, *, cell: bool) -> None:
    """Refuse a program that cannot start, before it takes a place in the queue."""
    try:
        _tree(text)
    except (SyntaxError, ValueError) as error:
        raise ProgramError(_where(error, cell=cell)) from None


def _where(error: SyntaxError | ValueError, *, cell: bool) -> str:
    """Say what is wrong, in which line, with the line and a mark below the place."""
    if not isinstance(error, SyntaxError) or not error.lineno:
        return say("{what}. Nothing was submitted", what=str(getattr(error, "msg", error)))
    lines = [
        say("{what}, in line {n} of the cell. Nothing was submitted", what=error.msg, n=error.lineno)
        if cell
        else say("{what}, in line {n} of the program. Nothing was submitted", what=error.msg, n=error.lineno)
    ]
    source = (error.text or "").rstrip("\n")
    shown = source.strip()[:200]
    if shown:
        at = (error.offset or 1) - 1 - (len(source) - len(source.lstrip()))
        lines += [f"    {shown}", *([f"    {' ' * at}^"] if 0 <= at <= len(shown) else [])]
    if cell and shown.startswith(("!", "%")):
        lines.append(say("The cell runs as its own program: lines with ! and % do not work in it"))
    return "\n".join(lines)


def unseen(text: str, space: Collection[str], sent: Collection[str] = ()) -> str:
    """Say which names of the notebook a program reads and does not have; empty where there are none. `sent` are those of `--with`."""
    try:
        tables = [top := symtable.symtable(text, "cell", "exec")]
    except (SyntaxError, ValueError):
        return ""
    read, bound = set[str](), {*sent}
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if table is top or symbol.is_global():
                (bound if symbol.is_assigned() or symbol.is_imported() else read).add(symbol.get_name())
    has = {*space, *_OF_A_NOTEBOOK} - (vars(builtins).keys() - _OF_A_NOTEBOOK)
    names = sorted(name for name in (read - bound) & has if not name.startswith("_"))
    if not names or _ALL_OF.search(text):
        return ""
    return say(
        "The program does not see {names} of this notebook: send variables with --with, import or define the rest in the cell",
        names=", ".join(names[:_SHOWN]) + (" ..." if names[_SHOWN:] else ""),
    )


def with_prologue(text: str) -> str:
    """Add the assignment of the variables without moving a line: behind docstring and future imports."""
    last: ast.stmt | None = None
    for number, statement in enumerate(_tree(text).body):
        doc = number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not (doc or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__")):
            break
        last = statement
    lines = text.split("\n")
    if last is not None and last.end_lineno is not None and last.end_col_offset is not None:
        row = lines[last.end_lineno - 1].encode()
        at = last.end_col_offset  # counts bytes
        lines[last.end_lineno - 1] = (row[:at] + f"; {PROLOGUE}".encode() + row[at:]).decode()
        return "\n".join(lines)
    first = lines[0].strip()
    if not first or first.startswith("#"):  # the magic's own line, left as a comment
        return "\n".join([PROLOGUE, *lines[1:]])
    return "\n".join([PROLOGUE, *lines])
