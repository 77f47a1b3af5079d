"""Templates of commands and variables: text with named places in braces, which are filled in once.

`{rank}` is a place, `{hosts.ps}` one of a role; `{{` and `}}` are braces. A place for a list is a
separate argument. Inserted text is not looked at again, is never run as code, and never reaches a
shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mlp_language.message import Message, msg

ROLE_PLACES: Mapping[str, str] = {
    "hosts": "HOST:PORT of each rank, with commas between",
    "count": "number of ranks",
}
"""Places that may name a role, as in `{hosts.ps}`; without one they are about all ranks."""
COMMON: Mapping[str, str] = {
    "python": "the interpreter of the job's environment",
    "bin": "the directory of its programs",
    "entry": "path of the job's program",
    "world_size": "number of ranks, of all roles",
    "workers": "number of ranks that `--workers` gave, of whatever role",
    "master": "host of rank 0",
    "master_port": "port of rank 0",
    **ROLE_PLACES,
}
"""Places with one value for all ranks."""
OF_RANK: Mapping[str, str] = {
    "rank": "number of the rank, from 0",
    "role": "its role",
    "role_rank": "its number among the ranks of its role, from 0",
    "host": "its host",
    "port": "its port, free in the job's own network",
    "tf_config": "what TensorFlow expects in TF_CONFIG",
}
"""Places with a value for each rank."""
LISTS: Mapping[str, str] = {
    "program": "the command that runs the job's program with its arguments, as runtime `plain` would",
    "args": "the arguments of the job's program",
    "start_rank": "the command by which a launcher starts one rank",
}
"""Places that stand for any number of arguments."""

_PART = re.compile(r"\{\{|\}\}|\{([a-z_]+)(?:\.([a-z0-9-]+))?\}|[{}]")


class TemplateError(ValueError):
    """A template that cannot be meant; the message says what is wrong and what is right."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


def places(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the places of a template with the role that each names; raises `TemplateError` for a brace that belongs to none."""
    for found in _PART.finditer(text):
        if found[1]:
            yield found[1], found[2]
        elif found[0] not in {"{{", "}}"}:
            raise TemplateError(
                msg(
                    "{argument} has a {brace} outside of a placeholder; write {doubled} for a brace",
                    argument=repr(text[:60]),
                    brace=found[0],
                    doubled=found[0] * 2,
                )
            )


def check(text: str, roles: Sequence[str], *, lists: Iterable[str] = ()) -> None:
    """Raise `TemplateError` unless all places of a template are known; `lists` are those that it may be as a whole."""
    for name, role in places(text):
        if name in LISTS:
            if text != f"{{{name}}}":
                raise TemplateError(
                    msg(
                        "{argument}: {{{name}}} stands for several arguments, so it must be an argument alone",
                        argument=repr(text[:60]),
                        name=name,
                    )
                )
            if name not in lists:
                raise TemplateError(msg("{{{name}}} cannot be used here", name=name))
        elif name not in COMMON and name not in OF_RANK:
            known = ", ".join(f"{{{n}}}" for n in (*COMMON, *OF_RANK, *lists))
            raise TemplateError(
                msg("{{{name}}} does not exist; available are {known}", name=name, known=known)
            )
        if role is not None and name not in ROLE_PLACES:
            raise TemplateError(
                msg(
                    "{{{name}.{role}}}: only {names} are known by role",
                    name=name,
                    role=role,
                    names=tuple(ROLE_PLACES),
                )
            )
        if role is not None and role not in roles:
            raise TemplateError(
                msg(
                    "{{{name}.{role}}}: role {role} does not exist; roles are {role_names}",
                    name=name,
                    role=role,
                    role_names=", ".join(roles),
                )
            )


def is_common(text: str) -> bool:
    """Whether a template comes to the same for all ranks."""
    return all(name in COMMON for name, _ in places(text))


def fill(text: str, values: Mapping[str, str]) -> str:
    """Fill the places in; `values` has those of roles as `hosts.ps`."""

    def one(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0][0]
        return values[f"{found[1]}.{found[2]}" if found[2] else found[1]]

    return _PART.sub(one, text)


def fill_all(
    argv: Iterable[str], values: Mapping[str, str], lists: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Fill in a command; an argument that is the place of a list becomes its elements."""
    filled: list[str] = []
    for text in argv:
        several = lists.get(text[1:-1]) if text.startswith("{") and text.endswith("}") else None
        if several is not None:
            filled += several
        else:
            filled.append(fill(text, values))
    return tuple(filled)
