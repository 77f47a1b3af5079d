"""Sentences in a database of before messages were data read the same after the upgrade, and after a way back."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, MetaData, insert, select

from mlp_hub.domain.jobs.job import JobSpec
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.reasons.rows import to_wire
from mlp_hub.store import Database, codec, migrate
from mlp_hub.store import engine as engines
from mlp_language.message import ALL
from support.stores.older_rows import row

BEFORE = "0016"
SPEC = JobSpec(user="ann", name="digits", tenant="red", runtime="plain", per_worker=Resources(1000, 0, 512))
LOWERED = {"since": 1.0, "share": 0.5, "lending_limit": None, "reserved": {"cpu": 2}, "message": "red idles"}
SHORT = {"since": 1.0, "left": {"cpu": 1000}, "message": "needs 4 cpu, 1 is left"}
EVENTS = {"submitted": "submitted to red: 2 ranks", "starting": "starting 2 ranks on node n1", "asked": ""}
DECISION: dict[str, Any] = {
    "summary": "admitted on node n1, after a job of tenant blue was stopped for it",
    "waited_for": "red may use 2 cpu",
    "waited_reason": "WaitingForQuota",
    "changed": ["job a of ann ended"],
    "policy": "fair",
    "nodes": [{"node": "n1", "ranks": 1, "chosen": True, "free_after": "1 cpu", "score": []}],
    "victims": [
        {
            "job": None,
            "user": None,
            "tenant": "blue",
            "priority": 50,
            "lost_work": 1.0,
            "over_nominal": True,
            "chosen": True,
            "why": "the cheapest",
        }
    ],
    "spared": ["1 job may not be preempted"],
}


def old(connection: Connection) -> None:
    metadata = MetaData()
    metadata.reflect(connection)
    tables = metadata.tables

    def put(name: str, /, **values: Any) -> None:
        connection.execute(insert(tables[name]), row(tables[name], **values))

    put("tenant", name="red", weight=1.0, lowered=json.dumps(LOWERED), kinds="{}")
    put("user", name="ann")
    put(
        "booking",
        tenant="red",
        name="w",
        starts_at=1.0,
        ends_at=9e9,
        amount='{"cpu":4000}',
        short=json.dumps(SHORT),
    )
    state = {"phase": "queued", "target": "run", "version": 1, "submitted_at": 1.0}
    spec = codec.dumps(SPEC)
    for uid, message in (("u1", 'it says {"id": "x"} and {braces}'), ("u2", "")):
        of = {"uid": uid, "user": "ann", "name": uid, "tenant": "red", "spec": spec, "message": message}
        put("job", **of, **state)
    for seq, (kind, text) in enumerate(EVENTS.items(), 1):
        put("job_event", job="u1", seq=seq, time=1.0, kind=kind, message=text)
    secret = {**DECISION, "summary": "admitted on node n1, after job secret of eve was stopped for it"}
    put("decision", job="u1", time=1.0, kind="admitted", text=json.dumps({"all": secret, "own": DECISION}))


def test_sentences_read_the_same_after_the_upgrade(empty_url: str) -> None:
    migrate.upgrade(empty_url, BEFORE)
    engine = engines.make_engine(engines.parse(empty_url), write=True)
    with engine.begin() as connection:
        old(connection)
    engine.dispose()
    migrate.upgrade(empty_url)
    db = Database(empty_url, guard=True)
    db.open()
    try:
        with db.reading() as tx:
            jobs = [tx.jobs.get(SYSTEM, uid) for uid in ("u1", "u2")]
            assert [job and str(job.message) for job in jobs] == ['it says {"id": "x"} and {braces}', ""]
            events = tx.events.since("u1")
            assert {e.kind: str(e.message) for e in events} == EVENTS
            assert [e.message.args["n"] for e in events if e.kind == "starting"] == [2]
            red = tx.tenants.get("red")
            assert red is not None
            assert red.lowered is not None
            assert (str(red.lowered.message), red.lowered.share) == ("red idles", 0.5)
            (window,) = tx.bookings.current(5.0)
            assert window.short is not None
            assert (str(window.short.message), window.short.left.cpu) == ("needs 4 cpu, 1 is left", 1000)
            (record,) = tx.decisions.last_of_job("u1", 10)
            assert "secret" not in record.text
            told = to_wire(record, ALL)
            assert str(told.summary) == DECISION["summary"]
            assert [str(t) for t in (told.waited_for, *told.changed, *told.spared)] == [
                DECISION["waited_for"],
                *DECISION["changed"],
                *DECISION["spared"],
            ]
            assert (told.victims[0].tenant, str(told.victims[0].why)) == ("blue", "the cheapest")
    finally:
        db.close()


def test_a_way_back_has_the_sentences_again(empty_url: str) -> None:
    migrate.upgrade(empty_url, BEFORE)
    engine = engines.make_engine(engines.parse(empty_url), write=True)
    with engine.begin() as connection:
        old(connection)
    migrate.upgrade(empty_url)
    migrate.downgrade(empty_url, BEFORE)
    with engine.begin() as connection:
        metadata = MetaData()
        metadata.reflect(connection)
        events = metadata.tables["job_event"]
        found = connection.execute(select(events.c.kind, events.c.message).order_by(events.c.seq)).all()
        assert [tuple(each) for each in found] == list(EVENTS.items())
    engine.dispose()
