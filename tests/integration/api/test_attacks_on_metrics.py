"""Metrics are for scrapers: behind the one authorisation path, with a scope of their own, and true to hostile names."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.api.auth import authentication, scopes
from mlp_hub.api.build import make_server
from mlp_hub.api.edge.limits import Rate
from mlp_hub.api.edge.listeners import Listener
from mlp_hub.api.edge.server import ALWAYS
from mlp_hub.app import listeners_of
from mlp_hub.service.monitoring import service as monitoring
from mlp_hub.settings import Settings, SettingsError
from mlp_hub.web.site import make_application
from support.monitoring.scraped import OPEN_METRICS, Scraped
from support.ports import free_port
from support.rigs.api_rig import BASE, HOST, PLENTY, Answer, ApiRig, parts_of_story
from support.waiting import PATIENCE_S

SCRAPER = "scrapers-token"


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiRig]:
    monkeypatch.setattr(monitoring, "LOOK_S", 0.0)
    monkeypatch.setattr(monitoring, "SHARED_S", 0.0)
    with ApiRig(tmp_path) as started:
        started.hub.user("admin", SCRAPER, admin=True, held=(scopes.ACCESS, scopes.METRICS_READ))
        yield started


def scraped(rig: ApiRig, token: str = SCRAPER, **headers: str) -> Scraped:
    answer = rig.ask("GET", "/metrics", token=token, headers=headers)
    assert answer.status == 200, answer.body
    return Scraped(answer.body.decode(), is_open="openmetrics" in answer.headers["content-type"])


def test_nobody_without_the_scope_reads_metrics(rig: ApiRig) -> None:
    assert rig.ask("GET", "/metrics").status == 401
    assert rig.ask("GET", "/metrics", token="wrong").status == 401
    foreign = rig.hub.user("admin", "foreign", held=("access:services!service=other", scopes.METRICS_READ))
    limited = rig.hub.user("ann", "limited", held=(scopes.ACCESS, f"{scopes.METRICS_READ}!user=bob"))
    for token in (rig.ann, rig.rita, rig.notebook, rig.spawner, rig.data, rig.gateway, foreign, limited):
        answer = rig.ask("GET", "/metrics", token=token)
        assert answer.status == 403, token
        assert b"mlp_" not in answer.body.replace(b"custom:mlp", b"")
    for token in (SCRAPER, rig.root_user):
        assert rig.ask("GET", "/metrics", token=token).status == 200


def test_a_jobs_token_reads_no_metrics(rig: ApiRig) -> None:
    parts_of_story(rig)
    job = rig.until("ann", "digits", "running")
    token = rig.job_token(job["uid"])
    assert rig.ask("GET", "/metrics", token=token).status == 403


def test_a_scrapers_token_reads_nothing_else(rig: ApiRig) -> None:
    for path in ("/tenants/default", "/users/ann/jobs", "/queue", "/nodes", "/audit", "/overview"):
        assert rig.ask("GET", path, token=SCRAPER).status == 403, path
    assert rig.ask("POST", "/metrics", {}, token=SCRAPER).status == 403


@pytest.mark.parametrize("query", ["?name[]=mlp_jobs", "?x=1", "?" + "a=1&" * 500, "?debug=true"])
def test_a_question_for_more_is_answered_with_no_more(rig: ApiRig, query: str) -> None:
    assert rig.ask("GET", f"/metrics{query}", token=SCRAPER).status in (200, 400, 403)


def test_the_type_of_the_answer_is_one_of_two_whatever_is_asked_for(rig: ApiRig) -> None:
    plain = rig.ask("GET", "/metrics", token=SCRAPER)
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    asked = rig.ask("GET", "/metrics", token=SCRAPER, headers={"Accept": OPEN_METRICS})
    assert asked.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert asked.body.endswith(b"# EOF\n")
    for evil in (
        "application/openmetrics-text;version=evil",
        "text/plain;version=1;escaping=x",
        ";;=,=",
        "q" * 9000,
    ):
        answer = rig.ask("GET", "/metrics", token=SCRAPER, headers={"Accept": evil})
        assert (answer.status, answer.headers["content-type"]) == (200, plain.headers["content-type"]), evil


def test_requests_count_for_their_tenant_and_no_name_is_made_up(rig: ApiRig) -> None:
    rig.tenant("red", "rita", members=("ann",), cpu=8)
    before = scraped(rig).value("mlp_tenant_request_duration_seconds_count", tenant="red") or 0
    for path in ("/users/ann/jobs", "/tenants/red"):
        assert rig.ask("GET", path, token=rig.ann).status == 200
    for number in range(50):
        rig.ask("GET", f"/tenants/none-{number}", token=rig.ann)
        rig.ask("GET", f"/tenants/none-{number}", token=rig.root_user)
        rig.ask("GET", "/tenants/red", token=rig.bob)
        rig.ask("GET", f"/none-{number}", token=rig.ann)
    named = rig.platform.monitoring.events.tenant_request_s.samples()
    assert {labels for labels, _ in named} <= {("red",), ("default",)}
    found = scraped(rig)
    assert found.value("mlp_tenant_request_duration_seconds_count", tenant="red") == before + 2
    assert found.value("mlp_http_requests_total", route_group="jobs", code="2xx") == 1
    assert (found.value("mlp_http_requests_total", route_group="none", code="4xx") or 0) >= 50


def test_a_name_of_a_kind_of_gpu_that_is_code_stays_a_name(rig: ApiRig) -> None:
    evil = 'h100"} 1\nmlp_evil{a="b'
    events = rig.platform.monitoring.events
    events.ended.add(evil, "failed")  # as if a tenant could have such a name
    families = [(events.ended.row, events.ended.samples())]
    for is_open in (False, True):
        text, _ = rig.platform.monitoring._render(families, is_open)
        found = Scraped(text.decode(), is_open=is_open)
        assert found.value("mlp_jobs_ended_total", tenant=evil, result="failed") == 1
        assert "mlp_evil" not in found.families


def test_a_replica_on_standby_answers_scrapes_and_stores_nothing(rig: ApiRig) -> None:
    writes: list[Any] = []

    async def write(fn: Any, **_: Any) -> Any:
        writes.append(fn)

    rig.hub.user("newcomer", "new", admin=True, held=(scopes.ACCESS, scopes.METRICS_READ))
    rig.platform._leads = False
    real, rig.platform.db.write = rig.platform.db.write, write  # type: ignore[method-assign]
    try:
        answer = rig.ask("GET", "/metrics", token="new")
        assert answer.status == 200
        found = Scraped(answer.body.decode())
        assert set(found.by("mlp_replica_info", "replica_role")) == {"follower"}
        assert "mlp_tenant_held" not in found.families
        assert rig.ask("GET", "/metrics", token=rig.ann).status == 403
        assert rig.ask("GET", "/tenants", token=rig.root_user).status == 503
    finally:
        rig.platform.db.write = real  # type: ignore[method-assign]
        rig.platform._leads = True
    assert not writes


def test_only_a_scraper_from_before_sees_an_outage_of_the_hub(
    rig: ApiRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    scraped(rig)
    assert rig.ask("GET", "/metrics", token=rig.root_user).status == 200
    monkeypatch.setattr(authentication, "POSITIVE_S", 0.0)
    rig.service.auth._cache = {key: (0.0, who) for key, (_, who) in rig.service.auth._cache.items()}  # type: ignore[assignment]
    clock, rig.service.auth._clock = rig.service.auth._clock, lambda: 10.0
    rig.hub.down = True
    rig.client._heard -= 60
    found = scraped(rig)
    assert found.value("mlp_problem", component="hub", reason="HubUnavailable") == 1
    assert rig.ask("GET", "/metrics", token=rig.root_user).status == 503  # it may do more
    assert rig.ask("GET", "/metrics", token="another").status == 503
    assert rig.ask("GET", "/tenants", token=SCRAPER).status in (403, 503)
    rig.service.auth._clock = lambda: authentication.OUTAGE_S + 1
    assert rig.ask("GET", "/metrics", token=SCRAPER).status == 503
    rig.hub.down = False
    rig.service.auth._clock = clock
    del rig.hub.tokens[SCRAPER]
    assert rig.ask("GET", "/metrics", token=SCRAPER).status == 401


def test_many_scrapes_at_once_are_one(rig: ApiRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "SHARED_S", 60.0)
    made: list[float] = []
    render = monitoring.Monitoring._render

    def noted(self: Any, families: Any, open_metrics: bool) -> Any:
        made.append(time.monotonic())
        return render(self, families, open_metrics)

    monkeypatch.setattr(monitoring.Monitoring, "_render", noted)
    for _ in range(30):
        assert rig.ask("GET", "/metrics", token=SCRAPER).status == 200
    assert len(made) == 1


def test_a_scraper_without_a_pause_is_told_to_wait(tmp_path: Path) -> None:
    with ApiRig(tmp_path, rates={**PLENTY, "api": Rate(0.001, 5)}) as rig:
        rig.hub.user("admin", SCRAPER, admin=True, held=(scopes.ACCESS, scopes.METRICS_READ))
        statuses = [rig.ask("GET", "/metrics", token=SCRAPER).status for _ in range(10)]
    assert statuses.count(200) == 5
    assert statuses[-1] == 429


# --- the port of its own


def at_port(port: int, path: str, token: str | None = SCRAPER) -> Answer:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        headers = {"Host": HOST, **({"Authorization": f"Bearer {token}"} if token else {})}
        link.request("GET", path, headers=headers)
        answer = link.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        link.close()


def test_the_port_for_scrapers_has_metrics_and_nothing_else(rig: ApiRig) -> None:
    row = Listener(("127.0.0.1", free_port()), False, only=ALWAYS)

    async def listen() -> None:
        server = make_server(
            rig.service, make_application(rig.service), behind_proxy=row.behind_proxy, only=row.only
        )
        server.add_sockets(row.open())
        rig._servers.append(server)

    rig.run(listen())
    port = row.where[1]  # type: ignore[index]
    for path in ("/metrics", f"{BASE}/metrics", "/api/v1/metrics"):
        answer = at_port(port, path)
        assert answer.status == 200, path
        assert b"mlp_build_info" in answer.body
        assert at_port(port, path, None).status == 401
        assert at_port(port, path, rig.ann).status == 403
    assert at_port(port, "/ready", None).status == 200
    for path in (
        "/",
        "/services/mlp/",
        "/tenants",
        "/api/v1/tenants",
        "/api/v1/session",
        "/metrics/",
        "/hub/metrics",
    ):
        assert b"does not exist here" in at_port(port, path, rig.root_user).body, path


def settings(tmp_path: Path, **given: str) -> Settings:
    return Settings.load({"MLP_HOME": str(tmp_path), **{f"MLP_{k}": v for k, v in given.items()}})


def test_a_port_alone_is_on_loopback_and_each_replica_has_its_own(tmp_path: Path) -> None:
    url = "postgresql://localhost/x"
    given = settings(tmp_path, METRICS_LISTEN="9400", REPLICAS="2", DATABASE_URL=url)
    for replica, port in ((1, 9400), (2, 9401)):
        (row,) = [one for one in listeners_of(given, replica) if one.only]
        assert (row.where, row.behind_proxy) == (("127.0.0.1", port), False)
    (row,) = [one for one in listeners_of(settings(tmp_path, METRICS_LISTEN="[::]:9400"), 1) if one.only]
    assert row.where == ("::", 9400)
    assert not [one for one in listeners_of(settings(tmp_path), 1) if one.only]


@pytest.mark.parametrize("bad", ["x", "0", "65536", "host", "99999999", ":9400", "١٢٣", "127.0.0.1:"])
def test_an_address_that_cannot_be_meant_stops_the_start(tmp_path: Path, bad: str) -> None:
    with pytest.raises(SettingsError, match="MLP_METRICS_LISTEN"):
        settings(tmp_path, METRICS_LISTEN=bad)


def test_the_last_port_leaves_no_room_for_replicas(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="2 replicas"):
        settings(tmp_path, METRICS_LISTEN="65535", REPLICAS="2", DATABASE_URL="postgresql://localhost/x")
