"""Cost of a job before it is submitted, and of a run until now: by the price list, and only where there is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from mlp_api.jobs import jobs as api
from mlp_hub.domain.accounting.days import month_of
from mlp_hub.domain.accounting.prices import PriceList, PricePeriod, money
from mlp_hub.domain.accounting.spans import NOTHING_HELD, HeldSums, LedgerSpan
from mlp_hub.domain.jobs.job import FINAL, Job, JobSpec
from mlp_hub.domain.resources import MILLI, Pairs, Resources
from mlp_hub.domain.workload.workload import JOB
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.accounting.rollup import NAMES_DAYS
from mlp_hub.service.accounting.sums import PricedSum, cost_of, days_within_months, live_sums
from mlp_hub.store.repos.workload.accounting import day_at
from mlp_hub.store.tx import Tx

HOUR_MS = 3600 * MILLI
"""Given: milliseconds of an hour."""
RUNS_SINCE = "accounting.runs_since"
"""Contract: key of the setting with the time since which sums of runs are kept; without it, always."""
UNKNOWN = api.JobCost(currency=None, cost=None, per_hour=None, final=False)


def offered(
    prices: PriceList, spec: JobSpec, nodes: Sequence[NodeInfo], today: int
) -> api.OfferedCost | None:
    """Return the cost of a job of this shape in an hour, and at most until its time limit; None without prices today.

    GPUs of any kind cost from the price of the cheapest kind of the nodes to that of the dearest one.
    """
    price = _price_on(prices, today)
    if price is None:
        return None
    kinds = sorted({node.gpu_kind or "" for node in nodes if node.capacity.gpu}) or [""]
    least = min(_per_hour(price, spec.per_worker * spec.ranks_min, kind, today) for kind in kinds)
    most = max(_per_hour(price, spec.per_worker * spec.ranks_max, kind, today) for kind in kinds)
    limit = spec.time_limit
    return api.OfferedCost(
        currency=prices.currency,
        per_hour=money(least),
        per_hour_most=money(most),
        at_most=None if limit is None else money(most * Fraction(limit) / 3600),
    )


def of_job(tx: Tx, job: Job, prices: PriceList, now: float) -> api.JobCost:
    """Return what a run has cost until now: all that it held, in each of its sizes and attempts."""
    first, today = day_at(job.submitted_at), day_at(now)
    if first < today - NAMES_DAYS or job.submitted_at < (tx.settings.get(RUNS_SINCE) or 0.0):
        return UNKNOWN
    spec, parts = job.spec, list(prices.parts(first, today + 1))
    if any(price is None for _, _, price in parts):
        return UNKNOWN
    held = [span for span in tx.accounting.held_now(now, spec.tenant, spec.user) if span.run == job.uid]
    ended = [span for span in tx.accounting.spans_of(spec.tenant, spec.user) if span.run == job.uid]

    def stored() -> Iterator[PricedSum]:
        where = {"tenant": spec.tenant, "user": spec.user, "work": JOB, "name": job.uid}
        for since, until, price in parts:
            for low, high in days_within_months(since, until):
                for day, keys, sums in tx.accounting.sums("run", low, high, ("gpu_kind",), where=where):
                    yield day, month_of(day), keys, sums, price

    total = cost_of(stored()).plus(cost_of(live_sums([*ended, *held], parts)))
    price = _price_on(prices, today)
    per_hour = (
        None if price is None or not held else sum((_rate(price, span, today) for span in held), Fraction())
    )
    return api.JobCost(
        currency=prices.currency,
        cost=money(total.total),
        per_hour=None if per_hour is None else money(per_hour),
        final=job.phase in FINAL and not held,
    )


def _price_on(prices: PriceList, day: int) -> PricePeriod | None:
    return next((price for _, _, price in prices.parts(day, day + 1)), None)


def _per_hour(price: PricePeriod, amount: Resources, kind: str, day: int) -> Fraction:
    """Return the cost of an amount held for an hour; GPUs without a kind are of this one."""
    return _of_hour(price, (amount.cpu, amount.gpu, amount.ram), amount.kinds, kind, day)


def _rate(price: PricePeriod, span: LedgerSpan, day: int) -> Fraction:
    return _of_hour(price, (span.cpu, span.gpu, span.ram), span.kinds, "", day)


def _of_hour(price: PricePeriod, amount: tuple[int, int, int], named: Pairs, kind: str, day: int) -> Fraction:
    cpu, gpu, ram = amount
    held = [(kind, HeldSums(cpu * HOUR_MS, (gpu - sum(n for _, n in named)) * HOUR_MS, ram * HOUR_MS))]
    held += [(one, NOTHING_HELD._replace(gpu=n * HOUR_MS)) for one, n in named]
    return sum((price.cost(sums, of, month_of(day)).total for of, sums in held), Fraction())
