"""Metric points stored per second, straight into the database and by way of Apache Kafka."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from bench_common import POINTS, Context, Figure, post_points
from mlp_hub.settings import Settings
from support.hubs.live_hub import LiveHub
from support.ports import free_port
from support.stores.kafka_broker import KafkaBroker, why_not

NAME = "points"
ABOUT = (
    "300,000 points of 3 values posted in batches of 5,000 from one client, until the last is in the database; then the same to a hub "
    "with MLP_METRICS_TRANSPORT=kafka and a broker of its own on this machine (one replica, 3 partitions)"
)


def run(context: Context) -> list[Figure]:
    """Measure both ways."""
    figures = []
    answered, stored = _both(context.tmp / "points-http")
    figures.append(_figure("metric points stored per second by HTTP", stored, answered))
    if why_not() is None:
        broker = KafkaBroker(context.tmp / "points-broker", free_port(), free_port())
        try:
            broker.start()
            environ = {"MLP_METRICS_TRANSPORT": "kafka", "MLP_KAFKA_BOOTSTRAP": broker.bootstrap}
            answered, stored = _both(context.tmp / "points-kafka", **environ)
            figures.append(_figure("metric points stored per second by Kafka", stored, answered))
        finally:
            broker.stop(kill=True)
    return figures


def _figure(name: str, stored: float, answered: float) -> Figure:
    note = f"answered {answered:,.0f} in a second"
    return Figure(name, stored, "1/s", 50_000, "target", note, "make bench ONLY=points")


def _both(home: Path, **environ: str) -> tuple[float, float]:
    """Return points per second: until the last was answered, and until the last was stored."""
    hub = LiveHub(home, **environ)
    try:
        hub.up()
        hub.add_user("bench")
        watch = post_points(hub)
        answered = POINTS / watch.seconds
        with closing(sqlite3.connect(Settings.load(hub.env).service_db_file)) as database:
            while database.execute("select sum(last) from metric_source").fetchone() != (POINTS,):
                time.sleep(0.01)
        stored = POINTS / watch.seconds
        hub.ok("PUT", "/users/bench/jobs/sink:cancel", "bench")
        return answered, stored
    finally:
        hub.destroy()
