"""Jobs: submit, look at, steer; why they wait, their timeline and their logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Annotated

from msgspec import Meta, Struct

from mlp_api.jobs.jobs import (
    JOB_PATTERN,
    Event,
    Heartbeat,
    Job,
    JobAttempt,
    JobCost,
    JobCreate,
    JobName,
    JobNote,
    JobState,
    JobUpdate,
    LogLine,
    Preview,
    Resubmit,
    Why,
)
from mlp_api.platform.whatif import Decision
from mlp_api.stored.files import FileEntry
from mlp_api.types import Name
from mlp_hub.api.auth.scopes import JOBS_READ, JOBS_WRITE
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.edge.contents import ContentQuery, FilesQuery, content, listing
from mlp_hub.api.edge.paging import ListPage, listed
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import FINAL, Phase
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT, no_such_tenant
from mlp_hub.executors.base import BREAK, STATE, LogChunk
from mlp_language.message import msg

FOLLOW_EVERY_S = 0.3
"""Tuning: seconds between two looks for new lines of a followed log: how late lines come, for how often files are read."""

KEPT_TEXT = 1 << 20
"""Safety: characters of a line without an end that a follower's text keeps: bounds memory."""


class JobQuery(ListPage, forbid_unknown_fields=True):
    """Which jobs; of one `name` all its runs, of a `sweep` its trials, which are not listed otherwise."""

    state: JobState | None = None
    tenant: Name | None = None
    name: JobName | None = None
    sweep: Annotated[str, Meta(pattern=JOB_PATTERN, max_length=60)] | None = None


class LogQuery(Struct, forbid_unknown_fields=True):
    """Part of a rank's log; `since` is the offset that the last answer gave.

    With `tail` it is the last `tail` lines instead, and `since` and `limit` do not count. `follow`
    continues from there.
    """

    rank: Annotated[int, Meta(ge=0, le=100_000)] = 0
    since: Annotated[int, Meta(ge=0, le=2**62)] = 0
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    tail: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    follow: bool = False


class LogPage(Struct, kw_only=True):
    """Lines of a rank's log; pass `offset` back as `since` to continue.

    `dropped` bytes were discarded before them, and `dropped_lines` lines. The latter is null where the
    lines were not counted.
    """

    rank: int
    lines: list[LogLine]
    offset: int
    dropped: int
    dropped_lines: int | None = 0


async def submit(call: Call) -> Job:
    """Submit a job as the next run of its name; it is durable when the answer comes.

    While the latest run of that name has not ended it is refused with `Conflict`.
    """
    return await call.platform.jobs.submit(
        call.user, call.body, idempotency_key=call.idempotency_key, language=call.reader.language
    )


async def preview(call: Call) -> Preview:
    """Say what a job would be and get if it were submitted now, and refuse it as `POST /users/{user}/jobs` would; nothing is stored or queued.

    An Idempotency-Key has no effect here.
    """
    return await call.platform.jobs.preview(call.user, call.body)


async def list_(call: Call) -> Reply:
    """List a user's jobs, the newest first."""
    query: JobQuery = call.query
    jobs, cursor = await call.platform.jobs.list(
        call.context,
        call.user,
        tenant=query.tenant,
        state=query.state,
        name=query.name,
        sweep=None
        if query.sweep is None
        else await call.platform.sweeps.uid_of(call.context, call.user, query.sweep),
        **query.asked,
    )
    if not jobs and query.tenant is not None and query.name is None:
        await _known_tenant(call, query.tenant)
    return listed(call, jobs, cursor)


