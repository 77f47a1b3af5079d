"""Gathers what the hub tells of a job, by REST and by the stream that replays its points."""

from __future__ import annotations

import time
from typing import Any

import httpx
from websockets.exceptions import WebSocketException

from torture import program
from torture.load import Tracked
from torture.site import Site
from torture.verify import Case

PATIENCE_S = 30.0
PAGE = 10_000


def case_of(site: Site, tracked: Tracked) -> Case | str:
    """Return all of it, or in words what could not be had."""
    user, name = tracked.recipe.user, tracked.name
    base = f"/users/{user}/jobs/{name}"
    job = _json(site, base, user)
    if isinstance(job, str):
        return job
    events = _json(site, f"{base}/events", user)
    if isinstance(events, str):
        return events
    truth = program.read(site.workspace(user, tracked.directory))
    logs = {}
    for rank in range(1 + max([0, *(one.rank for one in truth.ranks)])):
        logs[rank] = _log(site, base, user, rank)
    points = _points(site, user, name)
    if isinstance(points, str):
        return points
    hits = site.toll.of_job(tracked.uid)
    outages = list(site.toll.outages)
    return Case(tracked.recipe, tracked.uid, tracked.asked, job, events, points, logs, truth, hits, outages)


def _json(site: Site, path: str, user: str) -> Any:
    answer = site.ask("GET", path, user, PATIENCE_S)
    if answer is None or not answer.is_success:
        return f"GET {path}: {'no answer' if answer is None else f'{answer.status_code} {answer.text[:200]}'}"
    return answer.json()


def _log(site: Site, base: str, user: str, rank: int) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    since = 0
    while True:
        path = f"{base}/logs?rank={rank}&since={since}&limit={PAGE}"
        answer = site.ask("GET", path, user, PATIENCE_S, headers={"Accept": "application/json"})
        page = answer.json() if answer is not None and answer.is_success else {"lines": []}
        lines += [(line["stream"], line["text"]) for line in page["lines"]]
        if not page["lines"]:
            return lines
        since = page["offset"]


def _points(site: Site, user: str, name: str) -> list[dict[str, Any]] | str:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return site.hub.points(user, name)
        except (OSError, WebSocketException, httpx.HTTPError) as error:
            if time.monotonic() > until:
                return f"the points of {name} could not be replayed: {error!r}"
            time.sleep(0.3)
