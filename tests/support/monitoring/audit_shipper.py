"""Ships the audit log of a database until it is killed: `python audit_shipper.py DATABASE TRANSPORT HOST PORT FILE`."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from mlp_hub.service.audit.shipping import AuditShipping
from mlp_hub.service.config import AuditPolicy, SyslogReceiver
from mlp_hub.store import Database


async def main(database: str, transport: str, host: str, port: str, file: str) -> None:
    """Ship for ever."""
    receiver = SyslogReceiver(transport, host, int(port))  # type: ignore[arg-type]
    policy = AuditPolicy(ship_syslog=receiver, ship_file=Path(file), ship_poll_s=0.02, ship_retry_s=0.05)
    AuditShipping(Database(database), time.time, policy).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