async def _known_tenant(call: Call, tenant: str) -> None:
    """Raise NotFound for a tenant that is not there or not the user's, and that no job of theirs is of."""
    mine = [place.tenant for place in await call.platform.tenants.of_user(call.user)]
    if tenant in mine or (await call.platform.jobs.list(call.context, call.user, tenant=tenant, limit=1))[0]:
        return
    if tenant == DEFAULT_TENANT and call.user == call.principal.name:
        raise no_such_tenant(tenant)
    own = call.user == call.principal.name
    raise Refused(
        Reason.NOT_FOUND,
        msg(
            "team {tenant} does not exist here; {whose}: {mine}",
            tenant=tenant,
            whose=msg("yours") if own else msg("teams of {user}", user=call.user),
            mine=tuple(mine) or msg("none"),
        ),
    )


async def get(call: Call) -> Job:
    """Show a job with its status."""
    return await call.platform.jobs.get(call.context, call.user, call.params["job"])


async def cost(call: Call) -> JobCost:
    """Show the cost of a run until now, of all amounts that the quota was charged for it."""
    return await call.platform.jobs.cost(call.context, call.user, call.params["job"])


async def cancel(call: Call) -> Job:
    """Stop a job for good."""
    return await call.platform.jobs.cancel(call.context, call.user, call.params["job"])


async def suspend(call: Call) -> Job:
    """Stop a job so that it can be resumed; it gives back what it holds."""
    return await call.platform.jobs.suspend(call.context, call.user, call.params["job"])


async def resume(call: Call) -> Job:
    """Queue a suspended job again."""
    return await call.platform.jobs.resume(call.context, call.user, call.params["job"])


async def resubmit(call: Call) -> Job:
    """Submit a job again as the next run of its name, in another size where the body names one; this run stays as it is."""
    return await call.platform.jobs.resubmit(
        call.context,
        call.user,
        call.params["job"],
        call.body,
        idempotency_key=call.idempotency_key,
        language=call.reader.language,
    )


async def update(call: Call) -> Job:
    """Change the priority or the time limit of a job that has not ended, or its place in its tenant's queue."""
    asker = call.principal
    return await call.platform.jobs.update(
        call.context,
        call.user,
        call.params["job"],
        call.body,
        actor=asker.name,
        platform=asker.is_platform_admin,
    )


async def note(call: Call) -> Job:
    """Attach a short note to a job in any state; an empty text removes it."""
    return await call.platform.jobs.note(
        call.context, call.user, call.params["job"], call.body, actor=call.principal.name
    )


async def delete(call: Call) -> Job:
    """Delete an ended job with its files."""
    return await call.platform.jobs.delete(call.context, call.user, call.params["job"])


async def heartbeat(call: Call) -> str:
    """Take a job's own word on how it is doing."""
    await call.platform.jobs.heartbeat(call.context, call.user, call.params["job"], call.body)
    return ""


async def why(call: Call) -> Why:
    """Say why a job waits, with numbers, and until when."""
    return await call.platform.jobs.why(call.context, call.user, call.params["job"])


async def events(call: Call) -> list[Event]:
    """Give a job's timeline."""
    return await call.platform.jobs.events(call.context, call.user, call.params["job"])


async def attempts(call: Call) -> list[JobAttempt]:
    """Tell when the job's newest attempts came to which stage: where the time went before their first line of output."""
    return await call.platform.jobs.attempts(call.context, call.user, call.params["job"])


async def decisions(call: Call) -> list[Decision]:
    """Tell why the scheduler admitted, preempted or resized the job: why then, why there, why this one.

    Kept for 14 days (`MLP_KEEP_DECISIONS_DAYS`). Names of other tenants' users and jobs are told to platform admins only.
    """
    return await call.platform.decisions.decisions_of(
        call.context, call.user, call.params["job"], call.viewer, asker=call.principal.name
    )


async def logs(call: Call) -> Reply:
    """Return a rank's log as text, or as JSON with times where that is accepted.

    `since` continues where the last answer ended, `tail` gives only the last lines, and `follow=1`
    follows the log until its end.
    """
    query: LogQuery = call.query
    if query.follow:
        await pin(call)  # a job that does not exist is refused before the stream begins
        return Reply(stream=_follow(call, query), media="text/plain; charset=utf-8")
    return log_reply(call, await _page(call, query, query.since, query.tail))


