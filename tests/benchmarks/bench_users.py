"""Ten thousand accounts: listing, finding, approving and making one, through REST."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing

from bench_common import Context, Figure, median_of, quantile
from support.hubs.live_hub import LiveHub

NAME = "users"
ABOUT = (
    "10,000 accounts written into both databases, 150 of them waiting; then REST as an administrator: a page of 100 at "
    "the beginning and at the end, a search, those who wait, approvals one after the other, a new account"
)
USERS = 10_000
WAITING = 150
RUNS = 50
TARGET = "target 20 ms"


def run(context: Context) -> list[Figure]:
    hub = context.hub
    hub.token("admin")
    _fill(hub)
    last = f"/users?limit=100&cursor=crowd{USERS - 101:05d}"
    waiting = [u["username"] for u in hub.ok("GET", f"/users?waiting=true&limit={WAITING}")]
    approvals = iter(waiting)
    numbers = iter(range(RUNS))

    def make() -> None:
        hub.run("user", "add", f"made{next(numbers)}", "--password-stdin", stdin="correct horse battery\n")

    return [
        _figure("users: the first page of 100", lambda: hub.ok("GET", "/users?limit=100")),
        _figure("users: the last page of 100", lambda: hub.ok("GET", last)),
        _figure("users: a search that finds 100", lambda: hub.ok("GET", "/users?search=42&limit=100")),
        _figure("users: those who wait", lambda: hub.ok("GET", f"/users?waiting=true&limit={WAITING}")),
        _figure("users: one account", lambda: hub.ok("GET", f"/users/crowd{USERS // 2:05d}")),
        _figure(
            "users: approve", lambda: hub.ok("PUT", f"/users/{next(approvals)}:approve"), "one after another"
        ),
        _figure("users: tenants with their members' numbers", lambda: hub.ok("GET", "/tenants")),
        _figure(
            "mlp-hub user add, whole command", make, "of which bcrypt some 220 ms, Python's start 150 ms", 5
        ),
    ]


def _figure(name: str, work: Callable[[], object], note: str = "", runs: int = RUNS) -> Figure:
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1000)
    note = f"p95 {quantile(took, 0.95):.1f} ms; {note or TARGET}"
    return Figure(name, median_of(took), "ms, p50", note=note, command="make bench ONLY=users")


def _fill(hub: LiveHub) -> None:
    """Write the accounts as sign-ups and approvals would; a hash of each would take half an hour."""
    db = hub.home / "db"
    now = "2031-01-01 00:00:00.000000"
    names = [(n, f"crowd{n:05d}", n < USERS - WAITING) for n in range(USERS)]
    with closing(sqlite3.connect(db / "jupyterhub.sqlite", timeout=30)) as found, found:
        first = found.execute("SELECT coalesce(max(id), 0) + 1 FROM users").fetchone()[0]
        role = found.execute("SELECT id FROM roles WHERE name = 'user'").fetchone()[0]
        found.executemany(
            "INSERT INTO users_info (username, password, is_authorized) VALUES (?, x'00', ?)",
            [(name, is_in) for _, name, is_in in names],
        )
        found.executemany("INSERT INTO mlp_accounts VALUES (?, ?)", [(name, now) for _, name, _ in names])
        known = [(first + n, name) for n, name, is_in in names if is_in]
        found.executemany(
            "INSERT INTO users (id, name, admin, created, cookie_id) VALUES (?, ?, 0, ?, hex(randomblob(16)))",
            [(n, name, now) for n, name in known],
        )
        found.executemany(
            "INSERT INTO user_role_map (user_id, role_id, managed_by_auth) VALUES (?, ?, 0)",
            [(n, role) for n, _ in known],
        )
    with closing(sqlite3.connect(db / "mlp.sqlite", timeout=30)) as found, found:
        first = found.execute("SELECT coalesce(max(number), 0) + 1 FROM user").fetchone()[0]
        found.executemany(
            "INSERT INTO user (name, number, default_tenant, created_at) VALUES (?, ?, 'default', 0)",
            [(name, first + n) for n, name, is_in in names if is_in],
        )
