"""`make torture-failover`: the leader of two services is stopped, or cut off, again and again, and a write is answered within 15 s.

`make torture-failover-pods` does so with pods of the Helm chart in a cluster: `--pods` is how often their leader is ended.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from support.failover.failover_rig import FailoverRig, failover_rig
from support.failover.persistent_write import LATE_S


def main() -> int:
    """Read the arguments and run; 1 where a write came late, or one that was answered is gone."""
    parser = argparse.ArgumentParser(prog="torture.failover", description=__doc__)
    parser.add_argument("--stops", type=int, default=50, help="how often the leader is stopped (default 50)")
    parser.add_argument("--cuts", type=int, default=10, help="how often it is cut off (default 10)")
    parser.add_argument(
        "--pods", type=int, default=0, help="how often the leader is ended in a cluster's pods, instead"
    )
    parser.add_argument(
        "--ways",
        default="",
        help="with --pods: in which of the ways, separated by commas (default: all in turn)",
    )
    parser.add_argument("--seed", type=int, default=1, help="what all choices follow from (default 1)")
    parser.add_argument("--port", help="of the hub (default: a free one)")
    args = parser.parse_args()
    if args.pods:
        return _in_pods(args.pods, args.seed, args.ways.split(",") if args.ways else [])
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


def _in_pods(rounds: int, seed: int, ways: Sequence[str]) -> int:
    """End the leader in each of the ways in turn; 1 where a write that was answered is gone or there twice."""
    from mlp_cluster.place import clone_name, find
    from support.cluster.kube import Kube
    from support.cluster.release import release
    from support.failover.pods_rig import WAYS, PodsRig

    place = find(clone_name())
    if place is None:
        _say("the cluster does not run: make cluster")
        return 1
    times: dict[str, list[float]] = {way: [] for way in ways or WAYS}
    with (
        tempfile.TemporaryDirectory(prefix="mlp-failover-") as home,
        release(Kube(place.kubeconfig), Path(home, "home"), MLP_RATE_CHANGES="1000") as hub,
    ):
        hub.add_user("ann")
        hub.ok("POST", "/tenants", body={"name": "narrow", "cpu": 0.1, "ram": 1000})
        hub.ok("PUT", "/tenants/narrow/members/ann", body={"role": "member"})
        rig = PodsRig(hub, seed)
        with rig.load():
            for number, way in zip(range(rounds), itertools.cycle(times), strict=False):
                times[way].append(rig.ended(way))
                _say(f"{number + 1}: {way}: {times[way][-1]:.1f} s")
        lost = rig.lost()
    for way, found in times.items():
        if found:
            _say(f"{way} {len(found)} times: {percentiles(found)}")
    _say(f"all {rounds} times: {percentiles([each for found in times.values() for each in found])}")
    _say(f"{len(rig.acknowledged)} jobs acknowledged, {len(lost)} of them lost or there twice {lost}")
    return int(bool(lost))


def percentiles(times: Sequence[float]) -> str:
    """Return the median, the 99th percentile and the longest of some seconds, in words."""
    ordered = sorted(times)
    p99 = ordered[min(len(ordered) - 1, math.ceil(0.99 * len(ordered)) - 1)]
    return f"p50 {statistics.median(ordered):.1f} s, p99 {p99:.1f} s, max {ordered[-1]:.1f} s"


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
