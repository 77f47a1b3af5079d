"""`mlp-hub status` and `mlp-hub logs`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, TextIO

from mlp_hub.cli.doctor.checks import FAIL
from mlp_hub.cli.doctor.machine import disk
from mlp_hub.cli.errors import CommandFailed, UsageFailure
from mlp_hub.cli.http import request
from mlp_hub.cli.state import database, identity
from mlp_hub.cli.supervisor import processes, procs
from mlp_hub.domain.jobs.job import PHASES, Phase
from mlp_hub.domain.text import escaped
from mlp_hub.settings import Settings
from mlp_language.message import Message, Span
from mlp_language.render import here, padded, render, say

_RECENT_S = 86_400.0


def collect(settings: Settings) -> dict[str, Any]:
    """Return the state of the platform, as `--json` prints it.

    Memory is the proportional share in MiB.
    """
    source = identity.origin(settings)
    # what lies in a copy tells of the original
    state = {} if source is not None else processes.state(settings)
    seen, deaths = state.get("components", {}), state.get("deaths", [])
    components = {}
    for name in processes.names(settings):
        running = processes.find(settings, name)
        about = seen.get(name, {})
        components[name] = {
            "pid": running.pid if running else None,
            "uptime_s": round(running.uptime_s, 1) if running else None,
            "memory_mib": _rounded(procs.memory_mib(running.pid)) if running else None,
            "restarts": about.get("restarts", 0),
            "last_exit": about.get("last_exit"),
            "last_death": next((d for d in reversed(deaths) if d["component"] == name), None),
        }
    problems = _problems(settings) if components["service"]["pid"] else []
    if not any(problem["component"] == "disk" for problem in problems):
        problems += _disk(settings)
    return {
        "home": str(settings.home),
        "copy_of": source,
        "url": settings.url,
        "running": all(c["pid"] for c in components.values()),
        "components": components,
        "jobs": None if any(p["reason"] == "Silent" for p in problems) else _jobs(settings),
        "decides": database.decider(settings),
        "problems": problems,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _jobs(settings: Settings) -> dict[str, int] | None:
    """Count waiting and running jobs by phase; None where the service does not answer."""
    try:
        token = settings.secret("operator_token")
    except OSError:
        return None
    answer = request(settings.service_at, "GET", "/services/mlp/api/v1/queue", token=token, timeout=5)
    if answer.status != 200:
        return None
    found = answer.json()
    entries = found.get("items", []) if isinstance(found, dict) else found
    # notebook servers that wait are there too; an older service, which may still run, knows jobs alone
    return dict(Counter(str(entry["phase"]) for entry in entries if entry.get("kind", "job") == "job"))


def _problems(settings: Settings) -> list[dict[str, str]]:
    """Return what the service says that does not work; that it says nothing is one too."""
    answer = request(settings.service_at, "GET", "/services/mlp/api/v1/health", timeout=5)
    found = answer.json()
    if isinstance(found, dict) and "problems" in found:
        return list(found["problems"])
    message = f"the service does not answer as it should: {answer.message}"
    return [{"component": "service", "reason": "Silent", "message": message}]


def _disk(settings: Settings) -> list[dict[str, str]]:
    """Return that the disk is full, which a service that cannot start for it does not say."""
    if not settings.home.exists():
        return []
    found = disk(settings)
    if found.status != FAIL:
        return []
    return [{"component": "disk", "reason": "DiskFull", "message": f"{found.found}. {found.remedy}"}]


def status(settings: Settings, *, as_json: bool) -> int:
    """Print the state of the platform; the exit status is 0 where all of it runs, else 1."""
    found = collect(settings)
    if as_json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return 0 if found["running"] else 1
    heads = (
        (say("component"), 14), (say("process"), 11), (say("up"), 14), (say("memory"), 12), (say("restarts"), 9)
    )  # fmt: skip
    sys.stdout.write("".join(padded(head, width) for head, width in heads).rstrip() + "\n")
    for name, c in found["components"].items():
        if c["pid"] is None:
            last = say("it {how}", how=c["last_exit"]) if c["last_exit"] else ""
            sys.stdout.write(f"{name:<14}{'-':<11}{say('not running')}  {last}".rstrip() + "\n")
            continue
        memory = "" if c["memory_mib"] is None else f"{c['memory_mib']:.0f} MiB"
        up = padded(_age(c["uptime_s"]), 14)
        sys.stdout.write(f"{name:<14}{c['pid']:<11}{up}{memory:<12}{c['restarts']}\n")
    _say_what_is_wrong(found)
    jobs = found["jobs"]
    if jobs is not None:
        counts = ", ".join(f"{n} {render(PHASES[Phase(phase)], here())}" for phase, n in sorted(jobs.items()))
        sys.stdout.write(f"\n{say('jobs: {counts}', counts=counts or say('none runs or waits'))}\n")
    if found["decides"] is not None:
        sys.stdout.write(say("scheduler: decided by {who}", who=found["decides"]) + "\n")
    sys.stdout.write(f"\n{found['url']}   {say('state in {home}', home=found['home'])}\n")
    return 0 if found["running"] else 1


def _say_what_is_wrong(found: dict[str, Any]) -> None:
    lines = []
    if found["copy_of"] is not None:
        lines.append(
            say(
                "this is a copy of {found}, and nothing of it runs; `mlp-hub up` makes it a separate hub",
                found=found["copy_of"],
            )
        )
    components = found["components"]
    for name, c in components.items():
        death = c["last_death"]
        if death is not None and time.time() - death["at"] < _RECENT_S:
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(death["at"]))
            lines.append(
                say(
                    "the {name} ended at {when} and had to be restarted: it {death}",
                    name=name,
                    when=when,
                    death=death["why"],
                )
            )
    if components["supervisor"]["pid"] is None and any(c["pid"] for c in components.values()):
        lines.append(
            say(
                "the supervisor is not running: nothing restarts failed parts; `mlp-hub up` starts another one"
            )
        )
    lines += [f"{problem['component']}: {problem['message']}" for problem in found["problems"]]
    if lines:
        sys.stdout.write("\n" + "".join(f"{line}\n" for line in lines))


def _age(seconds: float) -> str:
    return render(Message("{span}", {"span": Span(round(seconds))}), here())


def logs(settings: Settings, names: list[str], *, lines: int, follow: bool) -> int:
    """Print the last lines of the components' logs and what is added to them."""
    known = processes.names(settings)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageFailure(
            say("Component {unknown} does not exist", unknown=", ".join(unknown)),
            say("Available: {known}.", known=", ".join(known)),
        )
    chosen = names or list(known)
    paths = {name: settings.log_dir / f"{name}.log" for name in chosen}
    if not any(path.exists() for path in paths.values()):
        raise CommandFailed(
            say("{log_dir} contains no logs", log_dir=str(settings.log_dir)),
            say("Start the hub with `mlp-hub up`."),
        )
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
