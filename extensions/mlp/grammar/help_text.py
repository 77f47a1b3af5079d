"""Help of a verb and of a surface, made from the table of verbs."""

from __future__ import annotations

from collections.abc import Sequence

from mlp.grammar.job_options import (
    Option,
)
from mlp.grammar.verbs import COMMAND, TAKES, Verb, find, options_of, verbs_of
from mlp.language import say
from mlp.rendering.words import sentences


def examples(surface: str) -> tuple[str, ...]:
    """Return how one begins on a surface."""
    if surface == COMMAND:
        return (
            "mlp submit train.py --workers 2 --name digits -- --epochs 5",
            "mlp watch digits",
            "mlp jobs --state running --json",
        )
    lines = (
        (
            "%%mlp submit --runtime mpi --workers 2 --cpu 0.4 --name digits",
            say("the cell is the program of one rank"),
        ),
        ("%mlp submit train.py --workers 2 -- --epochs 5", say("a script, its arguments after --")),
        ("%mlp watch digits", say("live, from its beginning")),
    )
    widest = max(len(line) for line, _ in lines)
    return tuple(f"{line:<{widest}}  {what}" for line, what in lines)


def help_of(words: Sequence[str], surface: str) -> str:
    """Return the help that is asked for by words after `help`: a verb's, else the surface's; raises `UsageError`."""
    return usage(find(words[0], surface), surface) if words else overview(surface)


def overview(surface: str) -> str:
    """Return the help of a surface: verbs and three examples."""
    lines = [say("MLP Hub: distributed jobs from a cell, a file, or a shell."), ""]
    lines += [f"  {surface} {v.name:<11}{v.help()}" for v in verbs_of(surface)]
    return "\n".join(
        [
            *lines,
            "",
            say("Examples"),
            "",
            *(f"  {e}" for e in examples(surface)),
            "",
            say("Options: {command}", command=f"{surface} VERB --help"),
        ]
    )


def usage(verb: Verb, surface: str) -> str:
    """Return the help of a verb."""
    lines = [f"{surface} {verb.name} {TAKES[verb.takes]()}".rstrip(), f"  {verb.help()}", ""]
    for option in options_of(verb, surface):
        flags = ", ".join(reversed(option.flags)) + (f" {option.metavar}" if option.metavar else "")
        default = shown_default(option)
        said = option.explained
        if default:
            said = sentences(said, say("(default: {value})", value=default))
        lines.append(f"  {flags:<28} {said}")
    return "\n".join(lines).rstrip()


def shown_default(option: Option) -> str:
    """Return an option's default as help and documentation show it; empty where there is none."""
    if option.shown_default is not None:
        return option.shown_default()
    if option.default is None or option.default is False:
        return ""
    return f"{option.default:g}" if isinstance(option.default, float) else str(option.default)
