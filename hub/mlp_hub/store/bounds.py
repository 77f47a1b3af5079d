"""How long PostgreSQL may keep anybody waiting: for a connection, a lock, a statement, an answer.

Whoever hangs or is cut off within a transaction keeps its locks only as long as these say. The server ends it by its own
clock, and the client gives up by the client's, whichever of them is still there.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Engine, event
from sqlalchemy.engine import URL

E = TypeVar("E", bound=Engine | type[Engine])

CONNECT_S = 5
"""Safety: seconds for one address of PostgreSQL to take a connection."""
SILENT_S = 10
"""Safety: seconds until a connection whose packets nobody acknowledges is given up, on either side."""
_KEEP = {"idle": 5, "interval": 2, "count": 3}
"""Safety: seconds without a packet until the other end is asked, seconds between such questions, and how many."""
ANSWER_S = 5
"""Safety: seconds that an answer may take beyond the time limit of its statement, before the client gives up."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds that a session may wait for a lock, work on a statement, and do nothing within a transaction. 0: no limit."""

    lock_s: int
    statement_s: int
    idle_s: int

    def parameters(self) -> dict[str, str]:
        """Return PostgreSQL's parameters of a session, by name."""
        return {
            "lock_timeout": f"{self.lock_s}s",
            "statement_timeout": f"{self.statement_s}s",
            "idle_in_transaction_session_timeout": f"{self.idle_s}s",
            "tcp_keepalives_idle": str(_KEEP["idle"]),
            "tcp_keepalives_interval": str(_KEEP["interval"]),
            "tcp_keepalives_count": str(_KEEP["count"]),
            "tcp_user_timeout": str(SILENT_S * 1000),
            "client_connection_check_interval": "2s",
        }


WRITER = Bounds(lock_s=3, statement_s=15, idle_s=8)
"""Safety: of transactions that exclude all other writers: no statement of them is long."""
PATIENT_LOCK_S = 12
"""Safety: of commands, which nobody takes over: they outwait a holder that hangs (`WRITER.idle_s`), within their statement's limit."""
READER = Bounds(lock_s=3, statement_s=30, idle_s=120)
"""Safety: of transactions that only read, and keep nobody waiting."""
MIGRATION = Bounds(lock_s=60, statement_s=0, idle_s=300)
"""Safety: of changes of the tables, which take as long as there are rows."""
BESIDE = Bounds(lock_s=1, statement_s=2, idle_s=8)
"""Safety: of changes of tables that services work on meanwhile: less than these wait for a lock (`WRITER.lock_s`)."""

HUB = Bounds(lock_s=3, statement_s=30, idle_s=0)
"""Safety: of JupyterHub, which leaves transactions open while it waits for requests."""


def bounded(url: URL) -> URL:
    """Bound how long the client's side of a connection may be silent, except where the URL does."""
    wanted = {
        "connect_timeout": str(CONNECT_S),
        "keepalives": "1",
        **{f"keepalives_{name}": str(value) for name, value in _KEEP.items()},
        "tcp_user_timeout": str(SILENT_S * 1000),
    }
    return url.update_query_dict({key: value for key, value in wanted.items() if key not in url.query})


def bind(engine: E, bounds: Bounds) -> E:
    """Have each PostgreSQL connection of an engine, or of all engines where the class is given, keep these bounds."""
    give_up_s = bounds.statement_s + ANSWER_S if bounds.statement_s else None

    @event.listens_for(engine, "do_connect")
    def _connect(dialect: Any, _record: Any, arguments: Any, named: Any) -> Any:
        if dialect.driver != "psycopg":
            return None
        connection = _patient(give_up_s).connect(*arguments, **named)
        try:
            set_bounds(connection, bounds)
        except BaseException:
            connection.close()
            raise
        return connection

    return engine


def bind_all(bounds: Bounds) -> None:
    """Have each PostgreSQL engine that this process makes from now on keep these bounds."""
    bind(Engine, bounds)


def set_bounds(connection: Any, bounds: Bounds) -> None:
    """Set what this server knows of the bounds for the rest of the session; `connection` is the driver's.

    Not by options of the connection: a pooler in between refuses those.
    """
    wanted = bounds.parameters()
    rows = ", ".join(["(%s, %s)"] * len(wanted))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config(p.name, w.value, false) FROM pg_settings p "  # noqa: S608 - placeholders only
            f"JOIN (VALUES {rows}) AS w(name, value) ON p.name = w.name",
            [part for pair in wanted.items() for part in pair],
        )
    connection.commit()


def _patient(give_up_s: float | None) -> Any:
    """Return the driver's class of connections, with an end to its patience.

    A server whose machine still acknowledges packets, or a proxy between, may never answer; no setting of TCP ends that.
    """
    import psycopg  # noqa: PLC0415 - only where PostgreSQL is used

    class PatientConnection(psycopg.Connection[Any]):
        def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
            limit = give_up_s if timeout is None else timeout
            try:
                return super().wait(gen, interval, limit)
            except psycopg.errors._WaitTimeout as error:  # noqa: SLF001 - what the driver raises at its time limit
                with contextlib.suppress(psycopg.Error):
                    self.pgconn.finish()
                raise psycopg.OperationalError(f"PostgreSQL has not answered for {limit:g} s") from error

    return PatientConnection
