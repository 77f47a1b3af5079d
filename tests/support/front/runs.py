"""The stand-in's runs: as many as a test wants, searched by words, sorted by number, with curves that are drawn from a formula."""

from __future__ import annotations

import math
from typing import Any

from support.front.shapes import when

Json = dict[str, Any]
PROGRAM = "import mlp\n\nfor step in range(100):\n    mlp.report(step=step, loss=1 / (step + {n}))\n"


def run_of(name: str, run: int = 1, **change: Any) -> Json:
    """A run that has finished."""
    return {
        "uid": f"{abs(hash((name, run))):026d}"[:26], "name": name, "run": run, "user": "ann", "tenant": "red", "state": "finished",
        "phase": "finished", "reason": None, "progress": 100, "params": {}, "metrics": {}, "duration_s": 61.5, "core_hours": 0.034167, "cpu_peak": 1.9, "ram_peak": 812,
        "tags": [], "note": "", "sweep": None, "trial": None, "commit": "5d41402abc4b2a76b9719d911017c592aaaaaaaa", "dirty": run > 1,
        "environment": "e" * 64, "submitted_at": when(-3600 * run), "started_at": when(-3600), "finished_at": when(-3500), **change,
    }  # fmt: skip


def _of(user: str, run: Json) -> Json:
    """The same run, of somebody else."""
    return {**run, "user": user, "uid": f"{user}{run['uid']}"[:26]}


def metric(last: float, best: float) -> Json:
    """What became of one metric."""
    return {"last": last, "best": best, "low": min(last, best), "high": max(last, best)}


class FrontRuns:
    """All runs of ann; `points` is how many a curve has."""

    def __init__(self) -> None:
        self.rows = self.some(4)
        self.rows[1] |= {"note": '<b>odd</b> & "quoted"', "tags": ["best", "paper"]}
        self.params = ["lr", "opt"]
        self.points = 200
        self.acts: list[Json] = []
        self.again: list[Json] = []

    @staticmethod
    def some(count: int) -> list[Json]:
        """So many runs of one name, the newest first."""
        return [
            run_of(
                "digits", n, params={"lr": 0.1 / n, "opt": "adam" if n % 2 else "sgd"},
                metrics={"loss": metric(1 / n, 0.5 / n), "accuracy": metric(1 - 0.5 / n, 1 - 0.4 / n)},
            )
            for n in range(count, 0, -1)
        ]  # fmt: skip

    def answer(self, method: str, parts: list[str], verb: str, body: Json, query: Json) -> tuple[int, Any]:
        """Answer a request below /users/USER/runs."""
        whose = parts[1]
        if len(parts) == 5:
            curves = self._curves(parts[3], query)
            return 200, {**curves, "run": _of(whose, curves["run"])}
        if len(parts) == 4:
            found = self._find(parts[3])
            if whose != "ann":
                found = _of(whose, found)
            if method == "PUT":
                found |= body
                return 200, found
            return 200, self._detail(found)
        if verb == "act":
            self.acts.append(body)
            return 200, [self._act(body, name) for name in body["runs"]]
        if verb == "curves":
            return 200, [self._curves(name, query) for name in query["runs"].split(",")]
        if "runs" in query:
            return 200, self._page([self._find(name) for name in query["runs"].split(",")])
        return 200, self._search(query)

    def _search(self, query: Json) -> Json:
        words = query.get("search", "").split()
        found = [r for r in self.rows if all(self._fits(r, word) for word in words)]
        sort = query.get("sort", "-submitted")
        if sort.strip("-").startswith(("param.", "best.")):
            kind, _, name = sort.strip("-").partition(".")
            found.sort(
                key=lambda r: r["params"][name] if kind == "param" else r["metrics"][name]["best"],
                reverse=sort.startswith("-"),
            )
        start, limit = int(query.get("start", 0)), int(query.get("limit", 100))
        return self._page(found[start : start + limit], len(found))

    def _page(self, rows: list[Json], total: int | None = None) -> Json:
        return {
            "runs": rows, "total": len(rows) if total is None else total, "params": self.params, "metrics": ["accuracy", "loss"], "next": None,
        }  # fmt: skip

    def _fits(self, row: Json, word: str) -> bool:
        name, _, bound = word.partition("<")
        if bound:
            return bool(row["params"].get(name, math.inf) < float(bound))
        return word in f"{row['name']}@{row['run']} {row['note']} {' '.join(row['tags'])}"

    def _find(self, reference: str) -> Json:
        name, _, run = reference.partition("@")
        for row in self.rows:
            if row["name"] == name and run in {"", str(row["run"])}:
                return row
        return run_of(name, int(run or 1))

    def _act(self, body: Json, name: str) -> Json:
        row = self._find(name)
        if body["act"] == "tag":
            row["tags"] = [*row["tags"], *body["tags"]]
        if body["act"] == "delete":
            if row["run"] == 1:
                return {"run": name, "reason": "WrongState", "msg": "it is running; cancel it first"}
            self.rows.remove(row)
        return {"run": name, "reason": "", "msg": ""}

    def _detail(self, row: Json) -> Json:
        packages = f"numpy==2.{row['run']}\npython==3.11.2\ntorch==2.9.0\n"
        return {
            "run": row, "entry": "train.py", "program": PROGRAM.format(n=row["run"]), "runtime": "plain", "workers": 1, "cpu": 1.0,
            "gpu": 0.0, "ram": 1024, "args": ["--epochs", "5"], "env": {}, "environment": packages,
            "data": [{"user": "ann", "name": "pets", "uid": "0" * 26, "size": 3 << 30, "digest": f"{row['run']:0>12}" + "0" * 52, "files": 1200, "checked": 1200}],
        }  # fmt: skip

    def _curves(self, name: str, query: Json) -> Json:
        row = self._find(name)
        some = min(self.points, int(query.get("points", 500)))
        xs = [float(i * self.points // some) for i in range(some)]
        ys = [math.exp(-x / self.points * row["run"] / 3) + 0.02 * math.sin(x * row["run"]) for x in xs]
        return {
            "run": row, "reported": self.points, "more": False,
            "curves": [{"metric": query["metric"], "rank": 0, "x": xs, "y": ys}],
        }  # fmt: skip
