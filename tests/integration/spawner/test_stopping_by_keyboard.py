"""A notebook server is stopped without a mouse, and the page says then how it stands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from support.front.browser import chromium, new_context
from support.hubs.hub_stack import PASSWORD, HubStack, start_server

MOST_TABS = 40
RUNNING = "Your notebook server is running."


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = new_context(browser)
    yield context.new_page()
    context.close()


def open_home(stack: HubStack, page: Page, user: str) -> None:
    start_server(stack, user)
    page.goto(f"{stack.url}/hub/login")
    page.locator("#username_input").fill(user)
    page.locator("#password_input").fill(PASSWORD)
    page.locator("#login_submit").click()
    page.wait_for_url(lambda url: "/hub/login" not in url)
    page.goto(f"{stack.url}/hub/home")
    page.wait_for_function("window._jupyterhub_page_loaded")
    expect(page.locator("main")).to_contain_text(RUNNING)


def tab_to(page: Page, name: str) -> None:
    """Press Tab until this has the focus."""
    seen = []
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        if seen[-1] == name:
            return
    raise AssertionError(f"Tab does not come to {name}, but to {seen}")


def stopped(page: Page) -> None:
    """See that the page says so, and offers to start it again, by keyboard too."""
    expect(page.locator("main")).to_contain_text("Start your notebook server to work in JupyterLab.")
    expect(page.locator("main")).not_to_contain_text(RUNNING)
    expect(page.locator("#stop")).to_have_count(0)
    expect(page.get_by_role("link", name="Start My Server")).to_be_visible()
    tab_to(page, "start")


def test_a_stop_that_is_refused_leaves_the_page_as_it_was_and_enter_stops_the_server(
    stack: HubStack, page: Page
) -> None:
    stack.add("mio")
    open_home(stack, page, "mio")
    page.route(
        "**/hub/api/users/mio/server*", lambda route: route.fulfill(status=503, json={"message": "busy"})
    )
    page.get_by_role("button", name="Stop My Server").click()
    expect(page.get_by_role("dialog")).to_contain_text("busy")
    expect(page.locator("main")).to_contain_text(RUNNING)
    expect(page.locator("#stop")).to_be_enabled()
    page.get_by_role("dialog").get_by_role("button", name="OK").click()
    page.route("**/user/mio/**", lambda route: route.fulfill(body="JupyterLab"))  # it need not be loaded
    page.locator("#start").click()
    page.wait_for_url("**/user/mio/**")
    page.unroute_all()
    page.goto(f"{stack.url}/hub/home")
    page.wait_for_function("window._jupyterhub_page_loaded")
    tab_to(page, "stop")
    page.keyboard.press("Enter")
    stopped(page)


def test_the_space_key_stops_a_server_which_is_said_to_be_stopping_while_it_takes_its_time(
    stack: HubStack, page: Page
) -> None:
    stack.add("nia")
    open_home(stack, page, "nia")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)  # it is not answered yet

    page.route("**/hub/api/users/nia/server*", hold)
    tab_to(page, "stop")
    page.keyboard.press("Space")
    expect(page.get_by_role("status").filter(has_text="notebook server")).to_have_text(
        "Your notebook server is stopping."
    )
    expect(page.locator("#stop")).to_be_disabled()
    held[0].continue_()
    stopped(page)
