"""Writing a job's log as it grows."""

from __future__ import annotations

from typing import TextIO

from mlp import follow, picture
from mlp.handle import Job
from mlp.history import History


def follow_lines(job: Job, out: TextIO, *, rank: int | None = None, tail: int | None = None) -> None:
    """Write what is there, then what comes, until the job ends."""
    seen = History(job.data)
    old = job.logs(rank, tail)
    many = old.with_rank
    for line in old:
        seen.add_lines(int(line["rank"]), [line], replay=False)
        _write(out, int(line["rank"]), str(line["text"]), many=many)
    replay = True
    for frame in follow.frames(job._client, job.name, job.user):  # noqa: SLF001 - one module family
        kind = frame.get("type")
        if kind == "lost":
            replay = True
        elif kind == "synced":
            replay = False
        elif kind == "log" and rank in {None, frame.get("rank")}:
            # the first frames repeat the log's end, which was written above
            for line in seen.take(frame, replay=replay):
                _write(out, int(line["rank"]), str(line["text"]), many=many)
        elif kind == "job":
            seen.take(frame)
            many = many or (rank is None and len(seen.job.get("ranks") or ()) > 1)
    job.data = seen.job or job.data


def _write(out: TextIO, rank: int, text: str, *, many: bool) -> None:
    out.write(picture.plain(f"{rank}: {text}" if many else text) + "\n")
    out.flush()
