"""One round: faults under load, then quiet, then everything is compared, then the round's jobs are deleted."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import psutil

from torture import gather, leftovers, plan, verify
from torture.faults import Breaker
from torture.findings import Violation
from torture.leftovers import Baseline
from torture.load import FINAL, Load, Tracked, name_of
from torture.notebook import Notebook
from torture.sampler import Sampler
from torture.site import AIMED, USERS, Site
from torture.upkeep import Operator
from torture.uploads import Uploads

DRAIN_S = 120.0  # the longest until all jobs have ended once nothing is broken any more
QUIET_S = 20.0  # the longest until nothing is left over once all jobs have ended


@dataclass
class Counts:
    """What was checked."""

    phases: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    points: int = 0
    lines: int = 0
    samples: int = 0
    seconds: float = 0.0

    def add(self, other: Counts) -> None:
        """Add a round's to the run's."""
        self.phases += other.phases
        self.restarts += other.restarts
        self.points += other.points
        self.lines += other.lines
        self.samples += other.samples
        self.seconds += other.seconds


class Round:
    """A round on a site that is up and has nothing running."""

    def __init__(self, site: Site, seed: str, number: int, baseline: Baseline, notebook: Notebook) -> None:
        self.site = site
        self.notebook = notebook
        self.seed = seed
        self.number = number
        self.baseline = baseline
        self.counts = Counts()

    def run(self, seconds: float) -> Counts:
        """Break things for so long, and check."""
        began = time.monotonic()
        self.notebook.start()
        site, number = self.site, self.number
        faults = plan.draw(
            Random(f"{self.seed}:{number}:faults"),
            seconds,
            disk=bool(site.disk.kind),
            database=site.postgres is not None,
        )
        operator, sampler, load = Operator(site), Sampler(site), Load(site, self.seed, number)
        uploads = Uploads(site, self.seed, number)
        breaker = Breaker(site, load, operator)
        try:
            breaker.run(faults, seconds)
            uploads.drain()
            load.drain()
            self._wait_for_the_end(load)
            self._settle()
        except BaseException:  # interrupted: nobody shall start or ask anything while it is all ended
            site.closing.set()
            breaker.heal(patience=0)
            uploads.drain()
            load.drain()
            raise
        finally:
            sampler.stop()
            operator.stop()
        self.counts.samples = sampler.samples
        for job in load.jobs:
            self._verify(job)
        for violation in uploads.check():
            self._add(violation)
        self._unknown(load)
        self.notebook.check()
        self._left(load)
        self._clear(load)
        self.counts.seconds = time.monotonic() - began
        return self.counts

    def _wait_for_the_end(self, load: Load) -> None:
        until = time.monotonic() + DRAIN_S
        while undone := load.undone():
            if time.monotonic() > until:
                for job in undone:
                    self._not_ended(job)
                return
            time.sleep(0.3)

    def _not_ended(self, job: Tracked) -> None:
        user, name = job.recipe.user, job.name
        base = f"/users/{user}/jobs/{name}"
        found = {}
        for what in ("", "/events", "/why"):
            answer = self.site.ask("GET", f"{base}{what}", user, 5)
            found[what.strip("/") or "job"] = answer.json() if answer is not None else None
        text = f"still {job.phase} {DRAIN_S:g} s after the last fault"
        self._add(Violation("not-ended", text, f"{user}/{name}"), found, job)
        self.site.ask("PUT", f"{base}:cancel", user, 5)
        job.asked.append("cancel")

    def _settle(self) -> None:
        """All components answer again: a supervisor killed last is started by the operator meanwhile."""
        until = time.monotonic() + DRAIN_S
        while time.monotonic() < until:
            with contextlib.suppress(AttributeError):
                if (
                    self.site.component("supervisor")
                    and self.site.ask("GET", "/session", "ann", 30).is_success
                ):
                    return
            time.sleep(0.2)
        self._add(Violation("not-back", f"the hub did not answer {DRAIN_S:g} s after the last fault"))

    def _verify(self, job: Tracked) -> None:
        case = gather.case_of(self.site, job)
        who = f"{job.recipe.user}/{job.recipe.name}"
        if isinstance(case, str):
            kind = "job-lost" if " 404 " in case else "job-unreadable"
            self._add(Violation(kind, case, who), {"job": job}, job)
            return
        self.counts.phases[case.job["phase"]] += 1
        self.counts.restarts += case.job["restarts"]
        self.counts.points += len(case.points)
        self.counts.lines += sum(map(len, case.logs.values()))
        if case.job["phase"] in FINAL:
            for violation in verify.check(case):
                self._add(violation, {"case": case}, job)

    def _unknown(self, load: Load) -> None:
        """No job is there that nobody acknowledged."""
        known = {job.uid for job in load.jobs}
        for user in (*USERS, AIMED):
            answer = self.site.ask("GET", f"/users/{user}/jobs?limit=500", user, 30)
            for job in answer.json() if answer is not None and answer.is_success else []:
                if job["uid"] not in known:
                    self._add(
                        Violation("job-of-nobody", f"{job['name']} was never acknowledged", user),
                        {"job": job},
                    )

    def _left(self, load: Load) -> None:
        """Wait for a while, since a shim may be about to end, then tell what is left."""
        until = time.monotonic() + QUIET_S
        uids = [job.uid for job in load.jobs]
        while found := leftovers.look(self.site, self.baseline, uids):
            if time.monotonic() > until:
                for violation in found:
                    self._add(violation)
                for process in leftovers.strays(self.site):  # or they would disturb all rounds that follow
                    with contextlib.suppress(psutil.Error):
                        process.kill()
                return
            time.sleep(0.5)

    def _clear(self, load: Load) -> None:
        """Delete the round's jobs; their directories and rows go with them."""
        for user in (*USERS, AIMED):
            answer = self.site.ask("GET", f"/users/{user}/jobs?limit=500", user, 30)
            names = [name_of(job) for job in answer.json()] if answer is not None else []
            for name in names:
                self.site.ask("DELETE", f"/users/{user}/jobs/{name}", user, 10)
        until = time.monotonic() + QUIET_S
        while left := self._still_there():
            if time.monotonic() > until:
                self._add(Violation("not-deleted", ", ".join(left[:20])))
                return
            time.sleep(0.2)

    def _still_there(self) -> list[str]:
        left = [
            str(path.relative_to(self.site.settings.jobs_dir))
            for path in self.site.settings.jobs_dir.glob("*/*")
        ]
        for table in ("job", "job_metrics", "job_event", "job_token"):
            rows = self.site.rows(f"SELECT count(*) FROM {table}")  # noqa: S608 - names of ours
            if rows is None or rows[0][0]:
                left.append(f"rows of {table}: {rows}")
        outputs = self.site.rows("SELECT count(*) FROM stored WHERE kind = 'output'")
        if outputs is None or outputs[0][0]:
            left.append(f"charges of jobs' directories: {outputs}")
        return left

    def _add(self, violation: Violation, evidence: dict | None = None, job: Tracked | None = None) -> None:
        paths = [self.site.settings.log_dir]
        if job is not None:
            paths.append(self.site.workspace(job.recipe.user, job.directory))
            paths += self.site.settings.jobs_run_dir.glob(f"{job.uid}.*")
        self.site.findings.add(
            violation,
            {**(evidence or {}), "hits": self.site.toll.hits[-200:], "outages": self.site.toll.outages},
            *paths,
        )
