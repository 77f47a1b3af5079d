"""The `mlp` command: the magic's verbs in a shell.

Exit status: 0 done, 1 the job failed, 2 usage, 3 refused (quota, rights, no login, a channel that takes no test), 4 the service
is unreachable, 130 interrupted (a watched job continues).
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Sequence

from mlp.cli.output import DONE, INTERRUPTED, JOB_FAILED, REFUSED, UNREACHABLE, USAGE, show
from mlp.errors import JobFailed, MLPError, Refused, Unauthorized, Unreachable, UsageError
from mlp.grammar.help_text import help_of, usage
from mlp.grammar.parsing import ParsedLine, parse
from mlp.grammar.verbs import COMMAND, VERBS, find

STATUS: tuple[tuple[type[MLPError], int], ...] = (
    (JobFailed, JOB_FAILED),
    (UsageError, USAGE),
    (Refused, REFUSED),
    (Unauthorized, REFUSED),
    (Unreachable, UNREACHABLE),
    (MLPError, JOB_FAILED),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    _open_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    own = words[: words.index("--")] if "--" in words else words
    try:
        return _dispatch(words, own)
    except MLPError as error:
        return _fail(error, as_json="--json" in own)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # who read us has gone: the interpreter must not complain about it at its end
        sys.stdout = None
        return DONE


def _dispatch(words: list[str], own: list[str]) -> int:
    status = DONE
    if words[:1] == ["_complete"]:
        _complete(words[1:])
    elif not words or words[0] in {"help", "--help", "-h"}:
        sys.stdout.write(help_of(words[1:] if words[:1] == ["help"] else [], COMMAND) + "\n")
        status = DONE if words else USAGE
    elif words[0] == "--version":
        from importlib.metadata import version  # noqa: PLC0415 - only here

        sys.stdout.write(f"mlp {version('mlp-hub')}\n")
    elif "--help" in own or "-h" in own:
        sys.stdout.write(usage(find(words[0], COMMAND), COMMAND) + "\n")
    else:
        status = _run(parse(words, COMMAND))
    return status


def _open_streams() -> None:
    """Give a command whose caller closed an output, of which Python makes none, one that forgets what is written."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, _Nowhere())


class _Nowhere(io.TextIOBase):
    """An output that keeps nothing: a log that is followed has no end."""

    def write(self, text: str) -> int:
        return len(text)


def _fail(error: MLPError, *, as_json: bool) -> int:
    if as_json:
        reason = getattr(error, "reason", type(error).__name__)
        traced = {"request_id": error.request_id} if error.request_id else {}
        sys.stderr.write(json.dumps({"error": reason, "msg": str(error), **traced}) + "\n")
    else:
        sys.stderr.write(f"mlp: {error}\n" + (f"     {error.traced}\n" if error.traced else ""))
    return next(status for kind, status in STATUS if isinstance(error, kind))


def _run(call: ParsedLine) -> int:
    from mlp.cli import login, own  # noqa: PLC0415 - likewise
    from mlp.commands import actions, outcomes  # noqa: PLC0415 - help and usage errors need none of it

    mine: dict[str, Callable[[ParsedLine], int]] = {
        "submit": own.submit,
        "sweep": own.sweep,
        "login": login.login,
        "logout": login.logout,
        "whoami": login.whoami,
        "completion": own.completion,
    }
    name = call.verb.name
    if name in mine:
        return mine[name](call)
    from mlp.client.rest import Client  # noqa: PLC0415 - likewise

    client = Client.from_env()
    with actions.hinting(client, call):
        if name == "watch":
            return own.watch(client, call)
        if name == "secret" and call.names[:1] == ["set"]:
            return own.set_secret(client, call)
        if name == "logs" and call.given.get("follow"):
            return own.follow(client, call)
        found = actions.SIMPLE[name](client, call)
    login.remind()
    show(found, as_json=bool(call.given.get("json")))
    return REFUSED if isinstance(found, outcomes.Outcomes) and found.failed else DONE


def _complete(words: list[str]) -> None:
    from mlp.commands.completion import Remembering, complete  # noqa: PLC0415 - only for a shell's tab key

    before, current = (words[:-1], words[-1]) if words else ([], "")
    for found in complete(before, current, COMMAND, Remembering(wait=2.0)):
        sys.stdout.write(found + "\n")


__all__ = ["VERBS", "main", "show"]
