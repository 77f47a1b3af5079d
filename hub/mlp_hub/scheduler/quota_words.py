"""Why a job waits for quota, in numbers that add up: what may be used is what is in use, what others hold and what is free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.fitting import stays_inside
from mlp_hub.scheduler.model import Verdict, WaitingJob
from mlp_hub.scheduler.queues import Entry, JobClass
from mlp_hub.scheduler.state import State
from mlp_hub.scheduler.vectors import Vector, part
from mlp_hub.scheduler.words import in_units, listing, number, unit, when, window_words


@dataclass(frozen=True, slots=True)
class Told:
    """What is told in one breath, as of `now`: many are told the same, so what was said is kept by what it depends on."""

    now: float
    texts: dict[tuple[object, ...], str] = field(default_factory=dict)

    def ripe_words(self, state: State, cls: JobClass, of: str = "") -> str:
        """Say when others may be stopped for a class, where they only have to have run long enough; else nothing."""
        if cls.ripe is None:
            return ""
        first = f", the first {when(cls.ripe, self.now)}" if cls.ripe >= self.now + 0.5 else ""
        least = f"{state.policy.min_run_s:g} s"
        return f"jobs{of} may be stopped for it once they have run for {least}{first}"


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
    sentences: list[str] = []
    comes = ""
    for dimension, ask, available in over:
        standing = _Standing(state, tenant, dimension, available)
        numbers |= standing.numbers() | {f"{dimension}_asked": in_units(dimension, ask)}
        key = ("quota", tenant, dimension)
        if key not in told.texts:
            told.texts[key] = standing.sentence()
        comes = comes or standing.comes_back(entry.cls, told)
        sentences.append(f"{told.texts[key]}; this job asks for {number(dimension, ask)}")
    if comes:
        sentences[-1] += f"; {comes}"
    if (held := held_for_good(state, entry)) is not None:
        sentences.append(held[0].upper() + held[1:])
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
        self._held = [(t, quotas.used(t)[dimension]) for t in self._holders()] if self.others else []

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
        lent = ""
        if self.lent:
            lent = f", {self._number(self.lent)} of it lent out of the quota of {self._tenant}"
            lent += f" to {listing(self.borrowers)}" if len(self._held) > 1 else ""
        return f"; {self._taken()}{lent}"

    def _taken(self) -> str:
        """Say who has what it cannot have; they may hold more besides, which it could not have had."""
        others, whole = self._number(self.others), sum(amount for _, amount in self._held)
        if whole == self.others:
            alone = len(self._held) == 1
            each = (t if alone else f"{t} ({self._number(amount)})" for t, amount in self._held)
            return f"{others} held by {listing(each)}"
        part_of = f"{others} of the {self._number(self.limit)} taken by"
        if not self._held:
            return f"{part_of} others"
        holds = "which holds" if len(self._held) == 1 else "which together hold"
        return f"{part_of} {listing(t for t, _ in self._held)}, {holds} {self._number(whole)}"

    def comes_back(self, cls: JobClass, told: Told) -> str:
        """Say from whom its own comes back and when, where it only has to wait until they have run long enough."""
        quotas = self._state.quotas
        if cls.ripe is None or not self.lent or not stays_inside(quotas, cls):
            return told.ripe_words(self._state, cls)
        ask = {self._dimension: cls.vector[self._dimension]}
        lends = [t for t in self.borrowers if quotas.may_reclaim(self._tenant, t, ask, ask)]
        if not lends:
            return told.ripe_words(self._state, cls)
        who = listing(lends)
        return (
            f"{self._tenant} takes back its own from {who}: {told.ripe_words(self._state, cls, f' of {who}')}"
        )

    def _holders(self) -> Iterable[str]:
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


def can_never_start(state: State, entry: Entry) -> Verdict:
    """Say that the quota is too small for it, even with all others idle; and with what it could start."""
    cls, job, quotas = entry.cls, entry.job, state.quotas
    over: dict[str, int] = {}
    for dimension, asked in cls.vector.items():
        limit = quotas.limit_of_quota(cls.tenant, dimension)
        if limit is not None and asked > limit:
            over[dimension] = limit
    what = listing(
        f"{cls.tenant} may use {number(d, limit)} {unit(d)} in all now and this job asks for {number(d, cls.vector[d])}"
        for d, limit in over.items()
    )
    fitting = most_workers(job, cls.vector, over)
    way = f"with --workers {fitting} it could" if fitting else "it could with less per rank"
    numbers = {f"{d}_limit": in_units(d, limit) for d, limit in over.items()}
    numbers |= {f"{d}_asked": in_units(d, cls.vector[d]) for d in over}
    return Verdict(
        Reason.EXCEEDS_MAX_QUOTA,
        f"{what}: it can never start under this quota; {way}, "
        f"or ask an administrator of the hub for more quota for {cls.tenant}",
        numbers,
    )


def held_for_good(state: State, entry: Entry) -> str | None:
    """Say that what its tenant holds besides jobs has to be given back first, whichever jobs end; None where it need not."""
    cls, tenant = entry.cls, state.queues[entry.cls.tenant].tenant
    left: dict[str, int] = {}
    for dimension, asked in cls.vector.items():
        limit, others = state.quotas.limit_of_quota(cls.tenant, dimension), part(tenant.used, dimension)
        if limit is not None and others and asked > limit - others:
            left[dimension] = max(0, limit - others)
    if not left:
        return None
    held = listing(f"{number(d, part(tenant.used, d))} {unit(d)}" for d in left)
    fitting = most_workers(entry.job, cls.vector, left)
    way = f"; with --workers {fitting} it could" if fitting else ""
    return f"it cannot start while {holding_words(tenant.others)} {held}{way}"


def holding_words(names: Sequence[str]) -> str:
    """Write who holds something besides jobs, with the verb: "ann's notebook holds"."""
    return f"{listing(names) or 'others than jobs'} {'holds' if len(names) == 1 else 'hold'}"


def most_workers(job: WaitingJob, asked: Vector, left: Vector) -> int:
    """Return with how many workers a gang that asks for so much would fit into what is left; 0: with none."""
    ranks = job.workers_min + job.ps
    return max(0, min(n * ranks // asked[d] for d, n in left.items()) - job.ps)


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
