"""Watch of the disk: its free space, and the sizes of running jobs and of homes with anything running.

None of this is done on the event loop. Below the floor no job starts, and the fastest writer is
stopped, one at a time. Notebook servers still start down to half of the floor, because users delete
files there. A job over its bound is stopped. If a home is over its bound, its writers are stopped,
and its user cannot submit jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import MLPError, Reason, Refused
from mlp_hub.domain.jobs.job import ALIVE, Cause, Failure, Job
from mlp_hub.domain.tenants.account_names import THE_HUB
from mlp_hub.domain.workload.workload import SERVER
from mlp_hub.executors.base import Executor
from mlp_hub.executors.workspace import LOOK_EVERY_S, Home, Place, Size, Space
from mlp_hub.scheduler.model.types import Verdict
from mlp_hub.service.config import DiskPolicy
from mlp_hub.service.disk import rules
from mlp_hub.service.disk.measurement import Look, Looker
from mlp_hub.service.disk.reserve import DiskReserve
from mlp_hub.service.disk.rules import DiskWriter
from mlp_hub.service.health.problems import Problem
from mlp_hub.service.support.runs import run_of
from mlp_hub.store import Database, Tx
from mlp_language.message import NOTHING, Message, msg, to_data

log = logging.getLogger(__name__)
SETTLES_S = 15.0
"""Safety: seconds after a stop in which nobody else of that user is stopped for the same reason: its space may come back
first."""
KEPT_S = 60.0
"""Tuning: seconds that the size of a home is known of which nothing runs: freshness, for looking into it less."""
ASKED_S = 1.0
"""Tuning: seconds that a job waits for its user's home to be measured: one that takes longer is watched while the job runs."""
_HOME, _FLOOR = "home", "floor"
SLACK = 16 * rules.MIB
"""Safety: bytes by which a home over its bound may still grow, so that its user can still work there to make room."""
PAUSE_S = 0.25
"""Tuning: seconds between two looks at least, however many wait for one: sooner with less, cheaper with more."""
Stop = Callable[[str, Failure], Awaitable[None]]
EndServer = Callable[[str, str], Awaitable[None]]


