"""What a server holds of the quota, on disk beside its run directory, so that no crash loses count.

The file is written before the step that it announces: a hub that dies in between knows afterwards what may be
held, and gives it back. All steps may be repeated.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from mlp_spawner.errors import ServiceRefused
from mlp_spawner.service import Amount, Service

ASK_EVERY_S = 2.0
"""Seconds between two tries while room is being made."""


@dataclass(frozen=True, slots=True)
class Holding:
    """The place of one server in the ledger."""

    file: Path
    key: str
    service: Service

    def read(self) -> tuple[str, Amount] | None:
        """Return (step, amount) of what may be held, or None."""
        try:
            data = json.loads(self.file.read_text())
            return data["step"], Amount(**data["amount"])
        except FileNotFoundError:
            return None

    def _write(self, step: str, amount: Amount) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps({"step": step, "key": self.key, "amount": asdict(amount)}))
        fresh.replace(self.file)

    async def take(
        self,
        user: str,
        holder: str,
        amount: Amount,
        *,
        patience_s: float = 0.0,
        waits: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Hold the amount for a while; raises ServiceRefused or ServiceUnreachable.

        While room is being made it is asked again, for `patience_s` at most: `waits` is told each time in how many
        seconds there may be room. Who gives up gives back what was set aside.
        """
        await self.give_back()
        self._write("tried", amount)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while True:
            try:
                await self.service.try_hold(self.key, user, holder, amount)
            except ServiceRefused as refused:
                after, waited = refused.retry_after, loop.time() - begun
                if after is None:
                    self.file.unlink(missing_ok=True)
                    raise
                if after > patience_s or waited > patience_s:
                    await self.give_back()
                    raise _in_vain(amount.tenant, after, waited) from refused
                waits(max(after - waited, 1.0))
                await asyncio.sleep(min(after, ASK_EVERY_S))
            else:
                return

    async def keep(self) -> None:
        """Hold for good what was taken."""
        found = self.read()
        if found is None:
            raise ServiceRefused(
                "what the server held was given back while it started; start it again", "WrongState"
            )
        self._write("confirmed", found[1])
        await self.service.confirm(self.key)

    async def give_back(self) -> None:
        """Give back what may be held; raises ServiceUnreachable, then it is owed and the file stays."""
        found = self.read()
        if found is None:
            return
        step, amount = found
        for way in ("release", "cancel") if step == "confirmed" else ("cancel", "release"):
            try:
                if way == "release":
                    await self.service.release(self.key, amount)
                else:
                    await self.service.cancel(self.key)
                break
            except ServiceRefused:
                # it stands the other way: its confirm never arrived, or did although no answer came
                continue
        self.file.unlink(missing_ok=True)


def _in_vain(tenant: str, after: float, waited: float) -> ServiceRefused:
    lent = f"others have borrowed what {tenant} may use"
    if waited < 1:
        return ServiceRefused(
            f"{lent}; it may be taken back in about {after:.0f} s, start the server again then",
            "WaitingForPreempted",
        )
    return ServiceRefused(
        f"{lent}, and it was not given back within {waited:.0f} s; start the server again later, or with less",
        "WaitingForPreempted",
    )
