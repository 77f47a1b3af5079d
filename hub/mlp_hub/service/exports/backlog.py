"""Jobs whose points wait for an exporter, in memory: the points themselves wait in the database."""

from __future__ import annotations

from dataclasses import dataclass

MOST_JOBS = 100_000
"""Safety: jobs that are remembered; of further ones the database is asked when these are done: bounds memory while a target is away."""


@dataclass(slots=True)
class WaitingJob:
    """A job with points above `seq`, up to `newest`. `due`: seconds of the loop's clock before which it is not tried.

    `news`: it has ended, or got points, since its last turn began. A job that is here for its end alone has 0 as `newest`.
    """

    seq: int
    newest: int
    due: float = 0.0
    news: bool = False


class ExportBacklog:
    """Jobs in the order of their turns, and the sum of their points."""

    def __init__(self) -> None:
        self._jobs: dict[str, WaitingJob] = {}
        self.points = 0
        self.overflowed = False

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, uid: str) -> bool:
        return uid in self._jobs

    def add(self, uid: str, seq: int, newest: int) -> bool:
        """Note that a job has points above `seq`, up to `newest`; return whether it is remembered."""
        found = self._jobs.get(uid)
        if found is None:
            if len(self._jobs) >= MOST_JOBS:
                self.overflowed = True
                return False
            self._jobs[uid] = WaitingJob(seq, newest, news=True)
            self.points += max(0, newest - seq)
            return True
        if not found.newest:
            found.seq = found.newest = seq
        if seq < found.seq:  # more waits than was known
            self.points += found.seq - seq
            found.seq = seq
        if newest > found.newest:
            self.points += newest - found.newest
            found.newest, found.news = newest, True
        return True

    def mark(self, uid: str) -> bool:
        """Note that a job has ended; return whether it is remembered."""
        if uid not in self._jobs and len(self._jobs) >= MOST_JOBS:
            self.overflowed = True
            return False
        self._jobs.setdefault(uid, WaitingJob(0, 0)).news = True
        return True

    def turn(self, now: float, most: int) -> list[str]:
        """Return jobs that are due, the one that waits longest first, `most` of them at most."""
        found: list[str] = []
        for uid, job in self._jobs.items():
            if job.due <= now:
                job.news = False
                found.append(uid)
                if len(found) == most:
                    break
        return found

    def advance(self, uid: str, seq: int) -> int:
        """Note that the points up to `seq` need not wait any more; return how many are left."""
        job = self._jobs.get(uid)
        if job is None:
            return 0
        self.points -= max(0, min(seq, job.newest) - job.seq)
        job.seq = max(job.seq, min(seq, job.newest))
        return max(0, job.newest - job.seq)

    def put_aside(self, uid: str, due: float) -> None:
        """Try the job no more before that time."""
        if uid in self._jobs:
            self._jobs[uid].due = due

    def has_news(self, uid: str) -> bool:
        """Return whether a job ended or got points after its turn had begun, so that it needs another one."""
        return uid in self._jobs and self._jobs[uid].news

    def rotate(self, uid: str) -> None:
        """Give all others a turn before this job has its next one."""
        job = self._jobs.pop(uid, None)
        if job is not None:
            self._jobs[uid] = job

    def remove(self, uid: str) -> int:
        """Forget a job; return how many of its points waited."""
        job = self._jobs.pop(uid, None)
        left = 0 if job is None else max(0, job.newest - job.seq)
        self.points -= left
        return left