async def pin(call: Call) -> None:
    """Let the job of the path mean from now on the run that it means now; raise NotFound where there is none."""
    job = await get(call)
    call.params["job"] = f"{job.name}@{job.run}"


async def follow_pages(call: Call, query: LogQuery) -> AsyncIterator[LogPage]:
    """Yield a rank's log from `since` on, or its last `tail` lines first, until the job has ended and all was given."""
    since, tail = query.since, query.tail
    while True:
        # asked before reading: what is written before the end is then never missed
        ended = Phase((await get(call)).phase) in FINAL | {Phase.DELETING}
        page = await _page(call, query, since, tail)
        moved, since, tail = page.offset != since, page.offset, None
        if page.lines:
            yield page
        elif ended and not moved:
            return
        else:
            await asyncio.sleep(FOLLOW_EVERY_S)


async def _follow(call: Call, query: LogQuery) -> AsyncIterator[bytes]:
    begun: dict[str, LogLine] = {}  # of each stream the line without an end: text has no way to write over it
    async for page in follow_pages(call, query):
        ended = []
        for line in page.lines:
            before = begun.pop(line.stream, None)
            text = line.text if before is None or line.text.startswith(STATE) else before.text + line.text
            whole = LogLine(
                rank=line.rank,
                time=line.time,
                stream=line.stream,
                text=text[-KEPT_TEXT:],
                partial=line.partial,
            )
            if whole.partial:
                begun[line.stream] = whole
            else:
                ended.append(whole)
        if ended:
            yield log_text(ended)
    yield log_text(begun.values())


async def files(call: Call) -> Reply:
    """List a directory of a job: its checkpoints (`ckpt`), what its ranks wrote (`log`), its metrics, and what else it made."""
    query: FilesQuery = call.query
    page = await call.platform.jobs.files(
        call.context, call.user, call.params["job"], query.path, after=query.after, limit=query.limit
    )
    return listing(call, page)


async def file(call: Call) -> Reply:
    """Return a file of a job, or a `Range` of it.

    The answer for a file that shrinks meanwhile ends early, with the connection.
    """
    query: ContentQuery = call.query
    return content(
        call,
        await call.platform.jobs.open_file(call.context, call.user, call.params["job"], query.path),
        query.path,
    )


async def _page(call: Call, query: LogQuery, since: int, tail: int | None) -> LogPage:
    chunk = await call.platform.jobs.log_chunk(
        call.context, call.user, call.params["job"], query.rank, since=since, limit=query.limit, tail=tail
    )
    return page_of(chunk)


def page_of(chunk: LogChunk) -> LogPage:
    """Return part of a log as it crosses the wire."""
    lines = [
        LogLine(rank=chunk.rank, time=x.time, stream=x.stream, text=x.text, partial=x.partial)
        for x in chunk.lines
    ]
    return LogPage(
        rank=chunk.rank,
        lines=lines,
        offset=chunk.offset,
        dropped=chunk.dropped,
        dropped_lines=chunk.dropped_lines,
    )


def log_reply(call: Call, page: LogPage) -> Reply:
    """Give it as text, or as JSON where that is accepted."""
    if "application/json" in call.accept:
        return Reply(call.encode(page))
    headers = {"X-Log-Offset": str(page.offset), "X-Log-Dropped": str(page.dropped)}
    return Reply(log_text(page.lines), media="text/plain; charset=utf-8", headers=headers)


def log_text(lines: Iterable[LogLine]) -> bytes:
    """Return lines as text; a line that moved its cursor is the text that a terminal shows."""
    shown = (line.text.rpartition(STATE)[2].replace(BREAK, "\n") for line in lines)
    return "".join(f"{text}\n" for text in shown).encode("utf-8", "replace")


_JOBS = "/users/{user}/jobs"
_JOB = "/users/{user}/jobs/{job}"

