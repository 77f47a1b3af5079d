"""`%mlp` and `%%mlp`: the command's verbs in a notebook, with the cell as program."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class

from mlp.client.rest import Client
from mlp.commands import actions
from mlp.commands.outcomes import Outcomes
from mlp.display import job_monitor, sweep_monitor
from mlp.errors import JobFailed, UsageError
from mlp.grammar.help_text import help_of, usage
from mlp.grammar.job_options import seconds_meant
from mlp.grammar.parsing import ParsedLine, parse, script_after_hyphens
from mlp.grammar.sweep_options import starts
from mlp.grammar.verbs import MAGIC, find
from mlp.handles import sweeping
from mlp.handles.dry_run import dry_run
from mlp.handles.job import Job
from mlp.handles.sending import send
from mlp.language import say
from mlp.rendering import times, words
from mlp.rendering.words import sentences
from mlp.submitting import program
from mlp.terms import RUNTIMES


def split(line: str) -> list[str]:
    """Split a line as a shell does."""
    try:
        return shlex.split(line)
    except ValueError as error:
        why = say("the line cannot be split into words ({why}); quotes come in pairs", why=str(error))
        raise UsageError(why) from None


@magics_class
class MLPMagics(Magics):  # type: ignore[misc,unused-ignore]
    """The magics; `_mlp` is the job last submitted, watched or shown."""

    @line_cell_magic  # type: ignore[untyped-decorator,unused-ignore]
    def mlp(self, line: str, cell: str | None = None) -> Any:
        """MLP Hub: submit, watch and steer jobs. `%mlp` alone shows help with examples."""
        said = split(line)
        if not said or said[0] in {"help", "--help", "-h"}:
            sys.stdout.write(help_of(said[1:] if said[:1] == ["help"] else [], MAGIC) + "\n")
            return None
        own = said[: said.index("--")] if "--" in said else said
        if "--help" in own or "-h" in own:
            sys.stdout.write(usage(find(said[0], MAGIC), MAGIC) + "\n")
            return None
        call = parse(said, MAGIC)
        if cell is None:
            script_after_hyphens(call)
        if cell is not None and call.verb.name not in {"submit", "sweep"}:
            raise UsageError(
                say(
                    "a cell's text is a program: %%mlp submit or %%mlp sweep. For {verb} write {command}",
                    verb=call.verb.name,
                    command=f"%mlp {line}",
                )
            )
        if call.verb.name == "submit":
            return self.submit(call, cell)
        if call.verb.name == "sweep" and (cell is not None or starts(call.given)):
            return self.sweep(call, cell)
        client = Client.from_env()
        with actions.hinting(client, call):
            return self.steer(client, call)

    def steer(self, client: Client, call: ParsedLine) -> Any:
        """Do all but submit."""
        if call.verb.name == "sweep":
            return self.show_sweep(client, call)
        if call.verb.name == "watch":
            self.watch(client, call)
            return None
        if call.verb.name == "logs" and call.given.get("follow"):
            follow_log(client, call)
            return None
        found = actions.SIMPLE[call.verb.name](client, call)
        if isinstance(found, actions.Picture):
            self.remember(Job(client, found.data["job"]))
        if isinstance(found, Outcomes) and found.failed:
            sys.stdout.write(f"{found!r}\n")
            raise found.failed[0]
        return found

    def submit(self, call: ParsedLine, cell: str | None) -> Any:
        """Submit a cell or a script."""
        given = call.given
        if given.get("wait") and given.get("detach"):
            raise UsageError(
                say("--wait waits until the end, --detach returns at once; give only one of them")
            )
        if not call.names and cell is None:
            raise UsageError(say("nothing to run: %mlp submit SCRIPT, or %%mlp submit on top of a program"))
        body = self.program(call, cell)
        client = Client.from_env()
        if given.get("array") is not None:
            return self.begin(client, sweeping.as_array(body, given), call)
        if given.get("dry_run"):
            return dry_run(client, body, named="name" in given)
        job = send(client, body, named="name" in given)
        self.remember(job)
        for note in filter(None, (seconds_meant(given), job.note)):
            sys.stdout.write(f"{note}\n")
        if given.get("detach"):
            name, limit = words.title(job.data), times.time_limit(job.data)
            done = say("{job} was submitted, {limit}.", job=name, limit=limit) if limit else ""
            done = "" if job.note else done or say("{job} was submitted.", job=name)
            watch = say("Follow it: {command}", command=f"%mlp watch {words.reference(job.data)}")
            sys.stdout.write(f"{sentences(done, watch)}\n")
        elif given.get("wait"):
            self.wait(job)
        else:
            job_monitor.show_submitted(job)
        return None

    def program(self, call: ParsedLine, cell: str | None) -> dict[str, Any]:
        """Make the body of a job of a cell or a script."""
        script = call.names[0] if call.names else None
        if script is not None and cell is not None and cell.strip():
            raise UsageError(
                say(
                    "either {script} or the cell's text, not both: {command} with one %",
                    script=script,
                    command=f"%mlp {call.verb.name} {script}",
                )
            )
        if cell is not None and call.given.get("runtime", RUNTIMES[0]) in RUNTIMES:
            note = program.unseen(cell, self.space(), call.given.get("with", ()))
            sys.stdout.write(f"{note}\n" if note else "")
        return program.build(
            call.given,
            entry=script,
            # the magic's line stays as a comment, so that line numbers in errors are the cell's
            code=None
            if script is not None or cell is None or not cell.strip()
            else f"# %%mlp {call.verb.name}\n{cell}",
            args=call.rest,
            variables=self.variables(call.given.get("with", ())),
        )

    def sweep(self, call: ParsedLine, cell: str | None) -> Any:
        """Start a sweep of a cell or a script."""
        given = call.given
        if not starts(given):
            raise UsageError(
                say(
                    'nothing to try: add --grid lr=0.1,0.01 or --search "dropout=uniform(0, 0.5)" --trials 20'
                )
            )
        if not call.names and cell is None:
            raise UsageError(say("nothing to run: %mlp sweep SCRIPT, or %%mlp sweep on top of a program"))
        return self.begin(Client.from_env(), sweeping.completed(self.program(call, cell), given), call)

    def begin(self, client: Client, body: dict[str, Any], call: ParsedLine) -> Any:
        """Start a sweep and show it; with --wait stay until it ends."""
        given = call.given
        found = sweeping.begin(client, body, {**given, "wait": False}, sys.stdout)
        if not isinstance(found, sweeping.Sweep):
            return found
        self.space()["_mlp"] = found
        if given.get("detach"):
            line = say(
                "{name} was started. Follow it: {command}",
                name=found.title,
                command=f"%mlp sweep {found.reference}",
            )
            sys.stdout.write(f"{line}\n")
            return None
        sweep_monitor.show(found, started=not given.get("wait"))
        if given.get("wait"):
            try:
                found.wait()
            except KeyboardInterrupt:
                return None
            if found.state == "failed":
                raise JobFailed(found, str(found.data.get("message")))
        return None

    def show_sweep(self, client: Client, call: ParsedLine) -> Any:
        """Show a sweep again; all of them where none is named."""
        if not call.names:
            return sweeping.listed(client.sweeps())
        found = sweeping.Sweep(client, client.sweep(call.names[0]))
        self.space()["_mlp"] = found
        try:
            sweep_monitor.show(found)
        except KeyboardInterrupt:
            return None
        return None

    def wait(self, job: Job) -> None:
        """Stay until the job ends; one that did not finish well fails the cell."""
        try:
            job_monitor.show_to_the_end(job)
        except KeyboardInterrupt:
            return
        job.check(shown=True)

    def watch(self, client: Client, call: ParsedLine) -> None:
        """Show a job live."""
        found = sweeping.job_or_sweep(client, call.names[0])
        if isinstance(found, sweeping.Sweep):
            self.show_sweep(client, call)
            return
        job = found
        self.remember(job)
        try:
            job_monitor.show(job)
        except KeyboardInterrupt:
            return

    def variables(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return the notebook's variables of these names."""
        space = self.space()
        missing = [n for n in names if n not in space]
        if missing:
            raise UsageError(
                say(
                    "--with {names}: this notebook has no variable {missing}",
                    names=",".join(names),
                    missing=missing[0],
                )
            )
        return {n: space[n] for n in names}

    def remember(self, job: Job) -> None:
        """Make a job `_mlp`."""
        self.space()["_mlp"] = job

    def space(self) -> dict[str, Any]:
        """Return the notebook's variables."""
        shell: Any = self.shell
        found: dict[str, Any] = shell.user_ns
        return found


def follow_log(client: Client, call: ParsedLine, out: Any = None) -> Job:
    """Write log lines as they come, until the job ends."""
    from mlp.display.log_tail import follow_lines  # noqa: PLC0415 - seldom used

    job = Job(client, client.job(call.names[0]))
    try:
        to = out or sys.stdout
        follow_lines(
            job,
            to,
            rank=call.given.get("rank"),
            tail=call.given.get("tail"),
            tell=lambda line: to.write(f"{line}\n"),
        )
    except KeyboardInterrupt:
        sys.stdout.write(f"\n{say('No longer following; {job} continues.', job=words.title(job.data))}\n")
    return job


__all__ = ["JobFailed", "MLPMagics"]
