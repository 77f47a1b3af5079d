"""JupyterLab's Help menu leads to the documentation, under the platform's own name."""

from __future__ import annotations

import httpx
import pytest
from playwright.sync_api import expect

from mlp_hub import sandbox
from support.front.browser import chromium, new_context
from support.hubs.hub_stack import PASSWORD, HubStack, start_server
from support.local_names import LocalNames

DOCS = "/services/mlp/docs/"


def test_under_a_users_name_only_the_way_to_the_documentation_is_told(stack: HubStack) -> None:
    with httpx.Client(transport=LocalNames(), base_url=stack.notebooks("ann")) as browser:
        answer = browser.get(DOCS)
        assert (answer.status_code, answer.headers["Location"]) == (302, f"{stack.url}{DOCS}")
        for other in (
            "/services/mlp/docs",
            f"{DOCS}quickstart",
            f"{DOCS}?next=//example.org",
            "/services/mlp/",
        ):
            refused = browser.get(other)
            assert refused.is_client_error, other
            assert "Location" not in refused.headers


@pytest.mark.skipif(sandbox.capabilities().mode is None, reason="no sandbox can be made here")
def test_the_help_menu_opens_the_documentation(stack: HubStack) -> None:
    stack.add("ann")
    start_server(stack, "ann")
    with chromium() as browser:
        page = new_context(browser).new_page()
        page.goto(f"{stack.url}/hub/login")
        page.locator("#username_input").fill("ann")
        page.locator("#password_input").fill(PASSWORD)
        page.locator("#login_submit").click()
        page.wait_for_url(lambda url: "/hub/login" not in url)
        page.goto(f"{stack.notebooks('ann')}/user/ann/lab")
        page.locator("#jp-main-dock-panel").wait_for()
        page.get_by_role("menuitem", name="Help", exact=True).click()
        entry = page.get_by_role("menuitem", name="MLP Hub Documentation")
        expect(entry).to_be_visible()
        with page.expect_popup() as opened:
            entry.click()
        opened.value.wait_for_url(f"{stack.url}{DOCS}")
