"""The main job, as a person does it: sign up, be approved, run a distributed job from a cell, watch it, share a quota.

The tests of this file are one story; each goes on where the one before stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, Page, WebSocket, expect

from support.cluster.installs import Install
from support.front.browser import (
    log_in,
    look_at,
    new_context,
    open_lab,
    run_cell,
    save_notebook,
    shot,
    sign_up,
    wait_idle,
)
from support.hubs.live_hub import PASSWORD, LiveHub, set_epochs
from support.monitoring.prometheus import needs_prometheus, running, until_value
from support.monitoring.scraping import as_the_operator_writes, token_of
from support.waiting import wait_for

MPI, TF = "01-digits-mpi.ipynb", "02-digits-tensorflow.ipynb"
EPOCHS_TF = 6
"""Of 30, which take two minutes of a core to become better by a tenth."""
PATIENT = 900.0
"""Seconds that a job may take which really trains; it bounds only tests that fail."""


@pytest.fixture(scope="module")
def ann(browser: Browser) -> Iterator[Page]:
    context = new_context(browser)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def bob(browser: Browser) -> Iterator[Page]:
    context = new_context(browser)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def admin(browser: Browser) -> Iterator[Page]:
    context = new_context(browser)
    yield context.new_page()
    context.close()


def test_1_ann_and_bob_sign_up_and_cannot_log_in_yet(hub: LiveHub, ann: Page, bob: Page) -> None:
    sign_up(ann, hub, "ann")
    shot(ann, "01-signed-up")
    sign_up(bob, hub, "bob")
    ann.goto(f"{hub.url}/hub/login")
    ann.locator("#username_input").fill("ann")
    ann.locator("#password_input").fill(PASSWORD)
    ann.locator("#login_submit").click()
    expect(ann.locator(".login_error")).to_be_visible()
    shot(ann, "02-not-approved-yet")


def test_2_the_admin_approves_them_in_the_panel(hub: LiveHub, admin: Page) -> None:
    log_in(admin, hub, "admin", hub.admin_password)
    admin.goto(f"{hub.url}/hub/home")
    shot(admin, "03-home-with-navigation")
    admin.locator("#mlp-admin-link").click()
    admin.goto(f"{hub.url}/services/mlp/admin/users")
    for user in ("ann", "bob"):
        admin.get_by_role("button", name=f"Approve {user}").click()
        expect(admin.get_by_role("button", name=f"Approve {user}")).to_have_count(0)
    shot(admin, "04-users")


def test_3_ann_runs_the_sample_from_her_home_on_two_mpi_ranks_and_watches_it(hub: LiveHub, ann: Page) -> None:
    log_in(ann, hub, "ann")
    # half of its epochs: with more of them it tells nothing more
    open_lab(ann, hub, "ann", MPI, before=lambda: set_epochs(hub, "ann", MPI, 30))
    run_cell(ann, "%%mlp submit")
    widget = ann.locator(".mlp-monitor").last
    expect(widget).to_have_attribute("data-phase", "running")
    expect(widget.get_by_role("group", name="Curves")).to_contain_text("loss")
    expect(widget.get_by_role("group", name="Ranks").locator("tbody tr")).to_have_count(2)
    expect(widget.get_by_role("group", name="Log", exact=True)).not_to_be_empty()
    wait_for(lambda: hub.job("ann", "digits")["progress"] >= 30, PATIENT)
    look_at(widget)
    shot(ann, "05-job-running-in-its-cell")


def test_4_with_the_browser_closed_and_the_kernel_restarted_watch_shows_all_of_it(
    hub: LiveHub, ann: Page, browser: Browser
) -> None:
    name = hub.ok("GET", "/users/ann/jobs", "ann")[0]["name"]
    context = ann.context
    cookies = context.cookies()
    ann.goto("about:blank")
    again = new_context(browser)
    again.add_cookies(cookies)  # type: ignore[arg-type]
    page = again.new_page()
    open_lab(page, hub, "ann", MPI)
    wait_idle(page)
    heard: list[str] = []

    def listen(socket: WebSocket) -> None:
        if "/channels" in socket.url:
            socket.on("framereceived", lambda _: heard.append(socket.url))

    page.on("websocket", listen)
    page.get_by_role("menuitem", name="Kernel").click()
    page.get_by_text("Restart Kernel…", exact=True).first.click()
    with page.expect_response("**/api/kernels/*/restart*"):  # until then the old kernel is idle
        page.locator("dialog.jp-Dialog button.jp-mod-accept").click()
    # left before its socket to the new kernel is open, the page would be counted by its server as a connection less than none
    wait_for(lambda: page.title() and heard, message="for the new kernel to be heard by the page")
    # a page that was open meanwhile may miss that the new kernel is idle, and then says nothing of it before it runs something
    page.goto("about:blank")
    open_lab(page, hub, "ann", MPI)
    wait_idle(page)
    run_cell(page, "%mlp watch")
    job = hub.wait_phase("ann", name, "finished", timeout=PATIENT)
    assert job["progress"] == 100
    points = hub.points("ann", name)
    accuracy = max(p["values"]["accuracy"] for p in points if "accuracy" in p["values"])
    assert accuracy > 0.97
    widget = page.locator(".mlp-monitor").last
    expect(widget).to_have_attribute("data-phase", "finished")
    expect(widget.get_by_role("group", name="Curves")).to_contain_text("accuracy")
    look_at(widget)
    shot(page, "06-watched-again-after-restart")
    path = hub.homes / "ann" / MPI

    def kept_the_end() -> bool:
        save_notebook(page, path.name)
        return "digits  finished" in path.read_text()

    wait_for(kept_the_end, message="for the kernel's last picture to be in the saved notebook")
    again.close()


def test_5_the_saved_notebook_keeps_a_static_picture(hub: LiveHub) -> None:
    saved = json.loads((hub.homes / "ann" / MPI).read_text())
    outputs = [o for c in saved["cells"] if c["cell_type"] == "code" for o in c["outputs"] if "data" in o]
    pictures = [o["data"] for o in outputs if "text/html" in o["data"]]
    assert pictures, "no picture in the saved notebook"
    html = "".join(pictures[-1]["text/html"])
    assert "finished" in html.lower()
    assert "accuracy" in html
    assert "finished" in "".join(pictures[-1]["text/plain"]).lower()


@pytest.mark.whole_on("cluster")
@pytest.mark.parametrize(
    ("name", "picture"),
    [
        pytest.param("digits-tf", "07-tensorflow", marks=pytest.mark.whole),
        ("digits-ps", "08-parameter-server"),
    ],
)
def test_6_tensorflow_trains_on_two_workers_and_with_a_parameter_server(
    hub: LiveHub, ann: Page, name: str, picture: str
) -> None:
    set_epochs(hub, "ann", TF, EPOCHS_TF)
    open_lab(ann, hub, "ann", TF)
    run_cell(ann, f"--name {name}")
    wait_for(lambda: hub.call("GET", f"/users/ann/jobs/{name}", "ann").is_success)
    hub.wait_phase("ann", name, "running")
    widget = ann.locator(".mlp-monitor").filter(has_text=name).last
    expect(widget.get_by_role("group", name="Curves")).to_contain_text("loss", timeout=1000 * PATIENT)
    look_at(widget)
    shot(ann, f"{picture}-running")
    hub.wait_phase("ann", name, "finished", timeout=PATIENT)
    accuracy = max(p["values"]["accuracy"] for p in hub.points("ann", name) if "accuracy" in p["values"])
    assert accuracy > 0.5  # guessing is right in a tenth
    expect(widget).to_have_attribute("data-phase", "finished")
    look_at(widget)
    shot(ann, picture)
    ann.goto("about:blank")


def test_7_the_admin_makes_a_narrow_tenant_and_puts_bob_into_it(hub: LiveHub, admin: Page) -> None:
    admin.goto(f"{hub.url}/services/mlp/admin/tenants")
    admin.get_by_role("link", name="New team").click()
    admin.get_by_label("Name").fill("red")
    admin.get_by_label("CPU").fill("2.2")
    shot(admin, "09-new-tenant")
    admin.get_by_role("button", name="Create team").click()
    expect(admin.get_by_role("heading", name="red")).to_be_visible()
    admin.get_by_role("tab", name="People").click()
    admin.get_by_label("Add a user").fill("bob")
    admin.get_by_role("button", name="Add", exact=True).click()
    expect(admin.get_by_role("region", name="Members", exact=True)).to_contain_text("bob")
    shot(admin, "10-tenant-red")


def test_8_bobs_second_job_waits_with_numbers_and_starts_when_the_quota_is_raised(
    hub: LiveHub, admin: Page, bob: Page
) -> None:
    log_in(bob, hub, "bob")
    open_lab(bob, hub, "bob", "03-quota-and-waiting.ipynb")
    wait_idle(bob)
    bob.goto("about:blank")  # the server stays
    sleeper = "import time; time.sleep(3600)"  # until the end of this story, however slow it is told
    for name in ("one", "two"):
        hub.submit("bob", name, sleeper, tenant="red", workers=2, runtime="plain", cpu=1, ram=200)
    hub.wait_phase("bob", "one", "running")
    why = wait_for(lambda: (w := hub.ok("GET", "/users/bob/jobs/two/why", "bob"))["reasons"] and w)
    told = "Needs 2 cpu, 0 free. Starts when jobs or notebook servers of red end."
    assert why["reasons"][0]["message"] == told
    facts = str(why["reasons"][0]["facts"])
    assert "2.2 cpu" in facts
    assert "notebook" in facts, "his notebook server counts in the same quota"
    page = bob.context.new_page()
    page.goto(f"{hub.url}/services/mlp/jobs/bob/two")
    expect(page.get_by_role("group", name="Why it waits")).to_contain_text(told)
    shot(page, "11-why-it-waits")
    admin.goto(f"{hub.url}/services/mlp/admin/queue")
    expect(admin.get_by_role("main")).to_contain_text(told)
    shot(admin, "12-queue")
    admin.goto(f"{hub.url}/services/mlp/admin/tenants/red")
    admin.get_by_role("button", name="Edit quota").click()
    admin.get_by_label("CPU").fill("4.2")
    preview = admin.get_by_role("status", name="Effect of this quota")
    expect(preview).to_contain_text("1 waiting job could start")
    shot(admin, "13-raise-the-quota")
    admin.get_by_role("button", name="Save", exact=True).click()
    hub.wait_phase("bob", "two", "running")
    expect(page.locator(".mlp-monitor")).to_have_attribute("data-phase", "running")
    shot(page, "14-started-at-once")


def test_9_a_server_that_does_not_fit_is_refused_on_the_spawn_page_with_the_numbers(
    hub: LiveHub, browser: Browser
) -> None:
    hub.add_user("eve")
    hub.ok("POST", "/tenants", body={"name": "tiny", "cpu": 0.1, "ram": 200})
    hub.ok("PUT", "/tenants/tiny/members/eve", body={"role": "member"})
    context = new_context(browser)
    page = context.new_page()
    log_in(page, hub, "eve")
    page.goto(f"{hub.url}/hub/spawn/eve")
    expect(page.locator("#mlp-tenant")).to_contain_text("tiny: 0.1 of 0.1 cpu")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("body")).to_contain_text("tiny may use 0.1 cpu")
    shot(page, "15-server-refused")
    context.close()


@needs_prometheus
def test_10_prometheus_scrapes_it_by_the_objects_of_the_operator(
    hub: LiveHub, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(hub.env, "MLP_PUBLIC_URL", "https://hub.example.org")
    monkeypatch.setitem(hub.env, "MLP_USERS_DOMAIN", "none")
    printed = hub.run("monitor", "operator", "--namespace", "watch").stdout
    *configs, rule = yaml.safe_load_all(printed)
    secret = configs[0]["spec"]["authorization"]["credentials"]
    token = token_of(hub, tmp_path / "made")
    file = install.secret(secret["name"], secret["key"], token, tmp_path)
    written = as_the_operator_writes(configs, file, f"127.0.0.1:{hub.port}", "watch")
    with running(tmp_path / "prometheus", written, rule["spec"]) as prometheus:
        until_value(prometheus, "mlp_build_info")
        wait_for(lambda: set(prometheus.targets().values()) == {"up"})
        for query in (
            'mlp_jobs_ended_total{result="finished"} >= 1',
            'mlp_tenant_held{tenant="red",resource="cpu"} > 0',  # bob's two jobs run
            "jupyterhub_total_users >= 3",
        ):
            until_value(prometheus, query)


def test_11_after_down_and_up_nothing_is_forgotten(hub: LiveHub, browser: Browser) -> None:
    before = hub.ok("GET", "/users/bob/jobs", "bob")
    hub.down()
    hub.up()
    after = hub.ok("GET", "/users/bob/jobs", "bob")
    assert [(j["name"], j["uid"]) for j in after] == [(j["name"], j["uid"]) for j in before]
    assert {j["phase"] for j in after} == {"running"}
    assert hub.ok("GET", "/tenants/red")["cpu"] == 4.2
    context = new_context(browser, dark=True)
    page = context.new_page()
    log_in(page, hub, "ann")
    name = next(j["name"] for j in hub.ok("GET", "/users/ann/jobs", "ann") if j["runtime"] == "mpi")
    page.goto(f"{hub.url}/services/mlp/jobs/ann/{name}")
    expect(page.locator(".mlp-monitor")).to_have_attribute("data-phase", "finished")
    expect(page.get_by_role("group", name="Curves")).to_contain_text("accuracy")
    shot(page, "16-after-a-restart-dark", full=True)
    for job in ("one", "two"):
        hub.ok("PUT", f"/users/bob/jobs/{job}:cancel", "bob")
        hub.wait_phase("bob", job, "cancelled")
    page.get_by_role("button", name="Log out").click()
    expect(page.locator("#login-main")).to_be_visible()
    # neither the pages nor the hub know who this browser is any more
    page.goto(f"{hub.url}/services/mlp/")
    expect(page.locator("#username_input")).to_be_visible()
    context.close()
