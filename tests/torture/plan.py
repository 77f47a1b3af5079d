"""What is broken when: drawn from the seed alone, before the round begins."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

GAP_S = 0.7  # between two faults, on average
VICTIMS = {
    "service": 22, "data": 8, "hub": 9, "proxy": 8, "supervisor": 9, "fork_server": 4, "shim": 20, "rank": 18, "sandbox": 9, "server": 2, "up": 1,
}  # fmt: skip
"""How often each is chosen."""
HANGING = ("service", "hub", "proxy", "data")
STRANGERS_MAX = 2  # in a round
FREEZABLE = ("service", "hub", "proxy", "data", "supervisor", "shim", "rank", "sandbox", "server")


@dataclass(frozen=True)
class Fault:
    """Something to do `at` so many seconds after the round's start.

    `kill`, `several`, `everything`: SIGKILL of `victims` (kind, and which of them as a number from 0 to 1; where there
    is none of that kind, of another one).
    `freeze`: SIGSTOP, SIGCONT after `lasts`. `start`: a job is submitted and the service killed `lasts` after the answer.
    `hang`: SIGSTOP for good: the hub has to notice it by itself. `disk`: full but for `leave` bytes, for as long as `lasts`. `database`: away for as long.
    `stranger`: `mlp-hub up` is called with another database as the one of `variable`; `owned`: it is that of another hub.
    """

    at: float
    name: str
    victims: tuple[tuple[str, float], ...] = ()
    lasts: float = 0.0
    leave: int = 0
    variable: str = ""
    owned: bool = False


def draw(rng: Random, seconds: float, *, disk: bool, database: bool) -> list[Fault]:
    """Draw the faults of a round, in order of time."""
    faults: list[Fault] = []
    at = rng.expovariate(1 / GAP_S)
    while at < seconds:
        faults.append(_one(rng, at))
        at += rng.expovariate(1 / GAP_S)
    if rng.random() < 0.5:
        faults.append(Fault(rng.uniform(0.2, 0.9) * seconds, "everything"))
    # drawn also where it cannot be done, so that the rest of the choices stays the same
    full = Fault(
        rng.uniform(0.1, 0.6) * seconds,
        "disk",
        lasts=rng.uniform(3, 9),
        leave=rng.choice((0, 0, 4096, 65536)),
    )
    if rng.random() < 0.6 and disk:
        faults.append(full)
    hang = Fault(rng.uniform(0.1, 0.5) * seconds, "hang", ((rng.choice(HANGING), 0.0),))
    if rng.random() < 0.15:
        faults.append(hang)
    away = Fault(rng.uniform(0.1, 0.8) * seconds, "database", lasts=rng.uniform(1, 6))
    if database:
        faults.append(away)
    for _ in range(rng.randint(0, STRANGERS_MAX)):
        at, variable = rng.uniform(0.05, 0.95) * seconds, rng.choice(("platform", "hub"))
        faults.append(Fault(at, "stranger", variable=variable, owned=rng.random() < 0.5))
    return sorted(faults, key=lambda fault: fault.at)


def _one(rng: Random, at: float) -> Fault:
    chance = rng.random()
    if chance < 0.10:
        return Fault(at, "start", lasts=rng.uniform(0, 0.06))
    if chance < 0.18:
        return Fault(at, "freeze", ((rng.choice(FREEZABLE), rng.random()),), lasts=rng.uniform(0.5, 5))
    count = rng.randint(2, 4) if chance < 0.33 else 1
    kinds = rng.choices(list(VICTIMS), list(VICTIMS.values()), k=count)
    return Fault(at, "several" if count > 1 else "kill", tuple((kind, rng.random()) for kind in kinds))
