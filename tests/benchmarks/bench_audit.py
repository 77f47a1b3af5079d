"""The audit log: appends per second with its chain of hashes beside without, and a check of a million entries."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path
from unittest.mock import patch

from bench_common import Context, Figure
from mlp_hub.domain.audit_chain import NO_HASH, entry_digest, link_hash
from mlp_hub.service.audit.heads import PublishedHead
from mlp_hub.service.audit.verify import verify
from mlp_hub.store import Database
from mlp_hub.store.repos.audit_chain import AuditChain
from mlp_hub.store.tx import Tx

NAME = "audit"
ABOUT = (
    "a SQLite file with 20,000 entries; 2,000 changes, each a transaction of its own with one entry, 32 on their way at a time: with the chain "
    "and without it in turn, 7 times, medians; then a log of 1,000,000 entries with 1,000 checkpoints, checked as mlp-hub audit --verify does"
)
COMMAND = "make bench ONLY=audit"
BEFORE, CHANGES, ABREAST, ROUNDS = 20_000, 2_000, 32, 7
ENTRIES, EVERY, LOT = 1_000_000, 1_000, 20_000
WANTED_RATIO, WANTED_S = 0.9, 20.0
_INSERT = "INSERT INTO audit (id, time, actor, action, object, tenant, detail) VALUES (?, ?, ?, ?, ?, ?, ?)"
_LINK = "INSERT INTO audit_link (seq, entry, again, time, digest, hash) VALUES (?, ?, ?, ?, ?, ?)"


def run(context: Context) -> list[Figure]:
    """Measure appends, then the check."""
    return [*_appends(context.tmp / "appends"), *_check(context.tmp / "check")]


def _appends(root: Path) -> list[Figure]:
    root.mkdir()
    dbs = {}
    for kind in ("with", "without"):
        dbs[kind] = Database(str(root / f"{kind}.sqlite"))
        dbs[kind].create_schema()
        _fill(dbs[kind], BEFORE)
    took: dict[str, list[float]] = {kind: [] for kind in dbs}

    async def all_rounds() -> None:
        for number in range(ROUNDS):
            # each is first as often as the other
            for kind in list(dbs)[:: 1 if number % 2 else -1]:
                if kind == "with":
                    took[kind].append(await _round(dbs[kind], number))
                else:
                    with patch.object(AuditChain, "append", lambda *_args, **_kwargs: None):
                        took[kind].append(await _round(dbs[kind], number))

    asyncio.run(all_rounds())
    for db in dbs.values():
        db.close()
    rates = {kind: CHANGES / statistics.median(seconds) for kind, seconds in took.items()}
    ratio = statistics.median(slow / fast for fast, slow in zip(took["with"], took["without"], strict=True))
    return [
        Figure(
            "audit entries appended per second, with the chain",
            rates["with"],
            "1/s",
            rates["without"],
            "without the chain",
            f"share, median of rounds: {ratio:.2f}; wanted: {WANTED_RATIO}",
            COMMAND,
        )
    ]


async def _round(db: Database, number: int) -> float:
    changes = iter(range(CHANGES))

    async def one_after_another() -> None:
        for n in changes:

            def work(tx: Tx, n: int = n) -> None:
                before, after = {"cpu": 3.0, "ram": 2048}, {"cpu": 4.0, "ram": n}
                tx.audit.add(
                    time.time(),
                    f"user{n % 50}",
                    "tenant.update",
                    f"t{number}-{n}",
                    tenant="red",
                    detail={"before": before, "after": after},
                )

            await db.write(work)

    begun = time.perf_counter()
    await asyncio.gather(*(one_after_another() for _ in range(ABREAST)))
    return time.perf_counter() - begun


def _fill(db: Database, entries: int) -> list[PublishedHead]:
    """Store entries with their chain, as if a hub had written them for a long time; return the heads."""
    heads: list[PublishedHead] = []
    seq, made = 0, link_hash(NO_HASH, 0, 0, False, 1.0, b"\1" * 32)
    links: list[tuple[object, ...]] = [(0, 0, False, 1.0, b"\1" * 32, made)]
    for start in range(1, entries + 1, LOT):
        rows = []
        for n in range(start, min(start + LOT, entries + 1)):
            detail = f'{{"before":{{"cpu":3.0,"ram":2048}},"after":{{"cpu":4.0,"ram":{n}}}}}'
            row = (
                n,
                n * 60.0,
                f"user{n % 50}",
                "tenant.update",
                f"tenant-{n % 200}",
                f"tenant-{n % 200}",
                detail,
            )
            rows.append(row)
            texts = (one.encode() for one in row[2:])
            digest = entry_digest(n, row[1], *texts)
            seq, made = seq + 1, link_hash(made, seq + 1, n, False, None, digest)
            links.append((seq, n, False, None, digest, made))
            if n % EVERY == 0:
                seq, made = seq + 1, link_hash(made, seq + 1, n, False, n * 60.0, NO_HASH)
                links.append((seq, n, False, n * 60.0, NO_HASH, made))
                heads.append(PublishedHead(seq, n, made, n * 60.0))
        with db.begin() as tx:
            tx.connection.exec_driver_sql(_INSERT, rows)
            tx.connection.exec_driver_sql(_LINK, links)
        links = []
    return heads


def _check(root: Path) -> list[Figure]:
    root.mkdir()
    db = Database(str(root / "mlp.sqlite"))
    db.create_schema()
    heads = _fill(db, ENTRIES)
    begun, busy = time.perf_counter(), time.process_time()
    report = db.read_now(lambda tx: verify(tx, heads, time.time()))
    took, busy = time.perf_counter() - begun, time.process_time() - busy
    if not report.sound or report.entries != ENTRIES or report.agreed is None:
        raise RuntimeError(f"the check went wrong: {report.breaks[:3]}")
    db.close()
    return [
        Figure(
            "check of 1,000,000 audit entries",
            took,
            "s",
            WANTED_S,
            "target, at most",
            f"{busy:.1f} s of a core; {report.links} links, {len(heads)} heads outside",
            COMMAND,
        )
    ]
