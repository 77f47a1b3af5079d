"""The stand-in service's alerts and silences."""

from __future__ import annotations

from typing import Any

from support.front.shapes import when

Json = dict[str, Any]


def alert(number: int, rule: str, **change: Any) -> Json:
    """Return an alert that fires."""
    return {
        "id": number,
        "rule": rule,
        "severity": "warning",
        "state": "firing",
        "tenant": "",
        "labels": {},
        "summary": f"Summary of {rule}",
        "description": f"Description of {rule}",
        "meaning": f"Meaning of {rule}.",
        "value": "91%",
        "threshold": "80%",
        "below": False,
        "since": when(-900),
        "state_since": when(-300),
        "fired_at": when(-300),
        "resolved_at": None,
        "silence": None,
        "inhibited": False,
        **change,
    }


def silence(number: int, **change: Any) -> Json:
    """Return a silence of the platform."""
    return {
        "id": number,
        "rule": "MLPNodeCpuHigh",
        "tenant": "",
        "of_team": False,
        "reason": "the node is being tested",
        "until": when(7200),
        "made_by": "ann",
        "made_at": when(-60),
        **change,
    }


_TITLES = {
    "MLPNodeCpuHigh": "The processors of node … are busy",
    "MLPTenantOverQuota": "Team … holds more than its quota",
}


def rule(name: str, *, of_team: bool = False) -> Json:
    """Return a rule."""
    return {
        "name": name,
        "title": _TITLES[name],
        "severity": "warning",
        "of_team": of_team,
        "after_s": 600,
        "meaning": f"Meaning of {name}.",
    }


class AlertsFront:
    """Keeps alerts and silences."""

    def __init__(self) -> None:
        self.delivery: Json | None = None
        """What is known of the site's Alertmanager; None: the hub knows none."""
        self.alerts = [
            alert(
                1,
                "MLPDiskFull",
                severity="critical",
                summary="The disk of node node-1 is nearly full",
                value="8%",
                threshold="10%",
                below=True,
            ),
            alert(
                2,
                "MLPTenantOverQuota",
                tenant="red",
                summary="Team red holds more than its quota",
                value="2",
                threshold="0",
            ),
            alert(3, "MLPNodeCpuHigh", summary="The processors of node node-2 are busy", silence=1),
            alert(
                4, "MLPNodeGpuHigh", severity="info", state="pending", fired_at=None, state_since=when(-900)
            ),
            alert(
                5,
                "MLPNodeLost",
                severity="critical",
                state="resolved",
                resolved_at=when(-4000),
                state_since=when(-4000),
            ),
        ]
        self.silences = [silence(1), silence(2, rule="", tenant="red", of_team=True, reason="<b>we know</b>")]
        self.asked: list[Json] = []

    def answer(self, method: str, rest: list[str], body: Json, tenant: str = "") -> tuple[int, Any]:
        """Answer about the alerts of all, or of a tenant."""
        match method, rest:
            case "GET", ["alerts"]:
                return 200, self._board(tenant)
            case "POST", ["silences"]:
                self.asked.append(body | {"path": tenant})
                made = silence(len(self.silences) + 1, **({"rule": "", "tenant": tenant} | body))
                self.silences.append(made)
                return 201, made
            case "DELETE", ["silences", number]:
                self.silences = [one for one in self.silences if str(one["id"]) != number]
                return 200, {}
        return 404, {}

    def _board(self, tenant: str) -> Json:
        alerts = [one for one in self.alerts if tenant in {"", one["tenant"]}]
        loud = [one["state"] for one in alerts if one["silence"] is None]
        rules = [rule("MLPNodeCpuHigh"), rule("MLPTenantOverQuota", of_team=True)]
        return {
            "firing": loud.count("firing"),
            "pending": loud.count("pending"),
            "silenced": len(alerts) - len(loud),
            "evaluated_at": when(-5),
            "alerts": alerts,
            "silences": [one for one in self.silences if tenant in {"", one["tenant"]}],
            "rules": [one for one in rules if not tenant or one["of_team"]],
            "delivery": None if tenant else self.delivery,
        }