class Disk:
    """The watch. `hold` is told why nothing may be started now, None when it may; `stop` ends a job with a failure.

    `measured` is told what each look measured.
    """

    def __init__(  # noqa: PLR0917 - the composition root gives it all
        self,
        db: Database,
        executor: Executor,
        clock: Callable[[], float],
        policy: DiskPolicy,
        jobs: Callable[[], Sequence[Job]],
        hold: Callable[[Verdict | None], None],
        stop: Stop,
        measured: Callable[[Mapping[Place, Size]], None] = lambda _: None,
    ) -> None:
        self._db = db
        self._executor = executor
        self._clock = clock
        self._policy = policy
        self._jobs = jobs
        self._hold = hold
        self._stop = stop
        self._measured = measured
        self._looker = Looker(executor, policy, self._keep_reserve, database_here=db.in_a_file)
        self._points: dict[str, int] = {}  # bytes of metric points that are stored of jobs, by uid
        self._reserve = None if policy.reserve is None else DiskReserve(policy.reserve)
        self._servers: dict[str, list[str]] = {}  # names of notebook servers that hold quota, by user
        self._marks: dict[str, int] = {}  # of homes over their bound: the least they have held since
        self._asked: dict[str, float] = {}  # who submitted with nothing running: when it was
        self._wanted = asyncio.Event()  # somebody waits for a look
        self._looked = asyncio.Event()  # the next one is over
        self._thread: ThreadPoolExecutor | None = None
        self._task = BackgroundTask(self._loop)
        self._stopped: dict[str, float] = {}  # by attempt, or by user of notebook servers: when it was
        self._settles: dict[tuple[str, str], float] = {}  # by reason and user of who was stopped: when it was
        self._ending: dict[asyncio.Task[None], tuple[str, Message]] = {}  # whose notebook servers, and why
        self._look: Look | None = None
        self._left: int | None = None  # most that was free since somebody was stopped below the floor
        self.end_server: EndServer | None = None
        """Asks the hub to end a notebook server of somebody; given once the hub can be asked."""

    async def start(self) -> None:
        """Look once, then again and again."""
        if not self._policy.is_on:
            return
        self._thread = ThreadPoolExecutor(1, "disk")
        self._look = None
        self._hold(None)
        await self.check_disk()
        self._task.start()

    async def stop(self) -> None:
        """Look no more."""
        for ending in self._ending:
            ending.cancel()
        await asyncio.gather(self._task.stop(), *self._ending, return_exceptions=True)
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None

    async def problems(self) -> list[Problem]:
        """Tell that the disk is full, while it is."""
        if self._look is None or self._look.shortage is None:
            return []
        none = msg("no job is started, notebook servers are started")
        if self._look.shortage_for_servers:
            none = msg("nothing new is started")
        message = msg(
            "disk full: it has {shortage}; {none}. Running jobs continue, but the fastest writer is stopped. Everything continues by itself when there is room",
            shortage=self._look.shortage,
            none=none,
        )
        return [Problem("disk", Reason.DISK_FULL, message, fails=False)]

    def free(self) -> int | None:
        """Return how many bytes the disk has beyond what is to stay free, as of the last look; None where nobody looked."""
        space = None if self._look is None else self._look.space
        return None if space is None else max(space.free - (self._policy.floor or 0), 0)

    def refuses_servers(self) -> Refused | None:
        """Refuse a notebook server, where the disk is too full for it."""
        look = self._look
        if look is None or look.space is None or look.shortage_for_servers is None:
            return None
        verdict = rules.no_room(look.shortage_for_servers, look.space, self._policy.floor, servers=False)
        return Refused(verdict.reason, verdict.headline)

    def ends_servers_for(self, user: str) -> Message:
        """Say why notebook servers of somebody are being stopped; nothing where they are not."""
        return next((why for who, why in self._ending.values() if who == user), NOTHING)

    def size_of_home(self, user: str) -> int | None:
        """Return how large somebody's home was found to be; None where nobody looked yet."""
        return self._looker.meter.least(Home(user)) if self._looker.meter.knows(Home(user)) else None

    async def check_home(self, user: str) -> None:
        """Refuse a job whose user's home is over its bound; it is measured for it where that is not known yet."""
        bound = self._policy.home
        if self._thread is None or not bound:
            return
        self._asked[user] = time.monotonic()
        meter, key = self._looker.meter, Home(user)
        if not meter.knows(key):
            self._wanted.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ASKED_S):
                    while not meter.knows(key):
                        await self._looked.wait()
        size = meter.known[key].size if meter.knows(key) else Size(meter.least(key))
        if size.used > bound:
            raise rules.home_is_full(user, size, bound)
        if meter.knows(key) and (unseen := meter.known[key].size.unseen):
            raise rules.home_cannot_be_measured(user, unseen)

    async def check_disk(self) -> None:
        """Look once, and do what follows from it."""
        measures = self._executor.workspace.measures
        jobs = [job for job in self._jobs() if job.phase in ALIVE] if measures else []
        servers = await self._ask_for_servers() if measures else {}
        at = time.monotonic()
        self._asked = {user: then for user, then in self._asked.items() if at - then < KEPT_S}
        users = {*servers, *self._asked, *(job.spec.user for job in jobs)}
        before = self._look
        self._look = now = await self._looker.measure_all(
            jobs, users, servers, await self._stored_points(jobs)
        )
        self._looked.set()
        self._looked = asyncio.Event()
        self._measured(now.measured)
        if now.holds != ((False, False) if before is None else before.holds):
            self._report(now)
        if now.space is not None:
            known = {job.attempt for job in jobs} | set(servers)
            self._stopped = {
                who: t for who, t in self._stopped.items() if who in known and at - t < SETTLES_S
            }
            self._settles = {one: t for one, t in self._settles.items() if at - t < SETTLES_S}
            await self._hold_bounds(now, jobs, servers)
            if now.shortage is not None:
                await self._stop_fastest(now, now.space, now.shortage, jobs, servers)

    async def _keep_reserve(self, space: Space) -> None:
        if self._reserve is not None:
            keep = self._reserve.keep
            await asyncio.get_running_loop().run_in_executor(self._thread, keep, space, self._policy.floor)

    async def _loop(self) -> None:
        while True:
            await asyncio.sleep(PAUSE_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S - PAUSE_S):
                    await self._wanted.wait()
            self._wanted.clear()
            try:
                await self.check_disk()
            except asyncio.CancelledError:
                raise
            except Exception:  # it is looked again soon
                log.exception("looking at the disk failed")

    def _report(self, now: Look) -> None:
        if now.shortage is None or now.space is None:
            log.warning("the disk has room again: all goes on")
            self._left = None
            self._hold(None)
            return
        log.error("the disk is full: %s", now.shortage)
        servers = now.shortage_for_servers is None
        self._hold(rules.no_room(now.shortage, now.space, self._policy.floor, servers=servers))

    async def _ask_for_servers(self) -> dict[str, list[str]]:
        """Return the names of the notebook servers that hold quota, by user: now, or as last known."""
        now = self._clock()

        def work(tx: Tx) -> dict[str, list[str]]:
            found: dict[str, list[str]] = {}
            for row in tx.ledger.held(now, applier=SERVER.applier):
                found.setdefault(row.user, []).append(row.id.removeprefix(f"{row.user}/"))
            return found

        with contextlib.suppress(MLPError):  # the disk is watched whatever the database does
            self._servers = await self._db.read(work)
        return self._servers

    async def _stored_points(self, jobs: Sequence[Job]) -> Mapping[str, int]:
        """Return how many bytes of these jobs' metric points are stored: now, or as last known."""
        uids = [job.uid for job in jobs]
        with contextlib.suppress(MLPError):  # the disk is watched whatever the database does
            self._points = await self._db.read(lambda tx: tx.metrics.sizes(uids))
        return self._points

    # --- what follows

    async def _hold_bounds(self, now: Look, jobs: Sequence[Job], servers: dict[str, list[str]]) -> None:
        most = self._policy.job
        for job in jobs:
            if run_of(job) not in now.measured:
                continue
            size = self._looker.meter.known[run_of(job)].size
            if most and (why := rules.job_over_its_bound(size, most)) is not None:
                await self._end(job, why)
        most = self._policy.home
        for user in {*servers, *(job.spec.user for job in jobs)}:
            if not most or Home(user) not in now.measured or (_HOME, user) in self._settles:
                continue
            writer = None
            if self._has_grown_over(user, jobs, most):
                writer = self._looker.writer_of_home(user, jobs, servers)
            if writer is None:
                continue
            self._settles[_HOME, user] = time.monotonic()
            size = self._looker.meter.known[Home(user)].size
            await self._end_writer(writer, rules.home_over_its_bound(user, size, most), jobs, servers)

    def _has_grown_over(self, user: str, jobs: Sequence[Job], most: int) -> bool:
        home = self._looker.meter.known[Home(user)]
        used, grown = home.size.used, home.grown()[0]
        if home.size.unseen:  # it counts as over its bound, and what is written may lie where nobody sees it
            written, lately = self._looker.stored_beside(user, jobs)
            used, grown = used + written, max(grown, lately)
        elif used <= most:
            self._marks.pop(user, None)
            return False
        first = most if len(home.history) > 1 else used
        self._marks[user] = least = min(self._marks.get(user, first), used)
        if used <= least + SLACK or not grown:
            return False
        self._marks[user] = used
        return True

    async def _stop_fastest(
        self, now: Look, space: Space, shortage: Message, jobs: Sequence[Job], servers: dict[str, list[str]]
    ) -> None:
        if self._stopped:
            return
        if self._left is not None:
            self._left = max(self._left, space.free)
            if space.free >= self._left * rules.SHRINKS:
                return
        users, floor = {*servers, *(job.spec.user for job in jobs)}, self._policy.floor
        looker = self._looker
        by_growth, by_writes = looker.by_growth(jobs, users, servers), looker.by_writes(jobs, servers)
        first = rules.who_fills(by_growth, by_writes, now.lost, space.free, floor)
        if first is not None and (_FLOOR, first.user) not in self._settles:
            self._left, self._settles[_FLOOR, first.user] = space.free, time.monotonic()
            await self._end_writer(first, rules.fills_the_disk(first, shortage), jobs, servers)

    async def _end_writer(
        self, writer: DiskWriter, why: Message, jobs: Sequence[Job], servers: dict[str, list[str]]
    ) -> None:
        job = next((job for job in jobs if job.uid == writer.uid), None)
        if job is not None:
            await self._end(job, why)
            return
        if self.end_server is None or writer.user in self._stopped:
            return
        self._stopped[writer.user] = time.monotonic()
        for server in servers.get(writer.user, ()):
            log.error("the notebook server %s of %s is stopped: %s", server or "(default)", writer.user, why)
            # not waited for: the hub may take its time, and the disk fills meanwhile
            task = asyncio.ensure_future(self._end_server(self.end_server, writer.user, server, why))
            self._ending[task] = (writer.user, why)
            task.add_done_callback(self._ending.pop)

    async def _end_server(self, end: EndServer, user: str, server: str, why: Message) -> None:
        """Ask for its end, and write that down: neither waits for the other, for the hub or the database may not answer."""
        detail, now = {"message": msg("stopped: {why}", why=why)}, self._clock()
        name = f"{user}'s notebook" + (f" {server}" if server else "")
        ended, noted = await asyncio.gather(
            end(user, server),
            self._db.write(lambda tx: tx.audit.add(now, THE_HUB, "server.stop", name, detail=detail)),
            return_exceptions=True,
        )
        for error, what in ((ended, "is not stopped yet"), (noted, "is stopped, which is not written down")):
            if isinstance(error, BaseException):
                expected = isinstance(error, MLPError)
                log.error(
                    "the notebook server of %s %s: %s",
                    user,
                    what,
                    error,
                    exc_info=None if expected else error,
                )

    async def _end(self, job: Job, why: Message) -> None:
        if job.attempt in self._stopped:
            return
        self._stopped[job.attempt] = time.monotonic()
        log.error("job %s of %s is stopped: %s", job.title, job.spec.user, why)
        said = msg("stopped: {why}", why=why)
        await self._stop(job.attempt, Failure(Cause.DISK, message=str(said), said=to_data(said)))
