"""`make torture-failover`: the leader of two services is stopped, or cut off, again and again, and a write is answered within 15 s."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from support.failover.failover_rig import FailoverRig, failover_rig
from support.failover.persistent_write import LATE_S


def main() -> int:
    """Read the arguments and run; 1 where a write came late, or one that was answered is gone."""
    parser = argparse.ArgumentParser(prog="torture.failover", description=__doc__)
    parser.add_argument("--stops", type=int, default=50, help="how often the leader is stopped (default 50)")
    parser.add_argument("--cuts", type=int, default=10, help="how often it is cut off (default 10)")
    parser.add_argument("--seed", type=int, default=1, help="what all choices follow from (default 1)")
    parser.add_argument("--port", help="of the hub (default: a free one)")
    args = parser.parse_args()
    environ = {} if args.port is None else {"MLP_PORT": str(args.port)}
    with (
        tempfile.TemporaryDirectory(prefix="mlp-failover-") as place,
        failover_rig(Path(place, "home"), seed=args.seed, **environ) as rig,
        rig.load(),
    ):
        stops = _times(rig, "stopped", args.stops)
        cuts = _times(rig, "cut off", args.cuts)
        lost = rig.lost()
    for what, times in (("stopped", stops), ("cut off", cuts)):
        if times:
            _say(f"{what} {len(times)} times: p50 {statistics.median(times):.1f} s, max {max(times):.1f} s")
    _say(f"{len(rig.acknowledged)} jobs acknowledged, {len(lost)} of them lost {lost}")
    late = max([*stops, *cuts], default=0.0) > LATE_S
    if late:
        _say(f"what was to be seen while a write came late is below {rig.evidence.place}")
    return int(bool(lost) or late)


def _times(rig: FailoverRig, what: str, rounds: int) -> list[float]:
    times = []
    for number in range(rounds):
        times.append(rig.stopped() if what == "stopped" else rig.cut_off())
        _say(f"{what} {number + 1}: {times[-1]:.1f} s")
    return times


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
