"""Requirements of an environment, as people have them: the valid ones, and the remedy for others.

A requirement is a package by its name, at most with extras, versions and a marker. Installers also
take other things in such a file (options, addresses, paths, repositories). These would make the hub
fetch from a source that its administrator did not name, or run code to build a package, and are
refused. Many files are written by a program, `pip freeze` or Conda, and have the same fault in
every line. The refusal explains how to write them right.
"""

from __future__ import annotations

import re

from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import Message, msg

MOST_TEXT = 64 << 10
"""Limit of data: bytes of the requirements of an environment."""
MOST_LINES = 500
"""Limit of data: packages that the requirements of an environment name."""
_SHOWN = 80
"""Safety: characters of a bad line that are repeated in the answer."""
_MARK = "\ufeff"
_COMMENT = re.compile(r"(?:^|\s)#.*")
_OTHER_FILE = re.compile(r"(?:-r|-c|--requirement|--constraint)\b")
_HASHES = re.compile(r"(?:^|\s)--hash[=\s]|\\$")
_CONDA_KEY = re.compile(r"(?:name|channels|dependencies|prefix):|@EXPLICIT$")
_EDITABLE = re.compile(r"(?:-e|--editable)\b")
_FREEZE = "pip list --format=freeze > requirements.txt"
_CONDA_PIN = re.compile(r"[A-Za-z0-9._-]+\s*=\s*[^=\s]")


def checked_requirements(text: str) -> str:
    """Return requirements one a line, without comments; raise `Refused` naming the line that is none."""
    if len(text.encode()) > MOST_TEXT:
        raise Refused(
            Reason.INVALID,
            msg(
                "the requirements have {size} bytes, and the limit is {most}; name packages, not each of their files",
                size=f"{len(text.encode()):,}",
                most=f"{MOST_TEXT:,}",
            ),
        )
    kept: list[str] = []
    for number, line in enumerate(text.removeprefix(_MARK).splitlines(), 1):
        plain = _uncommented(line)
        if plain:
            kept.append(_checked(plain, number))
    if not kept:
        raise Refused(
            Reason.INVALID, msg("the requirements name no package; write one per line, such as pandas>=2.2")
        )
    if len(kept) > MOST_LINES:
        raise Refused(
            Reason.INVALID,
            msg(
                "the requirements have {n} lines, and the limit is {most}; leave out packages that others bring along",
                n=len(kept),
                most=MOST_LINES,
            ),
        )
    return "\n".join(kept) + "\n"


def _uncommented(line: str) -> str:
    """Return a line without its comment, which begins it or comes after white space."""
    return _COMMENT.sub("", line.strip()).strip()


def _checked(line: str, number: int) -> str:
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415 - many hubs make no environment

    why = _unlike(line)
    if why is None:
        try:
            found = Requirement(line)
        except InvalidRequirement:
            why = msg("name a package, with versions if they matter, such as pandas>=2.2")
        else:
            if found.url is None:
                return str(found)
            why = (
                msg(
                    "it is a file of the machine where pip freeze ran; create the list with {command}",
                    command=_FREEZE,
                )
                if found.url.startswith("file:")
                else msg("it is an address, but packages come only from the hub's index; name the package")
            )
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line[:_SHOWN])
    raise Refused(
        Reason.INVALID,
        msg("line {number} of the requirements is {line}: {why}", number=number, line=shown, why=why),
    )


def _unlike(line: str) -> Message | None:
    """Say of which other kind of file a line is, and what to give instead; None where it may be a requirement."""
    if _OTHER_FILE.match(line):
        return msg("it names another file, which is not uploaded with it; put its lines here")
    if _HASHES.search(line):
        return msg(
            "the hub finds hashes itself; write the file without them, for example with uv export --no-hashes or poetry export --without-hashes"
        )
    if _EDITABLE.match(line):
        return msg(
            "it is a project on the machine where the file was written; leave it out, for example with uv export --no-emit-project"
        )
    if line.startswith("-"):
        return msg("it is an option, but the hub decides the sources of packages; leave it out")
    return _of_conda(line)


def _of_conda(line: str) -> Message | None:
    if _CONDA_KEY.match(line):
        return msg(
            "it is in Conda's format; write packages one per line, such as pandas>=2.2, or create the list with {command}",
            command=_FREEZE,
        )
    if _CONDA_PIN.match(line):
        return msg(
            "one = is Conda's format; write two, such as pandas==2.2, or create the file with {command}",
            command=_FREEZE,
        )
    return None
