"""Sweeps in the wire's shapes, for clients and pages that show them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def trial(number: int, state: str = "finished", value: float | None = 0.9, **changes: Any) -> Json:
    return {
        "number": number, "params": {"width": 64, "lr": 0.001 * (number + 1)}, "state": state, "job": f"search.{number}", "phase": None, "value": value,
        "steps": 27, "core_hours": 0.01, "ended_at": "2026-01-01T10:05:00Z", "message": "", "detail": {}, **changes,
    }  # fmt: skip


def sweep(
    name: str = "search", state: str = "running", trials: list[Json] | None = None, **changes: Any
) -> Json:
    """Return a sweep of 6 trials of which one runs, one waits, and one was stopped early."""
    found = trials if trials is not None else [
        trial(0, value=0.91),
        trial(1, value=0.97),
        trial(2, "stopped", 0.4, message="stopped early: at 3 its accuracy was 0.4, and enough others were as good or better"),
        trial(3, "running", 0.8, phase="running", ended_at=None),
        trial(4, "running", None, phase="queued", ended_at=None, message="Waits for nodes."),
    ]  # fmt: skip
    valued = [t for t in found if t["value"] is not None]
    return {
        "name": name, "run": 1, "user": "ann", "tenant": "red", "uid": name, "state": state, "message": "", "detail": {}, "runtime": "plain",
        "entry": "train.py", "code": None, "args": [], "priority": "low", "workers": 1, "cpu": 1.0, "gpu": 0.0, "ram": 1024, "grid": {"width": [64, 128]},
        "search": {"lr": "loguniform(0.0001, 0.1)"}, "array": False, "metric": "accuracy", "goal": "max", "stop": "asha", "warmup": 1, "sampler": "tpe",
        "parallel": None, "budget_trials": 6, "budget_core_hours": None, "deadline": None, "core_hours": 0.25,
        "counts": {"waiting": 1, "running": 1, "finished": 2, "stopped": 1, "failed": 0, "cancelled": 0, "left": 1},
        "best": max(valued, key=lambda t: t["value"], default=None), "trials": found, "submitted_at": "2026-01-01T10:00:00Z", "ended_at": None, **changes,
    }  # fmt: skip


def curves() -> list[Json]:
    """Return what its trials reported."""
    return [
        {"trial": n, "points": [[step, value * step / 9] for step in range(1, last + 1)]}
        for n, value, last in ((0, 0.91, 9), (1, 0.97, 9), (2, 0.4, 3), (3, 0.8, 6))
    ]
