"""Why a job waits for quota, in numbers that add up: what may be used is what is in use, what others hold and what is free."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.model import Verdict
from mlp_hub.scheduler.queues import Entry
from mlp_hub.scheduler.state import State
from mlp_hub.scheduler.vectors import part
from mlp_hub.scheduler.words import in_units, listing, number, unit, window_words

Told = dict[tuple[object, ...], str]
"""What was said already, by what it depends on: many ask for the same in one breath."""


def waits_for_quota(state: State, entry: Entry, told: Told) -> Verdict:
    """Say that the tenant's quota is used up: how much there is, who has it, what is asked for."""
    tenant = entry.cls.tenant
    quotas = state.quotas
    asked = entry.cls.vector
    over = quotas.excess(tenant, asked)
    if not over and entry.cls.demand.gpu:
        # in all it would fit: it is the kinds of GPU whose quota is used up
        for kind in state.index.kinds():
            over += [(f"gpu:{kind}", asked["gpu"], quotas.available(tenant, f"gpu:{kind}") or 0)]
    numbers: dict[str, float] = {}
    sentences = []
    for dimension, ask, available in over:
        standing = _Standing(state, tenant, dimension, available)
        numbers |= standing.numbers() | {f"{dimension}_asked": in_units(dimension, ask)}
        key = ("quota", tenant, dimension)
        if key not in told:
            told[key] = standing.sentence()
        sentences.append(f"{told[key]}; this job asks for {number(dimension, ask)}")
    if not sentences:
        # in the same plan in which it was tried somebody was stopped
        sentences.append(
            f"{tenant} had no quota left; some has come free, and the job is tried again at once"
        )
    holders = tuple(state.running.of_tenant.get(tenant, ()))
    return Verdict(Reason.WAITING_FOR_QUOTA, ". ".join(sentences), numbers, holders)


class _Standing:
    """How a tenant stands in one dimension. What it may use is what it uses, what others hold of it and what is free."""

    def __init__(self, state: State, tenant: str, dimension: str, available: int) -> None:
        quotas = state.quotas
        self._state, self._tenant, self._dimension = state, tenant, dimension
        self.available = available
        self.used = quotas.used(tenant).get(dimension, 0)
        self.limit = quotas.limit(tenant, dimension) or 0
        self.nominal = quotas.nominal(tenant, dimension)
        # of what it could hold with all others idle, what others hold now
        self.others = max(0, self.limit - self.used - available)
        own = self.limit if self.nominal is None else min(self.nominal, self.limit)
        self.borrowers = [t for t in state.borrowers(quotas.root(tenant), dimension) if t != tenant]
        lent = min(self.others, max(0, own - self.used - available))
        self.lent = lent if self.borrowers and self.nominal is not None else 0
        self.borrowed = 0 if self.nominal is None else max(0, min(self.used, self.limit) - self.nominal)
        self.beyond = max(0, self.used - self.limit)  # a quota was lowered below what is in use

    def numbers(self) -> dict[str, float]:
        d = self._dimension
        found = {"limit": self.limit, "inuse": self.used, "free": self.available}
        if self.nominal is not None and self.nominal < self.limit:
            found["nominal"] = self.nominal
        optional = {
            "others": self.others,
            "lent": self.lent,
            "borrowed": self.borrowed,
            "beyond": self.beyond,
        }
        found |= {key: value for key, value in optional.items() if value}
        return {f"{d}_{key}": in_units(d, value) for key, value in found.items()}

    def sentence(self) -> str:
        return f"{self._may()}; {self._in_use()}{self._of_others()}{self._free()}{self._kept()}"

    def _number(self, value: int) -> str:
        return number(self._dimension, value)

    def _may(self) -> str:
        may = f"{self._tenant} may use {self._number(self.limit)} {unit(self._dimension)}"
        if self.nominal is None or self.nominal >= self.limit:
            return may
        rest = self._number(self.limit - self.nominal)
        return f"{may}, {self._number(self.nominal)} of its own and {rest} when others leave it idle"

    def _in_use(self) -> str:
        who = users_of(self._state, self._dimension, self._tenant)
        borrowed = f", {self._number(self.borrowed)} of it borrowed" if self.borrowed else ""
        beyond = f", {self._number(self.beyond)} of it beyond the quota" if self.beyond else ""
        return f"{self._number(self.used)} in use{f' by {who}' if who else ''}{borrowed}{beyond}"

    def _of_others(self) -> str:
        if not self.others:
            return ""
        who = listing(self._holders()) or "others"
        lent = ""
        if self.lent:
            lent = f", {self._number(self.lent)} of it lent out of the quota of {self._tenant}"
            lent += f" to {listing(self.borrowers)}" if len(self._holders()) > 1 else ""
        return f"; {self._number(self.others)} held by {who}{lent}"

    def _holders(self) -> Sequence[str]:
        quotas = self._state.quotas
        # while something is kept free for somebody, what all tenants hold of the nodes counts
        roots = [quotas.root(self._tenant)]
        if quotas.reserves:
            roots = list(dict.fromkeys(quotas.root(t) for t in quotas))
        found = [t for root in roots for t in self._state.holders(root, self._dimension)]
        return [t for t in found if t != self._tenant]

    def _free(self) -> str:
        if not self.others and not self.available:
            return ""
        return f"; {self._number(self.available)} free now"

    def _kept(self) -> str:
        quotas, d = self._state.quotas, self._dimension
        kept = listing(
            f"{number(d, n)} for {t}{self._window(t)}" for t, n in quotas.kept_free(d, self._tenant)
        )
        return f"; of what the nodes have, {kept} is kept free" if kept else ""

    def _window(self, tenant: str) -> str:
        """Name the open windows by which something is kept free for a tenant."""
        open_ = self._state.bookings.open_at(self._state.now, tenant, self._dimension)
        return f" by {listing(window_words(b) for b in open_)}" if open_ else ""


def users_of(state: State, dimension: str, tenant: str) -> str:
    """Name who uses a dimension of a tenant: "bob's notebook (0.2) and job digits of bob (2)"."""
    parts = []
    queue = state.queues[tenant].tenant
    others = part(queue.used, dimension)
    if others:
        parts.append(f"{listing(queue.others) or 'others'} ({number(dimension, others)})")
    parts += [
        f"job {h.run.job.name} of {h.run.job.user} ({number(dimension, h.vector[dimension])})"
        for h in state.running.of_tenant.get(tenant, {}).values()
        if h.vector.get(dimension)
    ]
    return listing(parts)
