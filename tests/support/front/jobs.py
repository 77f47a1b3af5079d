"""Jobs of the stand-in service, and their streams: points, log, events, and their replay."""

from __future__ import annotations

import math
import time

from support.front.shapes import WAITS, Json, job, when


class FrontJobs:
    """Jobs in several states, and what was streamed of the one that is watched."""

    def __init__(self) -> None:
        self.jobs: dict[tuple[str, str], Json] = {}
        self.unsynced = False  # whether streams stop before they have caught up
        self.frames: dict[str, list[Json]] = {"metrics": [], "log": [], "events": [], "attempts": []}
        self.why: Json | None = None
        self.seq = 0
        self.lines = 0
        self._usual_jobs()

    def _usual_jobs(self) -> None:
        failure = {"cause": "out-of-memory", "rank": 1, "exit_code": None, "signal": 9}
        failure |= {"message": "rank 1 used more than its 512 MiB", "tail": "Traceback ...\nMemoryError"}
        ended = {"started_at": when(-4000), "finished_at": when(-3900), "ran_s": 100.0, "ranks": []}
        for made in (
            job("digits"),
            job(
                "digits-5",
                phase="queued",
                state="creating",
                progress=0,
                position=2,
                message=WAITS,
                started_at=None,
                progress_since=None,
                waiting_since=when(-130),
                waited_s=0.0,
                ranks=[],
            ),
            job("mnist-tf", phase="finished", state="finished", runtime="tf", progress=100, ps=1, **ended),
            job("big", phase="failed", state="error", failure=failure, progress=13, **ended),
            job("old", phase="cancelled", state="error", progress=5, **ended),
        ):
            self.jobs[made["user"], made["name"]] = made

    def key(self, user: str, reference: str) -> tuple[str, str]:
        """Where a run lies: the latest below its name, an earlier one below NAME@RUN."""
        name, _, run = reference.partition("@")
        latest = self.jobs.get((user, name))
        return (user, name) if latest and run == str(latest["run"]) else (user, reference)

    def point(self, step: int, of: int) -> Json:
        """The next metric point of a rank, reported now."""
        self.seq += 1
        loss = 2.3 * math.exp(-step / 400) + 0.05 * math.sin(step / 7 + of) + 0.1 + 0.02 * of
        values = {"loss": loss, "accuracy": 1 - loss / 2.6, "learning_rate": 0.1 / (1 + step / 200)}
        return {"seq": self.seq, "time": time.time(), "rank": of, "step": step, "values": values}

    def history(self, steps: int, ranks: int = 2) -> None:
        """Points that were reported before anybody watched."""
        points = [self.point(step, of) for step in range(steps) for of in range(ranks)]
        self.keep({"type": "metrics", "points": points})

    def log(self, text: str, of: int = 0, stream: str = "stdout") -> Json:
        self.lines += 1
        time_ = f"2026-01-01T10:{self.lines // 60 % 60:02}:{self.lines % 60:02}.{self.lines:09}Z"
        return {
            "type": "log",
            "rank": of,
            "lines": [{"time": time_, "stream": stream, "text": text}],
            "offset": self.lines,
        }

    def event(self, seq: int, kind: str, message: str) -> Json:
        return {"seq": seq, "time": when(-130 + 3 * seq), "kind": kind, "message": message, "reason": None}

    def keep(self, frame: Json) -> None:
        kind = frame["type"]
        if kind in self.frames:
            self.frames[kind].append(frame)
        elif kind == "job":
            self.jobs[frame["job"]["user"], frame["job"]["name"]] = frame["job"]
        elif kind == "why":
            self.why = frame["why"]

    def replay(self, user: str, name: str, since: int) -> list[Json]:
        record = self.jobs.get(self.key(user, name))
        frames: list[Json] = [{"type": "job", "job": record}] if record else []
        frames += self.frames["events"] + self.frames["attempts"][-1:] + self.frames["log"]
        points = [p for f in self.frames["metrics"] for p in f["points"] if p["seq"] > since]
        frames += [{"type": "metrics", "points": points[i : i + 1000]} for i in range(0, len(points), 1000)]
        if self.why:
            frames.append({"type": "why", "why": self.why})
        if self.unsynced:
            return frames
        frames.append({"type": "synced"})
        if record and record["phase"] in {"finished", "failed", "cancelled"}:
            frames.append({"type": "end"})
        return frames
