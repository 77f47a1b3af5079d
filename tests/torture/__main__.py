"""`make torture`: rounds of faults on real hubs until the time is over; exit status 1 where anything was violated."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from pathlib import Path

from torture import powercut
from torture.findings import Findings, Violation
from torture.leftovers import Baseline, end_all
from torture.notebook import Notebook
from torture.rounds import Counts, Round
from torture.site import Site
from torture.toll import Toll

KEPT = Path(__file__).resolve().parents[2] / "build" / "torture"
LEG_S = 600.0  # a hub lives so long; the next one has the other database
ROUND_S = 35.0  # of faults; quiet and checks take about half as long again
POWER_CUT_FROM = 10.0  # minutes; power cuts take some four, before the rounds
DATABASES = ("sqlite", "postgresql")


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (default 60)")
    parser.add_argument("--seed", default="1", help="what all choices follow from (default 1)")
    parser.add_argument("--round", type=int, default=1, help="the round to begin with (default 1)")
    parser.add_argument("--database", choices=DATABASES, help="only this one (default: in turns)")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was mounted and started is removed
    kept = KEPT / f"seed-{args.seed}"
    shutil.rmtree(kept, ignore_errors=True)
    findings, toll, counts = Findings(args.seed, kept), Toll(), Counts()
    if args.minutes >= POWER_CUT_FROM and powercut.run():
        findings.add(Violation("lost-by-a-power-cut", "see above; again: python -m torture.powercut"))
    until = time.monotonic() + args.minutes * 60
    number, leg = args.round, 0
    while time.monotonic() < until:
        database = args.database or DATABASES[leg % len(DATABASES)]
        number = _leg(
            database, args.seed, number, min(until, time.monotonic() + LEG_S), findings, toll, counts
        )
        leg += 1
    _table(args.seed, findings, toll, counts)
    return 1 if findings.found else 0


def _leg(
    database: str, seed: str, number: int, until: float, findings: Findings, toll: Toll, counts: Counts
) -> int:
    """Torture one hub; return the number of the next round."""
    findings.round = number
    site = Site(database, toll, findings)
    try:
        site.up()
        _say(
            f"{database}, disk {site.disk.kind or 'of its own cannot be made: it is never filled'}, {site.hub.url}"
        )
        notebook = Notebook(site)
        notebook.start()
        baseline = Baseline(site)
        while True:
            findings.round = number
            before, kills = len(findings.found), toll.kills().total()
            done = Round(site, seed, number, baseline, notebook).run(
                min(ROUND_S, max(10.0, until - time.monotonic()))
            )
            counts.add(done)
            _say(
                f"round {number} {done.seconds:.0f} s: {toll.kills().total() - kills} kills, "
                f"{done.phases.total()} jobs ({_list(done.phases)}; {done.restarts} restarts), {done.points} points, "
                f"{done.lines} lines, {done.samples} samples, {len(findings.found) - before} violations"
            )
            number += 1
            if time.monotonic() > until:
                return number
    finally:
        site.stop()
        if left := end_all(site):
            findings.add(Violation("left-after-down", f"after `down JOBS=stop` there was: {left}"))
        if held := site.remove():
            findings.add(Violation("disk-busy", f"after the end of everything its disk is in use: {held}"))


def _table(seed: str, findings: Findings, toll: Toll, counts: Counts) -> None:
    rows = [
        ("seed", seed),
        ("time", f"{counts.seconds / 60:.1f} min in rounds"),
        ("processes killed", f"{toll.kills().total()} ({_list(toll.kills())})"),
        ("faults", _list(toll.faults)),
        ("jobs", f"{counts.phases.total()} ({_list(counts.phases)}), {counts.restarts} restarts"),
        ("points checked", str(counts.points)),
        ("lines checked", str(counts.lines)),
        ("samples of the ledger", str(counts.samples)),
        ("violations", f"{len(findings.found)} ({_list(findings.by_kind()) or 'none'})"),
    ]
    _say("")
    for what, value in rows:
        _say(f"  {what:<24}{value}")


def _list(counter: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items(), key=lambda i: -i[1]))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
