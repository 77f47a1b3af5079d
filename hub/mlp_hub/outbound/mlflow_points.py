"""Metric points of jobs, logged to MLflow's tracking server over its REST API: a job is a run, a team's jobs are an experiment.

The run is found by its tag `JOB`, so a job has one run, however often this is repeated. MLflow ignores a value that it has already.
"""

from __future__ import annotations

import hashlib
import json
import math
import posixpath
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from mlp_hub.outbound.posting import ExportTarget, TargetAnswer

API = "/api/2.0/mlflow/"
"""Given: path of MLflow's REST API below the server's address."""
JOB = "mlp.job"
"""Contract: tag of a run with the uid of its job."""
EXPERIMENTS = "mlp-hub/"
"""Contract: beginning of an experiment's name; the team follows."""
METRICS_AT_ONCE, PARAMS_AT_ONCE = 1000, 100
"""Given: metrics and parameters in one request of MLflow at most."""
PARAM_MOST = 500
"""Given: characters of a parameter's value that each version of MLflow accepts."""
TEXT_MOST = 500
"""Safety: characters of a tag, and of the name of a run."""
LAST_MS = 253_402_300_799_000
"""Given: milliseconds since the epoch at the end of the year 9999: programs set the times of their points."""
MOST_STEP = 2**53
"""Given: numbers up to which a float is a whole number for certain."""
_OTHER = re.compile(r"[^A-Za-z0-9_\-. /]")
_CODE = re.compile(r"[A-Z_]{1,60}")
_RUN = re.compile(r"[A-Za-z0-9_\-]{1,64}")
_FOR_ALL = frozenset({401, 403, 407, 408, 425, 429})
"""Statuses that do not depend on the request, whatever else the answer says."""


class NotTakenError(Exception):
    """Error: the server did not do what it was asked; `outcome` is what becomes of the points."""

    def __init__(self, outcome: dict[str, Any]) -> None:
        super().__init__(outcome)
        self.outcome = outcome


def prepare() -> None:
    """Load what is needed later."""


def send(asked: dict[str, Any]) -> dict[str, Any]:
    """Log the points of one job; return its run as `target`, also if the points were not taken."""
    (job,) = asked["data"]["jobs"]
    data = asked["data"]
    tracking = _Tracking(asked["address"].rstrip("/") + API, data["headers"], data["ca"])
    run = job["target"]
    try:
        if not run:
            run = tracking.run_of(job)
        for metrics in _parts(metrics_of(job["points"]), METRICS_AT_ONCE):
            tracking.post("runs/log-batch", {"run_id": run, "metrics": metrics})
        if job["end"] is not None:
            status, ended = job["end"]
            tracking.post("runs/update", {"run_id": run, "status": status, "end_time": milliseconds(ended)})
    except NotTakenError as error:
        return {**error.outcome, "target": run}
    return {"target": run}


