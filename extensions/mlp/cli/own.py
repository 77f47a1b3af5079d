"""Verbs that a shell does in its own way."""

from __future__ import annotations

import getpass
import sys
from typing import Any

from mlp.cli import output
from mlp.client.rest import Client
from mlp.commands.completion import SCRIPTS
from mlp.display import job_monitor, sweep_monitor
from mlp.display.log_tail import follow_lines
from mlp.errors import UsageError
from mlp.grammar.job_options import seconds_meant
from mlp.grammar.parsing import ParsedLine, script_after_hyphens
from mlp.grammar.sweep_options import starts
from mlp.handles import sweeping
from mlp.handles.dry_run import dry_run
from mlp.handles.job import Job
from mlp.handles.sending import send
from mlp.language import say
from mlp.rendering import times, words
from mlp.submitting import program

ACCESS_KEY, SECRET_KEY = "access_key_id", "secret_access_key"


def _body(call: ParsedLine) -> dict[str, Any]:
    """Return the body of a job of a script, or of standard input."""
    script_after_hyphens(call)
    if not call.names:
        raise UsageError(say("nothing to run: {command}", command=f"mlp {call.verb.name} SCRIPT"))
    if call.names[0] == "-":
        return program.build(call.given, code=sys.stdin.read(), args=call.rest)
    return program.build(call.given, entry=call.names[0], args=call.rest)


def sweep(call: ParsedLine) -> int:
    """Start a sweep and return at once, or with its end; or show one that is there."""
    given = call.given
    if not starts(given):
        client = Client.from_env()
        if not call.names:
            output.show(sweeping.listed(client.sweeps()), as_json=bool(given.get("json")))
            return output.DONE
        found = sweeping.Sweep(client, client.sweep(call.names[0]))
        if given.get("wait"):
            return _sweep_to_the_end(found, as_json=bool(given.get("json")))
        output.show(found, as_json=bool(given.get("json")))
        return output.DONE
    return _begin(sweeping.completed(_body(call), given), call)


def _begin(body: dict[str, Any], call: ParsedLine) -> int:
    given, as_json = call.given, bool(call.given.get("json"))
    found = sweeping.begin(Client.from_env(), body, {**given, "wait": False})
    if not isinstance(found, sweeping.Sweep):
        output.show(found, as_json=as_json)
        return output.DONE
    if given.get("wait"):
        return _sweep_to_the_end(found, as_json=as_json)
    if as_json:
        output.show(found, as_json=True)
    else:
        line = say(
            "{name} was started. Follow it: {command}",
            name=found.title,
            command=f"mlp watch {found.reference}",
        )
        sys.stdout.write(f"{found.reference if given.get('detach') else line}\n")
    return output.DONE


def _sweep_to_the_end(found: sweeping.Sweep, *, as_json: bool) -> int:
    if as_json:
        found.wait()
        output.show(found, as_json=True)
    else:
        sweep_monitor.watch_text(found)
    return output.DONE if found.state == "finished" else output.JOB_FAILED


def submit(call: ParsedLine) -> int:
    """Submit a script and return at once, or with its end."""
    given = call.given
    as_json = bool(given.get("json"))
    if given.get("wait") and given.get("detach"):
        raise UsageError(say("--wait waits until the end, --detach returns at once; give only one of them"))
    body = _body(call)
    if given.get("array") is not None:
        return _begin(sweeping.as_array(body, given), call)
    client = Client.from_env()
    if given.get("dry_run"):
        output.show(dry_run(client, body, named="name" in given), as_json=as_json)
        return output.DONE
    job = send(client, body, named="name" in given)
    for note in filter(None, (seconds_meant(given), job.note)):
        sys.stderr.write(f"{note}\n")
    if given.get("wait"):
        return _to_the_end(job, as_json=as_json)
    if as_json:
        output.show(job, as_json=True)
    else:
        of = words.reference(job.data)
        how = say(", ").join(filter(None, [repr(job), times.time_limit(job.data)]))
        line = say("{job}. Follow it: {command}", job=how, command=f"mlp watch {of}")
        sys.stdout.write(f"{of if given.get('detach') else line}\n")
    return output.DONE


def watch(client: Client, call: ParsedLine) -> int:
    """Follow a job to its end."""
    as_json = bool(call.given.get("json"))
    found = sweeping.job_or_sweep(client, call.names[0])
    if isinstance(found, sweeping.Sweep):
        return _sweep_to_the_end(found, as_json=as_json)
    return _to_the_end(found, as_json=as_json)


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
    sys.stdout.write(say("The secret {name} is set. It is never shown again.", name=name) + "\n")
    return output.DONE


def _to_the_end(job: Job, *, as_json: bool) -> int:
    if as_json:
        job.wait()
        output.show(job, as_json=True)
    else:
        job_monitor.watch_text(job)
    return output.DONE if job.phase == "finished" else output.JOB_FAILED


def follow(client: Client, call: ParsedLine) -> int:
    """Print a log as it grows; the status is 1 where the job did not finish well."""
    job = Job(client, client.job(call.names[0]))
    follow_lines(job, sys.stdout, rank=call.given.get("rank"), tail=call.given.get("tail"))
    return output.DONE if job.phase == "finished" else output.JOB_FAILED


def completion(call: ParsedLine) -> int:
    """Print the script that teaches a shell our words."""
    shell = call.names[0]
    if shell not in SCRIPTS:
        raise UsageError(say("{what} is not one of {names}", what=shell, names=", ".join(SCRIPTS)))
    sys.stdout.write(SCRIPTS[shell])
    return output.DONE
