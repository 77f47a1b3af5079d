"""Names of other tenants' jobs and users, in no answer and no stream: in texts, in what they are made of, in facts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mlp_hub.api.table import all_routes
from support.rigs.api_rig import ApiRig

SECRETS = ("mallory", "hidden-work")


def told(rig: ApiRig, user: str, token: str, tenant: str) -> dict[str, Any]:
    """Return what each GET of the table answers to a user about their own, by operation."""
    fill = {"user": user, "tenant": tenant, "application": "none", "booking": "none"}
    jobs = [job["name"] for job in rig.ask("GET", f"/users/{user}/jobs", token=token).json]
    found: dict[str, Any] = {}
    for route in all_routes():
        if route.method != "GET" or route.socket:
            continue
        for job in jobs if "job" in route.params else [""]:
            values = fill | {"job": job}
            if set(route.params) - set(values):
                continue
            query = "?cpu=3" if route.operation == "offer" else ""
            path = route.path.format(**values) + query
            found[f"{route.operation} {job}"] = rig.ask("GET", path, token=token).body.decode(
                errors="replace"
            )
    for job in jobs:
        frames: list[str] = []
        with rig.socket(f"/users/{user}/jobs/{job}:stream", token=token) as socket:
            for frame in socket:
                frames.append(str(frame))
                if json.loads(frame)["type"] == "synced":
                    break
        found[f"stream {job}"] = "\n".join(frames)
    return found


@pytest.mark.parametrize("cohort", ["pool", None])
def test_no_answer_and_no_stream_names_another_tenants_people_and_jobs(
    rig: ApiRig, cohort: str | None
) -> None:
    kind = cohort or "strange"
    other, user, vault, look = f"mallory-{kind}", f"looker-{kind}", f"vault-{kind}", f"look-{kind}"
    mallory, looker = rig.hub.user(other, f"{other}-token"), rig.hub.user(user, f"{user}-token")
    for name, whose in ((vault, other), (look, user)):
        rig.tenant(name, whose, cpu=31, cohort=cohort)
    rig.job(user, "lent", looker, cpu=55 if cohort else 31, priority="low", tenant=look)
    rig.until(user, "lent", "running")
    rig.job(other, "hidden-work", mallory, cpu=31, priority="high", tenant=vault)
    rig.until(other, "hidden-work", "running")
    rig.job(user, "more", looker, cpu=30, tenant=look)
    rig.job(user, "last", looker, cpu=1, tenant=look)

    for operation, body in told(rig, user, looker, look).items():
        assert not [s for s in SECRETS if s in body], (operation, body)
        if cohort is None:
            assert vault not in body, (operation, body)
    everything = told(rig, user, rig.root_user, look)
    if cohort is not None:  # what is hidden from one is there for another
        assert "hidden-work" in everything["jobs_events lent"]
        assert f"a job of team {vault}" in told(rig, user, looker, look)["jobs_events lent"]
    for name in ("hidden-work", "lent", "more", "last"):
        owner, token = (other, mallory) if name == "hidden-work" else (user, looker)
        assert rig.ask("PUT", f"/users/{owner}/jobs/{name}:cancel", token=token).status == 200
