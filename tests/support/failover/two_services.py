"""The two services of one hub, each asked at a socket of its own."""

from __future__ import annotations

from typing import Any

from mlp_hub.cli.http import request
from support.hubs.live_hub import LiveHub
from support.waiting import wait_for

API = "/services/mlp/api/v1"


class TwoServices:
    """Which of them leads, and which process each is."""

    def __init__(self, hub: LiveHub) -> None:
        self.hub = hub

    def pid(self, number: int) -> int:
        return self.hub.pid("service" if number == 1 else f"service-{number}")

    def ready(self, number: int) -> dict[str, Any]:
        """Return what one of them says of itself; nothing where it does not answer."""
        own = self.hub.home / "run" / "private" / f"mlp-{number}.sock"
        answer = request(own, "GET", f"{API}/ready", timeout=5)
        found: dict[str, Any] = answer.json() if answer.status in (200, 503) else {}
        return found

    def settled(self) -> int:
        """Wait until one leads and the other stands by, and knows for whom; return who leads."""

        def leader() -> int | None:
            told = [self.ready(number) for number in (1, 2)]
            leading = [number for number, each in enumerate(told, 1) if each.get("ready")]
            if len(leading) != 1 or len({each.get("leader") for each in told}) != 1:
                return None
            return leading[0] if self.pid(3 - leading[0]) else None

        return wait_for(leader)  # type: ignore[no-any-return]
