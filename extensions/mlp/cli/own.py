"""Verbs that a shell does in its own way."""

from __future__ import annotations

import getpass
import os
import sys

from mlp import cli, display, program, settings
from mlp.client import Client
from mlp.completion import SCRIPTS
from mlp.errors import UsageError
from mlp.handle import Job, dry_run, send
from mlp.logtail import follow_lines
from mlp.verbs import Call


def submit(call: Call) -> int:
    """Submit a script and return at once, or with its end."""
    given = call.given
    as_json = bool(given.get("json"))
    if given.get("wait") and given.get("detach"):
        raise UsageError("--wait stays until the end, --detach leaves at once: one of them")
    if not call.names:
        raise UsageError("nothing to run: mlp submit SCRIPT")
    if call.names[0] == "-":
        body = program.build(given, code=sys.stdin.read(), args=call.rest)
    else:
        body = program.build(given, entry=call.names[0], args=call.rest)
    client = Client.from_env()
    if given.get("dry_run"):
        cli.show(dry_run(client, body), as_json=as_json)
        return cli.DONE
    job = send(client, body, named="name" in given)
    if given.get("wait"):
        return _to_the_end(job, as_json=as_json)
    if as_json:
        cli.show(job, as_json=True)
    else:
        sys.stdout.write(
            f"{job.name}\n" if given.get("detach") else f"{job!r}. Follow it: mlp watch {job.name}\n"
        )
    return cli.DONE


def watch(call: Call) -> int:
    """Follow a job to its end."""
    client = Client.from_env()
    return _to_the_end(Job(client, client.job(call.names[0])), as_json=bool(call.given.get("json")))


def _to_the_end(job: Job, *, as_json: bool) -> int:
    if as_json:
        job.wait()
        cli.show(job, as_json=True)
    else:
        display.watch_text(job)
    return cli.DONE if job.phase == "finished" else cli.JOB_FAILED


def follow(client: Client, call: Call) -> int:
    """Print a log as it grows."""
    job = Job(client, client.job(call.names[0]))
    follow_lines(job, sys.stdout, rank=call.given.get("rank"), tail=call.given.get("tail"))
    return cli.DONE


def login(call: Call) -> int:
    """Check address and token, then store them for this user only."""
    stored = settings.read_login()
    url = (
        settings.normalise_url(call.names[0])
        if call.names
        else os.environ.get("MLP_API_URL") or stored.get("url")
    )
    if not url:
        raise UsageError("which hub? Right: mlp login http://HUB-ADDRESS:8000")
    if call.given.get("token_stdin") or not sys.stdin.isatty():
        token = sys.stdin.readline().strip()
    else:
        sys.stderr.write(f"A token is made at {url.removesuffix(settings.API_PATH)}/hub/token\n")
        token = getpass.getpass("Token: ").strip()
    if not token or not token.isascii() or not token.isprintable():
        raise UsageError("a token is needed: paste it, or --token-stdin with it on standard input")
    user = Client(url, token).user
    path = settings.write_login(url, token, user)
    if call.given.get("json"):
        cli.show({"user": user, "url": url, "file": str(path)}, as_json=True)
    else:
        sys.stdout.write(f"Logged in as {user} at {url}; stored in {path}.\n")
    return cli.DONE


def completion(call: Call) -> int:
    """Print the script that teaches a shell our words."""
    shell = call.names[0]
    if shell not in SCRIPTS:
        raise UsageError(f"{shell} is not one of {', '.join(SCRIPTS)}")
    sys.stdout.write(SCRIPTS[shell])
    return cli.DONE
