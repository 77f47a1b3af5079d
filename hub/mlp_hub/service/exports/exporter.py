"""Exporter of jobs' metric points to one target: reads them from the database, and hands them on in order.

The queue is the database: of a job a row says how far its points were handed on, and memory has only the jobs that are behind. So
storing points never waits for a target, a target that is away costs no memory and no point, and a restart continues at the row.
The row is stored after the target has answered. A kill in between hands the same points on again, with the same times and values.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.jobs.job import FINAL, Job
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.point_targets import KINDS
from mlp_hub.service.config import ExportPolicy
from mlp_hub.service.exports.backlog import MOST_JOBS, ExportBacklog
from mlp_hub.service.exports.doubts import ExportDoubts
from mlp_hub.service.exports.parts import ExportPart, part_of, points_of, request_of
from mlp_hub.service.exports.sizes import RequestSizes
from mlp_hub.service.monitoring.events import PlatformEvents
from mlp_hub.service.notices.sender import Sender
from mlp_hub.service.state.leadership import LeaseLost
from mlp_hub.service.support.retrying import RetryWaits
from mlp_hub.store.database import Database
from mlp_hub.store.records import Appended, ExportCursor
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

log = logging.getLogger(__name__)
GATHER_S = 5.0
"""Tuning: seconds between two requests if nothing is behind: fewer requests with more, fresher curves with less."""
RETRY_S, RETRY_MOST_S = 1.0, 60.0
"""Tuning: seconds until the next request to a target that does not answer, at first and at most; the same for a job that it fails at."""
LOAD_JOBS = 1000
"""Tuning: jobs behind that are read at a time after a start."""


@dataclass(frozen=True, slots=True)
class SettledPart:
    """Cursor to store for a job. `passed`: its points up to there need not be sent again."""

    cursor: ExportCursor
    passed: bool = True


@dataclass(frozen=True, slots=True)
class ExportTurn:
    """Work of a turn: lots of parts with their JSON, jobs that are gone, and cursors that are stored without a request.

    `full`: there may be more to hand on at once.
    """

    lots: Sequence[tuple[Sequence[ExportPart], str]]
    gone: Sequence[str]
    rest: Sequence[ExportCursor]
    full: bool


class PointExporter:
    """Exporter to one target. `behind` is the number of points that wait, `trouble` why the target takes none now."""

    def __init__(
        self,
        db: Database,
        sender: Sender,
        policy: ExportPolicy,
        events: PlatformEvents,
        *,
        gather_s: float = GATHER_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self.kind = policy.kind
        self.trouble: Message | None = None
        self._db = db
        self._sender = sender
        self._policy = policy
        self._title = KINDS[policy.kind].title
        self._ends = KINDS[policy.kind].ends
        # another address is another target, which has none of the points
        self._name = f"{policy.kind}-{hashlib.sha256(policy.address.encode()).hexdigest()[:16]}"
        self._events = events
        self._gather_s = gather_s
        self._backlog = ExportBacklog()
        self._wanted: dict[str, bool] = {}  # jobs that report, and whether their points are exported
        self._sizes = RequestSizes(KINDS[policy.kind])
        self._doubts = ExportDoubts(retry_s, RETRY_MOST_S)
        self._retry = RetryWaits(retry_s, RETRY_MOST_S)
        self._refused: set[str] = set()  # jobs whose first refusal was logged
        self._something = asyncio.Event()
        self._task = BackgroundTask(self._run)

    @property
    def behind(self) -> int:
        """Number of points that are stored and not exported."""
        return self._backlog.points

    def start(self) -> None:
        """Export from now on."""
        for result in ("sent", "dropped"):
            self._events.exported.begin(self.kind, result)
        self._events.export_failures.begin(self.kind)
        self._task.start()

    async def stop(self) -> None:
        """Export no more."""
        await self._task.stop()
        await self._sender.stop()

    # --- what the parts call

    def begin(self, tx: Tx, uid: str) -> None:
        """Store that the job's points are exported, in the transaction of its first ones; for the thread that writes."""
        if uid in self._wanted:
            return
        if self._wants(tx, uid):
            tx.point_exports.begin(uid, self._name)
        else:
            self._wanted[uid] = False

    def stored(self, uid: str, done: Appended) -> None:
        """Note points that were stored."""
        if not self._wanted.setdefault(uid, True):  # its row is stored now
            return
        if self._backlog.add(uid, done.seq_first - 1, done.seq_first + len(done.accepted) - 1):
            self._something.set()

    def changed(self, job: Job, before: Job | None) -> None:
        """Note the end of a job."""
        if job.phase not in FINAL or (before is not None and before.phase in FINAL):
            return
        # of a job that is not known, such as one from before a restart, the row says whether it is exported
        if self._wanted.get(job.uid, True) and self._backlog.mark(job.uid):
            self._something.set()
        else:
            self._wanted.pop(job.uid, None)

    def _wants(self, tx: Tx, uid: str) -> bool:
        if not self._policy.tenants:
            return True
        job = tx.jobs.get(SYSTEM, uid)
        return job is not None and job.spec.tenant in self._policy.tenants

    # --- its task

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        self._backlog.overflowed = True  # what the database has is not known yet
        full = True
        while True:
            try:
                if not self._backlog and self._backlog.overflowed:
                    await self._load()
                if not self._backlog:
                    self._something.clear()
                    await self._something.wait()
                    full = False
                if not full:
                    await asyncio.sleep(self._gather_s)
                passed, full = await self._turn(loop.time())
            except LeaseLost:
                return
            except Exception:
                log.exception("exporting metric points to %s failed; it is tried again", self._title)
                passed = False
            await self._retry.after(passed=passed)

    async def _load(self) -> None:
        """Read which jobs are behind: at the start, and after there were more than memory takes."""
        after, self._backlog.overflowed = "", False
        while len(self._backlog) + LOAD_JOBS <= MOST_JOBS:
            try:
                found = await self._db.read(partial(self._open, after=after))
            except BaseException:
                self._backlog.overflowed = True  # what is left is read at the next try
                raise
            for cursor, newest, wanted in found:
                self._wanted[cursor.job] = wanted
                if wanted:
                    self._backlog.add(cursor.job, cursor.seq, newest)
            if len(found) < LOAD_JOBS:
                return
            after = found[-1][0].job
        self._backlog.overflowed = True

    def _open(self, tx: Tx, *, after: str) -> list[tuple[ExportCursor, int, bool]]:
        found = tx.point_exports.behind(self._name, after, LOAD_JOBS)
        return [(c, tx.metrics.last_seq(c.job), self._wants(tx, c.job)) for c in found]

    async def _turn(self, now: float) -> tuple[bool, bool]:
        """Hand on some points; return whether the target answered, and whether there may be more at once."""
        jobs, abreast = self._sizes.jobs, self._sizes.abreast(doubts=bool(self._doubts))
        most = jobs * abreast
        uids = self._backlog.turn(now, most)
        if not uids:
            return True, False
        turn = await self._db.read(partial(self._read, uids=uids, jobs=jobs, abreast=abreast))
        for uid in turn.gone:
            if not self._backlog.has_news(uid):  # else its first points came after it was looked for
                self._forget(uid)
        outcomes = await asyncio.gather(*(self._send(parts, data) for parts, data in turn.lots))
        settled = [one for some, _ in outcomes for one in some]
        if settled or turn.rest:
            await self._store(settled, turn.rest)
        answers = [answered for _, answered in outcomes]
        if answers:
            self._judge(passed=any(answers), all_passed=all(answers))
        return any(answers) or not answers, turn.full or len(uids) == most

    def _judge(self, *, passed: bool, all_passed: bool) -> None:
        """Decide how many jobs the next request has, and put jobs aside that the target does not take while it takes others.

        A filter before a target may refuse the words of one job as if the token was wrong. So all others have their turns first.
        """
        self._sizes.answered(all_taken=all_passed)
        if passed:
            now = asyncio.get_running_loop().time()
            for uid, wait in self._doubts.others_taken():
                self._backlog.put_aside(uid, now + wait)

    def _read(self, tx: Tx, *, uids: Sequence[str], jobs: int, abreast: int) -> ExportTurn:
        lots: list[list[ExportPart]] = []
        gone: list[str] = []
        rest: list[ExportCursor] = []
        full = False
        left = 0
        for uid in uids:
            if not lots or len(lots[-1]) == jobs:
                if len(lots) == abreast:
                    full = True
                    break
                left = self._sizes.values
            if left <= 0:
                full = True  # it has its turn in the next request
                break
            part = part_of(tx, self._name, uid, left)
            if part is None:
                gone.append(uid)
            elif not part.points and not (part.ends and self._ends):
                rest.append(_after(part, ""))
            else:
                if not lots or len(lots[-1]) == jobs:
                    lots.append([])
                lots[-1].append(part)
                left -= sum(len(p.values) for p in part.points)
                full = full or not part.whole
        return ExportTurn([(lot, request_of(lot, self._policy)) for lot in lots], gone, rest, full)

    async def _send(self, parts: Sequence[ExportPart], data: str) -> tuple[list[SettledPart], bool]:
        """Send a lot; return the cursors to store, and whether the target answered."""
        said = await self._sender.points(self.kind, self._policy.address, data)
        why = said.get("why")
        target = str(said.get("target") or "")
        if why is None:
            self._took(parts, int(said.get("rejected", 0)))
            return [SettledPart(_after(part, target)) for part in parts], True
        if why == "later":
            return self._later(parts, said, target), False
        if why == "too-large" and self._sizes.too_large():
            return _kept(parts, target), True
        if len(parts) > 1:  # one of them is the reason
            return await self._send_each(parts)
        (part,) = parts
        uid = part.job.uid
        again = self._doubts.is_doubtful(uid)
        if why == "fault" and (wait := self._doubts.failed(uid)) is not None:
            if again:
                self._cannot(said)
            else:
                self._events.export_failures.add(self.kind)
            self._backlog.put_aside(uid, asyncio.get_running_loop().time() + wait)
            return _kept(parts, target), True
        self._drop(part, said)
        return [SettledPart(_after(part, target))], True

    def _later(self, parts: Sequence[ExportPart], said: Mapping[str, Any], target: str) -> list[SettledPart]:
        """Let others have their turns first; drop the points of a job if the target took others all the time."""
        if said.get("code") == "silent":  # or too slow for as many
            self._sizes.too_large()
        self._cannot(said)
        for part in parts:
            self._backlog.rotate(part.job.uid)
        if len(parts) == 1 and self._doubts.not_taken(parts[0].job.uid):
            self._drop(parts[0], said)
            return [SettledPart(_after(parts[0], target))]
        return _kept(parts, target)

    async def _send_each(self, parts: Sequence[ExportPart]) -> tuple[list[SettledPart], bool]:
        found: list[SettledPart] = []
        for part in parts:
            settled, answered = await self._send([part], request_of([part], self._policy))
            found += settled
            if not answered:
                return found, False
        return found, True

    # --- what became of points

    def _took(self, parts: Sequence[ExportPart], rejected: int) -> None:
        if self.trouble is not None:
            log.warning("%s takes metric points again", self._title)
        self.trouble = None
        points, left_out = sum(len(part.points) for part in parts), points_of(parts, rejected)
        if left_out:
            log.warning(
                "%s left out %d values of %d metric points of jobs or more", self._title, rejected, left_out
            )
        self._events.exported.add(self.kind, "sent", amount=points - left_out)
        self._events.exported.add(self.kind, "dropped", amount=left_out)
        self._sizes.taken()
        self._doubts.taken(part.job.uid for part in parts)

    def _cannot(self, said: Mapping[str, Any]) -> None:
        self._events.export_failures.add(self.kind)
        if self.trouble is None:
            log.warning("metric points wait, because %s does not take them: %s", self._title, _words(said))
        self.trouble = msg(
            "metric points cannot be handed on to {target} at the moment. They wait, and nothing is lost",
            target=self._title,
        )

    def _drop(self, part: ExportPart, said: Mapping[str, Any]) -> None:
        uid = part.job.uid
        self._doubts.dropped(uid)
        self._events.exported.add(self.kind, "dropped", amount=len(part.points))
        if uid not in self._refused:
            self._refused.add(uid)
            log.warning(
                "%s refused %d metric points of the job %s, which are dropped: %s",
                *(self._title, len(part.points), uid, _words(said)),
            )

    def _forget(self, uid: str) -> None:
        """Forget a job that is gone, with its points that were not exported."""
        left = self._backlog.remove(uid)
        if left:
            self._events.exported.add(self.kind, "dropped", amount=left)
            log.warning(
                "%d metric points of a job were not exported to %s: it was deleted", left, self._title
            )
        self._over(uid)

    def _over(self, uid: str) -> None:
        self._wanted.pop(uid, None)
        self._doubts.forget(uid)
        self._refused.discard(uid)

    async def _store(self, settled: Sequence[SettledPart], rest: Sequence[ExportCursor]) -> None:
        passed = [one.cursor for one in settled if one.passed] + list(rest)
        kept = [one.cursor for one in settled if not one.passed]
        for cursor in passed:
            if cursor.done:
                self._wanted.pop(cursor.job, None)  # points that come yet open its row again

        def work(tx: Tx) -> set[str]:
            late = {c.job for c in passed if c.done and tx.metrics.last_seq(c.job) > c.seq}
            for cursor in (*passed, *kept):
                tx.point_exports.advance(replace(cursor, done=cursor.done and cursor.job not in late))
            return late

        # a power cut may take it back: what follows is handed on again
        late = await self._db.write(work, durable=False)
        nothing = {cursor.job for cursor in rest}
        for cursor in passed:
            uid = cursor.job
            left = self._backlog.advance(uid, cursor.seq)
            if cursor.done and uid not in late and uid not in self._wanted:
                # points that the database has no more were deleted
                self._events.exported.add(self.kind, "dropped", amount=self._backlog.remove(uid))
                self._over(uid)
            elif (left and uid not in nothing) or self._backlog.has_news(uid):
                self._backlog.rotate(uid)
            else:
                self._backlog.remove(uid)


def _after(part: ExportPart, target: str) -> ExportCursor:
    """Return the cursor behind a part."""
    return replace(part.cursor, seq=part.seq, target=target or part.cursor.target, done=part.ends)


def _kept(parts: Sequence[ExportPart], target: str) -> list[SettledPart]:
    """Return the cursor of points that are sent again, if the target has a name for their job that is not stored yet."""
    if not target or len(parts) > 1 or parts[0].cursor.target:
        return []
    return [SettledPart(replace(parts[0].cursor, target=target), passed=False)]


def _words(said: Mapping[str, Any]) -> str:
    """Return an outcome for the log: a status and a short code, and no text of the target."""
    return " ".join(str(said[key]) for key in ("why", "status", "code") if key in said)
