"""Notebook servers that are held and not used: the countdown to their end. Pure.

Time is counted in seconds that passed, never by the wall clock: a clock that jumps ends no server. A server counts down only
while it reports that it is idle, so a server whose reports are missing is never ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlp_hub.domain.workload.idle_policy import IdleWorkPolicy


@dataclass(frozen=True, slots=True)
class IdleServer:
    """Countdown of a notebook server. `began` tells it from an earlier one of the same name.

    `idle_s` is how long it was not used when it reported last. `left_s` is the rest of its countdown, None without one. `kept_s` is how long its
    owner keeps it yet. All are seconds.
    """

    user: str
    server: str
    tenant: str
    began: float
    idle_s: float = 0.0
    left_s: float | None = None
    kept_s: float = 0.0

    @property
    def due(self) -> bool:
        """Whether its countdown is over."""
        return self.left_s is not None and self.left_s <= 0

    def after(self, passed: float, idle_s: float | None, policy: IdleWorkPolicy | None) -> IdleServer:
        """Return it `passed` seconds later; `idle_s` is as it reports now, None if it did not report lately.

        A countdown stops where the server is used, where its owner keeps it, and where the team has no policy. It pauses while
        reports are missing.
        """
        kept = max(0.0, self.kept_s - passed)
        if policy is None:
            return replace(self, kept_s=kept, left_s=None, idle_s=self.idle_s if idle_s is None else idle_s)
        if idle_s is None:
            return replace(self, kept_s=kept)
        if kept > 0 or idle_s < policy.after_s:
            return replace(self, kept_s=kept, left_s=None, idle_s=idle_s)
        left = float(policy.grace_s) if self.left_s is None else max(0.0, self.left_s - passed)
        return replace(self, kept_s=kept, left_s=left, idle_s=idle_s)
