"""The audit log and the scheduler's decisions: for platform admins only, bounded, and no input upsets them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from mlp_hub.service import audit
from support.rigs.api_rig import ApiRig

SCRIPT = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiRig]:
    """A rig whose log is known from its first entry on."""
    root: Path = tmp_path_factory.mktemp("audit")
    with ApiRig(root) as rig:
        rig.tenant("red", "rita", members=("ann",), cpu=2.0, description=SCRIPT)
        rig.tenant("cyan")
        rig.job("ann", "digits", rig.ann, tenant="red", cpu=1.0)
        yield rig


def actions(rig: ApiRig, query: str = "") -> list[tuple[str, str, str]]:
    answer = rig.ask("GET", f"/audit?limit=1000{query}", token=rig.root_user)
    assert answer.status == 200, answer.body
    return [(e["actor"], e["action"], e["object"]) for e in answer.json]


@pytest.mark.parametrize("path", ["/audit", "/decisions", "/audit?tenant=red", "/decisions?user=ann"])
@pytest.mark.parametrize("who", ["ann", "bob", "rita", "blue", "notebook", "spawner"])
def test_only_a_platform_admin_reads_them_not_even_a_tenants_admin_its_own_part(
    own: ApiRig, who: str, path: str
) -> None:
    answer = own.ask("GET", path, token=getattr(own, who))
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert own.ask("GET", path).status == 401


def test_audit_entries_name_their_actor_newest_first(own: ApiRig) -> None:
    told = actions(own)
    made = [object_ for actor, action, object_ in told if (actor, action) == ("admin", "tenant.create")]
    assert made == ["cyan", "red"]
    entry = own.ask("GET", "/audit?object=red&action=tenant.create", token=own.root_user).json[0]
    assert entry["detail"]["description"] == SCRIPT, "as it is: who shows it escapes it"
    assert entry["tenant"] == "red"
    assert entry["time"].endswith("Z")
    assert actions(own, "&actor=nobody") == []
    assert {a for _, a, _ in actions(own, "&action=member.")} == {"member.set"}
    assert {o for _, _, o in actions(own, "&tenant=cyan")} == {"cyan"}
    assert actions(own, "&until=2001-01-01T00:00:00Z") == []
    assert actions(own, "&since=2001-01-01T00:00:00Z") == told


def test_of_a_tenant_is_told_what_was_not_set_before_and_what_is_not_any_more(own: ApiRig) -> None:
    own.tenant("lime", cpu=2.0, cohort="m")
    for asked in ({"borrowing_limit": {"cpu": 0}}, {"borrowing_limit": {"cpu": 0}, "description": "x"}, {}):
        body = {"cpu": 2.0, "cohort": "m", **asked}
        assert own.ask("PUT", "/tenants/lime", body, token=own.root_user).status == 200
    entries = own.ask("GET", "/audit?object=lime&action=tenant.update", token=own.root_user).json
    assert [e["detail"] for e in reversed(entries)] == [
        {"before": {"borrowing_limit": None}, "after": {"borrowing_limit": {"cpu": 0.0}}},
        {"before": {"description": None}, "after": {"description": "x"}},
        {
            "before": {"borrowing_limit": {"cpu": 0.0}, "description": "x"},
            "after": {"borrowing_limit": None, "description": None},
        },
    ]


def test_pages_follow_each_other_to_the_end(own: ApiRig) -> None:
    whole = own.ask("GET", "/audit?limit=1000", token=own.root_user).json
    seen, cursor = [], ""
    while True:
        page = own.ask("GET", f"/audit?limit=2{cursor}", token=own.root_user)
        assert len(page.json) <= 2
        seen += page.json
        if "x-next-cursor" not in page.headers:
            break
        cursor = f"&cursor={page.headers['x-next-cursor']}"
    assert seen == whole


def test_long_entries_come_in_smaller_pages(own: ApiRig, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = own.ask("GET", "/audit?limit=1000", token=own.root_user).json
    monkeypatch.setattr(audit, "MOST_BYTES", 200)
    page = own.ask("GET", "/audit?limit=1000", token=own.root_user)
    assert 0 < len(page.json) < len(whole)
    assert page.headers["x-next-cursor"] == str(page.json[-1]["id"])


BAD = [
    "limit=0",
    "limit=1001",
    "limit=1e9",
    "cursor=",
    "cursor=-1",
    "cursor=1%0A",
    "cursor=9999999999999999999",
    "cursor=0x10",
    "actor=",
    "actor=%00",
    "actor=a%0Ab",
    "actor=ann%0A",
    f"actor={'x' * 256}",
    f"action={'x' * 65}",
    "tenant=..%2Fred",
    "tenant=Red",
    "since=yesterday",
    "since=2026-01-01",
    "since=2026-01-01T00:00:00",
    "since=NaN",
    "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
    "since=2026-01-01T00:00:00Z&until=2026-01-01T00:00:00Z",
    "actor=a&actor=b",
    "surprise=1",
    "%ff=1",
]


@pytest.mark.parametrize("query", BAD)
def test_a_query_that_means_nothing_is_refused(own: ApiRig, query: str) -> None:
    answer = own.ask("GET", f"/audit?{query}", token=own.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid"), answer.body
    assert len(answer.body) < 1000


@pytest.mark.parametrize("query", ["kind=guessed", "job=%00", "user=%00", "object=x", "cursor=x"])
def test_a_query_for_decisions_that_means_nothing_is_refused(own: ApiRig, query: str) -> None:
    answer = own.ask("GET", f"/decisions?{query}", token=own.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid"), answer.body


@pytest.mark.parametrize("text", ["' OR 1=1 --", "%", "_", "\\", SCRIPT, "\N{PILE OF POO}", "red%2e%2e"])
def test_filters_are_texts_and_nothing_else(own: ApiRig, text: str) -> None:
    for name in ("actor", "action", "object"):
        assert actions(own, f"&{name}={quote(text)}") == []
        assert actions(own, f"&{name}={quote(text[:10] + '.')}") == []


def test_nobody_writes_or_removes_an_entry(own: ApiRig) -> None:
    before = actions(own)
    for method in ("POST", "PUT", "DELETE"):
        for path in ("/audit", "/audit/1", "/decisions", "/decisions/1"):
            assert own.ask(method, path, {}, token=own.root_user).status in (403, 405)
    assert actions(own) == before


def test_an_admin_sees_why_any_job_was_admitted_then_and_there(own: ApiRig) -> None:
    def ask(query: str) -> list[dict[str, object]]:
        answer = own.ask("GET", f"/decisions?{query}", token=own.root_user)
        assert answer.status == 200, answer.body
        found: list[dict[str, object]] = answer.json
        return found

    (one,) = ask("user=ann&job=digits")
    assert (one["user"], one["job"], one["tenant"]) == ("ann", "digits", "red")
    decision = own.ask("GET", "/users/ann/jobs/digits/decisions", token=own.root_user).json[0]
    assert one["decision"] == decision
    assert decision["kind"] == "admitted"
    assert decision["nodes"][0]["node"] == "n1"
    assert ask("kind=admitted") == [one]
    assert ask("kind=preempted") == ask("user=bob") == ask("until=2001-01-01T00:00:00Z") == []
