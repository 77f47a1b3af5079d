"""Writing a job's log as it grows."""

from __future__ import annotations

from typing import Any, TextIO

from mlp import follow, picture
from mlp.handle import Job
from mlp.history import History
from mlp.language import say
from mlp.measured import write

Json = dict[str, Any]


def follow_lines(job: Job, out: TextIO, *, rank: int | None = None, tail: int | None = None) -> None:
    """Write what is there, then what comes, until the job ends."""
    seen = History(job.data)
    old = job.logs(rank, tail)
    writer = _Writer(out, many=old.with_rank)
    for line in old:
        for fresh in seen.add_lines(int(line["rank"]), [line], replay=False):
            writer.write(fresh)
    replay = True
    for frame in follow.frames(job._client, job.reference, job.user):  # noqa: SLF001 - one module family
        kind = frame.get("type")
        if kind == "lost":
            replay = True
            write(
                say(
                    "the connection was lost ({why}); the job goes on, trying again",
                    why=str(frame["message"]),
                )
            )
        elif kind == "synced":
            replay = False
        elif kind == "log" and rank in {None, frame.get("rank")}:
            # the first frames repeat the log's end, which was written above
            for line in seen.take(frame, replay=replay):
                writer.write(line)
        elif kind == "job":
            seen.take(frame)
            writer.many = writer.many or (rank is None and len(seen.job.get("ranks") or ()) > 1)
    writer.end()
    job.data = seen.job or job.data


class _Writer:
    """Writes lines; one without an end is drawn over on a terminal, and elsewhere waits for its end."""

    def __init__(self, out: TextIO, *, many: bool) -> None:
        self.out = out
        self.many = many
        self._live = out.isatty()
        self._drawn: tuple[object, object] | None = None
        self._waiting: dict[tuple[object, object], Json] = {}

    def write(self, line: Json) -> None:
        key = (line["rank"], line["stream"])
        if self._drawn is not None and self._drawn != key:
            self.out.write("\n")
            self._drawn = None
        self._waiting.pop(key, None)
        over = "\r\x1b[K" if self._drawn else ""
        self._drawn = None
        if not line.get("partial"):
            self.out.write(over + self._shown(line) + "\n")
        elif self._live:
            self.out.write(over + self._shown(line))
            self._drawn = key
        if line.get("partial"):
            self._waiting[key] = line
        self.out.flush()

    def end(self) -> None:
        """Write what never got its end."""
        if self._drawn is not None:
            self.out.write("\n")
        for key, line in self._waiting.items():
            if key != self._drawn:
                self.out.write(self._shown(line) + "\n")
        self.out.flush()

    def _shown(self, line: Json) -> str:
        text = picture.plain(str(line["text"]))
        return f"{line['rank']}: {text}" if self.many else text