ROUTES = (
    Route(
        "POST",
        _JOBS,
        submit,
        "Submit a job",
        Relation.SELF,
        JOBS_WRITE,
        body=JobCreate,
        reply=Job,
        status=201,
    ),
    Route(
        "POST",
        f"{_JOBS}:preview",
        preview,
        "Say what a job would be and get",
        Relation.SELF,
        JOBS_WRITE,
        body=JobCreate,
        reply=Preview,
    ),
    Route(
        "GET", _JOBS, list_, "List a user's jobs", Relation.SELF, JOBS_READ, query=JobQuery, reply=list[Job]
    ),
    Route("GET", f"{_JOB}/cost", cost, "What a job has cost", Relation.OWNED, JOBS_READ, reply=JobCost),
    Route("GET", _JOB, get, "Show a job", Relation.OWNED, JOBS_READ, reply=Job, job_token=True),
    Route("PUT", f"{_JOB}:cancel", cancel, "Cancel a job", Relation.OWNED, JOBS_WRITE, reply=Job),
    Route("PUT", f"{_JOB}:suspend", suspend, "Suspend a job", Relation.OWNED, JOBS_WRITE, reply=Job),
    Route("PUT", f"{_JOB}:resume", resume, "Resume a suspended job", Relation.SELF, JOBS_WRITE, reply=Job),
    Route(
        "PUT",
        f"{_JOB}:resubmit",
        resubmit,
        "Run a job again",
        Relation.SELF,
        JOBS_WRITE,
        body=Resubmit,
        body_optional=True,
        reply=Job,
        makes=True,
    ),
    Route(
        "PUT",
        f"{_JOB}:update",
        update,
        "Change a job that has not ended",
        Relation.OWNED,
        JOBS_WRITE,
        body=JobUpdate,
        reply=Job,
        bucket="change",
    ),
    Route(
        "PUT",
        f"{_JOB}/note",
        note,
        "Attach a note to a job",
        Relation.SELF,
        JOBS_WRITE,
        body=JobNote,
        reply=Job,
        bucket="change",
    ),
    Route("DELETE", _JOB, delete, "Delete an ended job", Relation.SELF, JOBS_WRITE, reply=Job),
    Route(
        "PUT",
        f"{_JOB}:heartbeat",
        heartbeat,
        "A job tells how it is doing",
        Relation.SELF,
        JOBS_WRITE,
        body=Heartbeat,
        reply=str,
        job_token=True,
        bucket="metrics",
    ),
    Route("GET", f"{_JOB}/why", why, "Why a job waits", Relation.OWNED, JOBS_READ, reply=Why),
    Route("GET", f"{_JOB}/events", events, "A job's timeline", Relation.OWNED, JOBS_READ, reply=list[Event]),
    Route(
        "GET",
        f"{_JOB}/attempts",
        attempts,
        "When a job's attempts came to which stage",
        Relation.OWNED,
        JOBS_READ,
        reply=list[JobAttempt],
    ),
    Route(
        "GET",
        f"{_JOB}/decisions",
        decisions,
        "Why the scheduler did what it did with a job",
        Relation.OWNED,
        JOBS_READ,
        reply=list[Decision],
    ),
    Route(
        "GET",
        f"{_JOB}/logs",
        logs,
        "A rank's log",
        Relation.OWNED,
        JOBS_READ,
        query=LogQuery,
        reply=str,
        media="text/plain",
    ),
    Route(
        "GET",
        f"{_JOB}/files",
        files,
        "List a job's files",
        Relation.OWNED,
        JOBS_READ,
        query=FilesQuery,
        reply=list[FileEntry],
    ),
    Route(
        "GET",
        f"{_JOB}/files/content",
        file,
        "A file of a job",
        Relation.OWNED,
        JOBS_READ,
        query=ContentQuery,
        reply=str,
        media="application/octet-stream",
        partial=True,
    ),
)
