"""Use and cost, as the stand-in service has them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

Json = dict[str, Any]
OWNERS = (
    ("red", "ann", "job", "", 40, 0, 0),
    ("red", "bob", "job", "a100", 12, 3, 1),
    ("blue", "<b>eve</b>", "notebook", "", 90, 0, 0),
)


def line(core_h: float = 0.0, gpu_h: float = 0.0, reported: float = 0.0, **keys: str) -> Json:
    """Make a line with so many core-hours, of which a third was used and a third idle; this part of both is only reported."""
    fields = ("day", "month", "tenant", "user", "work", "name", "gpu_kind")
    core, memory = core_h * 3600, core_h * 7200
    return {
        **{field: keys.get(field) for field in fields},
        "core_s": core,
        "core_used_s": core / 3,
        "core_idle_s": core / 3,
        "core_unmeasured_s": core / 3,
        "core_reported_s": core * 2 / 3 * reported,
        "core_unknown_s": 0.0,
        "memory_gib_s": memory,
        "memory_used_gib_s": memory / 2,
        "memory_idle_gib_s": memory / 2,
        "memory_unmeasured_gib_s": 0.0,
        "memory_reported_gib_s": memory * reported,
        "memory_unknown_gib_s": 0.0,
        "gpu_s": gpu_h * 3600,
        "storage_gib_days": core_h / 5,
        "cost": f"{core_h * 0.05 + gpu_h * 2:.6f}",
    }


class FrontAccounting:
    """Lines of a month; `empty`: nobody held anything, `measured`: all use was measured, `older`: none is known to be; not `priced`: without a price list."""

    def __init__(self) -> None:
        self.empty = self.measured = self.older = False
        self.priced = True

    def lines(self, query: Json) -> Json:
        """Answer a question."""
        first = date(2031, 2, 1)
        by = str(query.get("by", "")).split(",")
        days = [first + timedelta(days=number) for number in range(28)]
        if "day" in by:
            lines = [line(5.0 + day.day, day=day.isoformat()) for day in days if day.day % 7]
        else:
            keys = ("tenant", "user", "work", "gpu_kind")
            lines = [
                line(*one[4:], **{key: one[keys.index(key)] for key in by if key in keys}) for one in OWNERS
            ]
        lines = [] if self.empty else [self._of_source(one) for one in lines]
        total = line(sum(one["core_s"] for one in lines) / 3600, sum(one["gpu_s"] for one in lines) / 3600)
        total |= {name: sum(one[name] for one in lines) for name in total if "_reported_" in name}
        total |= {name: sum(one[name] for one in lines) for name in total if "_unknown_" in name}
        return {
            "since": days[0].isoformat(),
            "until": (days[-1] + timedelta(days=1)).isoformat(),
            "at": datetime(2031, 3, 1, tzinfo=UTC).isoformat(),
            "currency": "EUR" if self.priced else None,
            "priced_since": "2031-01-01" if self.priced else None,
            "names_since": "2031-01-01",
            "recorded_since": "2031-01-01",
            "total": total,
            "nodes": line(900.0, 90.0),
            "free": line(700.0, 87.0),
            "platform": line(60.0),
            "lines": lines,
            "next": None,
        }

    def _of_source(self, one: Json) -> Json:
        named = {name: name.replace("_reported_", "_unknown_") for name in one if "_reported_" in name}
        for reported, unknown in named.items():
            measured = (
                one[reported.replace("_reported_", "_used_")] + one[reported.replace("_reported_", "_idle_")]
            )
            one |= {unknown: measured if self.older else 0.0}
            one |= {reported: 0.0 if self.measured or self.older else one[reported]}
        return one

    def prices(self) -> Json:
        """Answer with the price list."""
        period = {
            "begins": "2031-01-01",
            "ends": None,
            "core_hour": "0.05",
            "gib_hour": "0",
            "gib_month": "0",
        }
        return {"currency": "EUR", "periods": [{**period, "gpu_hour": {"*": "2"}}]}

    def budgets(self) -> list[Json]:
        """Answer with a budget that is nearly spent, one that is, and one that nothing is counted for."""
        return [
            budget("red", "500", "412.250000", 82.4, "530.100000", [80]),
            budget("blue", "200", "231.500000", 115.7, "260.000000", [80, 100], stopped=True),
            {
                **budget("org", "1000", "0", 0.0, None, []),
                "spent": None,
                "percent": None,
                "uncounted": "Nothing is counted: this hub has no price list.",
            },
        ]


def budget(
    tenant: str,
    amount: str,
    spent: str,
    percent: float,
    forecast: str | None,
    reached: list[int],
    *,
    stopped: bool = False,
) -> Json:
    """Make a budget of a month."""
    return {
        "tenant": tenant,
        "amount": amount,
        "currency": "EUR",
        "levels": [80, 100],
        "stop": stopped,
        "begins": None,
        "ends": None,
        "since": "2031-03-01",
        "until": "2031-04-01",
        "spent": spent,
        "percent": percent,
        "forecast": forecast,
        "reached": reached,
        "stopped": stopped,
        "uncounted": None,
    }
