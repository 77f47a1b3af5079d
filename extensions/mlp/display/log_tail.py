"""Writing a job's log as it grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

from mlp.client import follow
from mlp.language import say
from mlp.rendering import ends, terminal, words
from mlp.rendering.history import History
from mlp.standard_error import write

if TYPE_CHECKING:
    from mlp.handles.job import Job

Json = dict[str, Any]


WAITING = frozenset({"queued", "suspended"})


def follow_lines(
    job: Job,
    out: TextIO,
    *,
    rank: int | None = None,
    tail: int | None = None,
    tell: Callable[[str], object] = write,
) -> None:
    """Write what is there, then what comes, until the job ends; `tell` why it waits meanwhile, and how it ended."""
    seen = History(job.data)
    waits = _Waits(tell)
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
            why = str(frame["message"])
            tell(say("the connection was lost ({why}); the job continues, trying again", why=why))
        elif kind == "synced":
            replay = False
        elif kind == "log" and rank in {None, frame.get("rank")}:
            # the first frames repeat the log's end, which was written above
            for line in seen.take(frame, replay=replay):
                writer.write(line)
        elif kind in {"job", "why"}:
            seen.take(frame)
            writer.many = writer.many or (rank is None and len(seen.job.get("ranks") or ()) > 1)
        waits.look(seen, known=not replay)
    writer.end()
    job.data = seen.job or job.data
    if ended := ends.ended(job.data):
        tell(words.sentences(ended, ends.failure(job.data)))


class _Waits:
    """Tells why a job waits, where that is news."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell
        self._told: list[str] = []

    def look(self, seen: History, *, known: bool) -> None:
        if not known:
            return
        if seen.phase not in WAITING:
            self._told = []
            return
        how = say("{what}: {why}", what=words.title(seen.job), why=words.state(seen.job))
        news = [how, *(f"  {line}" for line in words.prospects(seen.why or {}))]
        for line in news:
            if line not in self._told:
                self._tell(terminal.plain(line))
        self._told = news


class _Writer:
    """Writes lines; one without an end is drawn over on a terminal, and elsewhere waits for its end."""

    def __init__(self, out: TextIO, *, many: bool) -> None:
        self.out = out
        self.many = many
        self._live = out.isatty()
        self._drawn: tuple[object, object] | None = None
        self._rows = 1  # of what is drawn
        self._waiting: dict[tuple[object, object], Json] = {}

    def write(self, line: Json) -> None:
        key = (line["rank"], line["stream"])
        if self._drawn is not None and self._drawn != key:
            self.out.write("\n")
            self._drawn = None
        self._waiting.pop(key, None)
        above = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
        over = f"{above}\r\x1b[J" if self._drawn else ""
        self._drawn = None
        if not line.get("partial"):
            self.out.write(over + self._shown(line) + "\n")
        elif self._live:
            shown = self._shown(line)
            self.out.write(over + shown)
            self._drawn, self._rows = key, shown.count("\n") + 1
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
        return terminal.rows(str(line["text"]), f"{line['rank']}: " if self.many else "")
