"""Verbs that a shell does in its own way."""

from __future__ import annotations

import getpass
import sys

from mlp import cli, display, program, words
from mlp.client import Client
from mlp.completion import SCRIPTS
from mlp.errors import UsageError
from mlp.handle import Job, dry_run, send
from mlp.language import say
from mlp.logtail import follow_lines
from mlp.verbs import ParsedLine

ACCESS_KEY, SECRET_KEY = "access_key_id", "secret_access_key"


def submit(call: ParsedLine) -> int:
    """Submit a script and return at once, or with its end."""
    given = call.given
    as_json = bool(given.get("json"))
    if given.get("wait") and given.get("detach"):
        raise UsageError(say("--wait stays until the end, --detach leaves at once: one of them"))
    if not call.names:
        raise UsageError(say("nothing to run: mlp submit SCRIPT"))
    if call.names[0] == "-":
        body = program.build(given, code=sys.stdin.read(), args=call.rest)
    else:
        body = program.build(given, entry=call.names[0], args=call.rest)
    client = Client.from_env()
    if given.get("dry_run"):
        cli.show(dry_run(client, body), as_json=as_json)
        return cli.DONE
    job = send(client, body, named="name" in given)
    for note in filter(None, (words.seconds_meant(given), job.note)):
        sys.stderr.write(f"{note}\n")
    if given.get("wait"):
        return _to_the_end(job, as_json=as_json)
    if as_json:
        cli.show(job, as_json=True)
    else:
        of = words.reference(job.data)
        how = say(", ").join(filter(None, [repr(job), words.time_limit(job.data)]))
        line = say("{job}. Follow it: {command}", job=how, command=f"mlp watch {of}")
        sys.stdout.write(f"{of if given.get('detach') else line}\n")
    return cli.DONE


def watch(client: Client, call: ParsedLine) -> int:
    """Follow a job to its end."""
    return _to_the_end(Job(client, client.job(call.names[0])), as_json=bool(call.given.get("json")))


def set_secret(client: Client, call: ParsedLine) -> int:
    """Set a secret: each key is asked for without showing it, or comes as a line of standard input."""
    _, name, *keys = call.names
    keys = keys or [ACCESS_KEY, SECRET_KEY]
    given = {}
    for key in keys:
        typed = sys.stdin.isatty()
        given[key] = getpass.getpass(f"{key}: ").strip() if typed else sys.stdin.readline().strip()
        if not given[key]:
            raise UsageError(
                say(
                    "{key} is missing: type it in, or send a line for each of {keys}",
                    key=key,
                    keys=say(", ").join(keys),
                )
            )
    client.set_secret(name, given, call.given.get("tenant"))
    sys.stdout.write(say("The secret {name} is set. Nobody is shown it again.", name=name) + "\n")
    return cli.DONE


def _to_the_end(job: Job, *, as_json: bool) -> int:
    if as_json:
        job.wait()
        cli.show(job, as_json=True)
    else:
        display.watch_text(job)
    return cli.DONE if job.phase == "finished" else cli.JOB_FAILED


def follow(client: Client, call: ParsedLine) -> int:
    """Print a log as it grows."""
    job = Job(client, client.job(call.names[0]))
    follow_lines(job, sys.stdout, rank=call.given.get("rank"), tail=call.given.get("tail"))
    return cli.DONE


def completion(call: ParsedLine) -> int:
    """Print the script that teaches a shell our words."""
    shell = call.names[0]
    if shell not in SCRIPTS:
        raise UsageError(say("{what} is not one of {names}", what=shell, names=", ".join(SCRIPTS)))
    sys.stdout.write(SCRIPTS[shell])
    return cli.DONE