class _Tracking:
    def __init__(self, base: str, headers: dict[str, str], ca: str) -> None:
        self._base = base
        self._target = ExportTarget(headers, ca)

    def post(self, act: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._target.ask("POST", self._base + act, json.dumps(body).encode(), "application/json")
        return _taken(answer)

    def run_of(self, job: dict[str, Any]) -> str:
        """Return the run of a job, which is created unless it is there, with its parameters."""
        experiment = self._experiment(EXPERIMENTS + job["tenant"])
        found = self.post(
            "runs/search",
            {
                "experiment_ids": [experiment],
                "filter": f"tags.`{JOB}` = '{job['uid']}'",
                "max_results": 1,
                "order_by": ["attributes.start_time ASC"],
            },
        ).get("runs")
        run = _text(found[0]["info"], "run_id") if found else self._create(experiment, job)
        params = [
            {"key": key_of(name), "value": _param(value)} for name, value in sorted(job["params"].items())
        ]
        for part in _parts(params, PARAMS_AT_ONCE):
            try:
                self.post("runs/log-batch", {"run_id": run, "params": part})
            except NotTakenError as error:
                if error.outcome["why"] != "refused":  # a curve without its parameters is better than none
                    raise
        return run

    def _create(self, experiment: str, job: dict[str, Any]) -> str:
        body = {
            "experiment_id": experiment,
            "user_id": job["user"][:TEXT_MOST],
            "run_name": job["title"][:TEXT_MOST],
            "start_time": milliseconds(job["started"]),
            "tags": [{"key": key, "value": value[:TEXT_MOST]} for key, value in tags_of(job).items()],
        }
        created = self.post("runs/create", body)
        return _text(created.get("run", {}).get("info", {}), "run_id")

    def _experiment(self, name: str) -> str:
        for _ in range(2):
            address = f"{self._base}experiments/get-by-name?experiment_name={quote(name, safe='')}"
            answer = self._target.ask("GET", address)
            if answer.json().get("error_code") != "RESOURCE_DOES_NOT_EXIST":
                return _text(_taken(answer).get("experiment", {}), "experiment_id")
            try:
                return _text(self.post("experiments/create", {"name": name}), "experiment_id")
            except NotTakenError as error:
                if error.outcome.get("code") != "RESOURCE_ALREADY_EXISTS":
                    raise
        raise NotTakenError({"why": "later"})  # one that is made and removed all the time


def _taken(answer: TargetAnswer) -> dict[str, Any]:
    """Return the object of an answer; raise `NotTakenError` if it is an error, or not an answer of MLflow."""
    outcome = answer.outcome()
    if not outcome:
        return answer.json()
    code = answer.json().get("error_code")
    if isinstance(code, str) and _CODE.fullmatch(code):
        outcome["code"] = code
        if answer.status < 500 and answer.status not in _FOR_ALL and outcome["why"] == "later":
            outcome["why"] = "refused"  # MLflow's own word: the run is not there any more
    raise NotTakenError(outcome)


def _text(found: Any, key: str) -> str:
    """Return an id of an answer; raise `NotTakenError` if it has none."""
    value = found.get(key) if isinstance(found, dict) else None
    if not isinstance(value, str) or not _RUN.fullmatch(value):
        raise NotTakenError({"why": "later", "code": "NOT_MLFLOW"})
    return value


def tags_of(job: dict[str, Any]) -> dict[str, str]:
    """Return the tags of a job's run."""
    found = {
        JOB: job["uid"],
        "mlp.name": job["name"],
        "mlp.run": str(job["run"]),
        "mlp.user": job["user"],
        "mlp.tenant": job["tenant"],
        "mlflow.user": job["user"],
        "mlflow.source.type": "JOB",
        "mlflow.source.name": job["entry"] or job["name"],
    }
    return found | ({"mlp.sweep": job["sweep"]} if job["sweep"] else {})


def metrics_of(points: list[Any]) -> list[dict[str, Any]]:
    """Return points as metrics of MLflow; the value `step` is the step of the others.

    A point without one has its own number as step. Values of rank 0 have their names, those of rank 3 `rank-3/NAME`.
    """
    found = []
    for seq, rank, time, values in points:
        step = values.get("step")
        whole = step is not None and math.isfinite(step) and abs(step) < MOST_STEP
        at, number = milliseconds(time), int(step) if whole else seq
        for name, value in values.items():
            if name == "step" and whole:
                continue
            key = key_of(name)
            found.append(
                {
                    "key": f"rank-{rank}/{key}" if rank else key,
                    "value": number_of(float(value)),
                    "timestamp": at,
                    "step": number,
                }
            )
    return found


def key_of(name: str) -> str:
    """Return a name as MLflow accepts it; one that is changed ends with a hash of itself, so that no two become one."""
    made = _OTHER.sub("_", name)
    if posixpath.normpath(made) != made or made.startswith(("/", "..")) or made == "." or not made.strip():
        made = made.replace("/", "_").replace(".", "_")
    if made == name and len(name) <= 200:
        return name
    return f"{made[:200]}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def number_of(value: float) -> float | str:
    """Return a value in MLflow's JSON, in which NaN and infinity are texts; a literal NaN would become an empty metric."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def milliseconds(time: float) -> int:
    """Return a time of a program within what MLflow can have."""
    if not math.isfinite(time):
        return 0
    return min(int(min(max(time, 0.0), LAST_MS) * 1000), LAST_MS)


def _param(value: object) -> str:
    text = str(value)
    return text if len(text) <= PARAM_MOST else text[: PARAM_MOST - 3] + "..."


def _parts(items: list[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]
