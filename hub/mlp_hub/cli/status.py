"""`mlp-hub status` and `mlp-hub logs`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, TextIO

from mlp_hub.cli import database, processes, procs
from mlp_hub.cli.errors import Failure, UsageFailure
from mlp_hub.cli.http import request
from mlp_hub.domain.text import escaped
from mlp_hub.settings import Settings

LOGS = ("hub", "service", "proxy", "supervisor")


def collect(settings: Settings) -> dict[str, Any]:
    """Return how the platform stands, as `--json` prints it. Memory is the proportional share in MiB."""
    seen = processes.state(settings).get("components", {})
    components = {}
    for name in processes.NAMES:
        running = processes.find(settings, name)
        about = seen.get(name, {})
        components[name] = {
            "pid": running.pid if running else None,
            "uptime_s": round(running.uptime_s, 1) if running else None,
            "memory_mib": _rounded(procs.memory_mib(running.pid)) if running else None,
            "restarts": about.get("restarts", 0),
            "last_exit": about.get("last_exit"),
        }
    return {
        "home": str(settings.home),
        "url": settings.url,
        "running": all(c["pid"] for c in components.values()),
        "components": components,
        "jobs": _jobs(settings),
        "decides": database.decider(settings),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _jobs(settings: Settings) -> dict[str, int] | None:
    """Count waiting and running jobs by phase; None where the service does not answer."""
    try:
        token = settings.secret("operator_token")
    except OSError:
        return None
    answer = request(settings.service_socket, "GET", "/services/mlp/api/v1/queue", token=token, timeout=5)
    if answer.status != 200:
        return None
    found = answer.json()
    entries = found.get("items", []) if isinstance(found, dict) else found
    return dict(Counter(str(entry["phase"]) for entry in entries))


def status(settings: Settings, *, as_json: bool) -> int:
    """Print how the platform stands; the exit status is 0 where all of it runs, else 1."""
    found = collect(settings)
    if as_json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return 0 if found["running"] else 1
    sys.stdout.write(f"{'component':<12}{'process':>9}{'up':>12}{'memory':>11}{'restarts':>10}\n")
    for name, c in found["components"].items():
        if c["pid"] is None:
            last = f"  it {c['last_exit']}" if c["last_exit"] else ""
            sys.stdout.write(f"{name:<12}{'-':>9}{'not running':>12}{last}\n")
            continue
        memory = "" if c["memory_mib"] is None else f"{c['memory_mib']:.0f} MiB"
        sys.stdout.write(f"{name:<12}{c['pid']:>9}{_age(c['uptime_s']):>12}{memory:>11}{c['restarts']:>10}\n")
    jobs = found["jobs"]
    if jobs is not None:
        sys.stdout.write(
            f"\njobs: {', '.join(f'{n} {phase}' for phase, n in sorted(jobs.items())) or 'none'}\n"
        )
    if found["decides"] is not None:
        sys.stdout.write(f"scheduler: decided by {found['decides']}\n")
    sys.stdout.write(f"\n{found['url']}   state in {found['home']}\n")
    return 0 if found["running"] else 1


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def logs(settings: Settings, names: list[str], *, lines: int, follow: bool) -> int:
    """Print the last lines of the components' logs and what is added to them."""
    unknown = [name for name in names if name not in LOGS]
    if unknown:
        raise UsageFailure(f"There is no component {', '.join(unknown)}", f"There are {', '.join(LOGS)}.")
    chosen = names or list(LOGS)
    paths = {name: settings.log_dir / f"{name}.log" for name in chosen}
    if not any(path.exists() for path in paths.values()):
        raise Failure(f"There are no logs in {settings.log_dir}", "Start the hub with `mlp-hub up`.")
    width = max(len(name) for name in chosen) if len(chosen) > 1 else 0
    for name, path in paths.items():
        for line in processes.log_tail(path, lines).splitlines():
            _line(name, line, width)
    if follow:
        _follow(paths, width)
    return 0


def _follow(paths: dict[str, Path], width: int) -> None:
    places = {name: path.stat().st_size if path.exists() else 0 for name, path in paths.items()}
    while True:
        for name, path in paths.items():
            try:
                with path.open(errors="replace") as file:
                    if os.fstat(file.fileno()).st_size < places[name]:
                        places[name] = 0  # it was rotated
                    places[name] = _copy(name, file, places[name], width)
            except FileNotFoundError:
                continue
        time.sleep(0.3)


def _copy(name: str, file: TextIO, place: int, width: int) -> int:
    file.seek(place)
    while line := file.readline():
        if not line.endswith("\n"):
            break
        _line(name, line.rstrip("\n"), width)
        place += len(line.encode(errors="replace"))
    return place


def _line(name: str, line: str, width: int) -> None:
    line = escaped(line)  # much of it was written by tenants, and root's terminal obeys whoever writes to it
    sys.stdout.write(f"{name:<{width}} | {line}\n" if width else f"{line}\n")
    sys.stdout.flush()
