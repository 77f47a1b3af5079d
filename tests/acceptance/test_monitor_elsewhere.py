"""The monitor in a cell is live in Notebook as in Lab, and where all pages are on one name; always through the notebook server."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from support.cluster.installs import Install
from support.front.browser import log_in, look_at, new_context, reach_server, run_cell, shot
from support.hubs.live_hub import LiveHub, make_endless

SAMPLE = "01-digits-mpi.ipynb"


def start_server(page: Page, hub: LiveHub, user: str) -> None:
    reach_server(page, hub, user)
    make_endless(hub, user, SAMPLE)


def live_in_its_cell(page: Page, hub: LiveHub, user: str, base: str, picture: str) -> None:
    """Run the first sample and see that its monitor is live, and by which way."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url))
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    run_cell(page, "%%mlp submit")
    widget = page.locator(".mlp-monitor").last
    expect(widget).to_have_attribute("data-connection", "live")
    expect(widget.get_by_role("group", name="Curves")).to_contain_text("loss")
    look_at(widget)
    shot(page, picture)
    data = [url for url in asked if "/mlp/api/v1/" in url]
    assert data
    assert all(
        url.split("://")[1].startswith(f"{base.split('://')[1]}/user/{user}/mlp/api/v1/") for url in data
    )
    widget.get_by_role("button", name="Cancel job").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel job").click()
    hub.wait_phase(user, "digits", "cancelled")


def test_in_notebook_7(hub: LiveHub, browser: Browser) -> None:
    hub.add_user("nora")
    context = new_context(browser)
    page = context.new_page()
    log_in(page, hub, "nora")
    start_server(page, hub, "nora")
    page.goto(f"{hub.notebooks('nora')}/user/nora/notebooks/{SAMPLE}")
    live_in_its_cell(page, hub, "nora", hub.notebooks("nora"), "17-in-notebook-7")
    context.close()


@pytest.mark.whole
def test_where_all_pages_are_on_one_name(install: Install, tmp_path: Path, browser: Browser) -> None:
    with install.hub(tmp_path / "home", MLP_USERS_DOMAIN="none") as hub:
        hub.url = f"http://127.0.0.1:{hub.port}"
        hub.add_user("otto")
        context = new_context(browser)
        page = context.new_page()
        log_in(page, hub, "otto")
        start_server(page, hub, "otto")
        page.goto(f"{hub.url}/user/otto/lab/tree/{SAMPLE}")
        live_in_its_cell(page, hub, "otto", hub.url, "18-on-one-name")
        admin = new_context(browser)
        panel = admin.new_page()
        log_in(panel, hub, "admin", hub.admin_password)
        panel.goto(f"{hub.url}/services/mlp/admin/users")
        expect(panel.get_by_role("note", name="Settings are less safe")).to_contain_text("one host name")
        shot(panel, "19-panel-says-what-one-name-means")
        admin.close()
        context.close()
