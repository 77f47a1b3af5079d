"""axe-core finds nothing on the hub's own pages, in light and dark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from support.front.axe import violations_light_and_dark
from support.front.browser import chromium, new_context
from support.hubs.hub_stack import PASSWORD, HubStack

LOGGED_OUT = {"login": "#username_input", "signup": "#signup_submit"}
LOGGED_IN = {
    "home": "#start",
    "spawn": "#spawn_form",
    "token": "#request-token-form",
    "change-password": "#change_password_submit",
    "confirm": "#confirm_submit",
    "nowhere": "h1",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def person(stack: HubStack) -> str:
    stack.add("ann")
    return "ann"


def test_the_hubs_pages_have_no_violation(stack: HubStack, browser: Browser, person: str) -> None:
    context = new_context(browser)
    page = context.new_page()
    found = [f"{name}: {line}" for name, mark in LOGGED_OUT.items() for line in look(stack, page, name, mark)]
    page.goto(f"{stack.url}/hub/login")
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("html")).to_have_attribute("data-bs-theme", scheme)
    page.locator("#username_input").fill(person)
    page.locator("#password_input").fill("not this one")
    page.locator("#login_submit").click()
    expect(page.locator(".login_error")).to_be_visible()
    found += [f"login refused: {line}" for line in violations_light_and_dark(page)]
    page.locator("#username_input").fill(person)
    page.locator("#password_input").fill(PASSWORD)
    page.locator("#login_submit").click()
    page.wait_for_url(lambda url: "/hub/login" not in url)
    found += [f"{name}: {line}" for name, mark in LOGGED_IN.items() for line in look(stack, page, name, mark)]
    context.close()
    assert not found, "\n".join(found)


def test_a_server_that_starts_and_a_page_full_of_tokens_have_no_violation(
    stack: HubStack, browser: Browser
) -> None:
    user = "lea"
    stack.add(user)
    context = new_context(browser, width=420)
    page = context.new_page()
    page.goto(f"{stack.url}/hub/login")
    page.locator("#username_input").fill(user)
    page.locator("#password_input").fill(PASSWORD)
    page.locator("#login_submit").click()
    page.wait_for_url("**/services/mlp/**")  # the first steps
    page.goto(f"{stack.url}/hub/spawn/{user}")
    page.locator("#spawn_form").wait_for()
    page.route("**/server/progress*", lambda route: route.abort())  # or the page goes on to the server
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", name="Your notebook server is starting")).to_be_visible()
    found = [f"spawn-pending: {line}" for line in violations_light_and_dark(page)]
    for _ in range(2):
        page.goto(f"{stack.url}/hub/token", wait_until="networkidle")  # its scripts come late
        page.get_by_label("Purpose").fill("nightly")
        page.get_by_role("button", name="Request new API token").click()
        expect(page.locator("#token-area")).to_be_visible()
    found += [f"token: {line}" for line in look(stack, page, "token", "#api-tokens-table")]
    assert page.evaluate("document.documentElement.scrollWidth") == 420
    context.close()
    assert not found, "\n".join(found)


def look(stack: HubStack, page: Page, name: str, mark: str) -> list[str]:
    page.goto(f"{stack.url}/hub/{name}")
    expect(page.locator(mark).first).to_be_attached()
    expect(page.locator("main")).to_have_count(1)
    return violations_light_and_dark(page)


def test_announcements_appear_on_the_hubs_pages_until_they_are_dismissed(
    stack: HubStack, browser: Browser
) -> None:
    user = "amy"
    stack.add(user)
    told = {"level": "warning", "tenant": "", "text": "The hub is <b>down</b> on Sunday."}
    stack.tell_service(
        announced={user: [{"id": 7, **told}, {"id": 8, "level": "info", "tenant": "red", "text": "Cake."}]}
    )
    context = new_context(browser, width=420)
    page = context.new_page()
    page.goto(f"{stack.url}/hub/login")
    expect(page.locator("#mlp-announced")).to_have_count(0)
    page.locator("#username_input").fill(user)
    page.locator("#password_input").fill(PASSWORD)
    page.locator("#login_submit").click()
    page.wait_for_url("**/services/mlp/**")
    found = look(stack, page, "home", "#mlp-announced")
    told_here = page.get_by_role("region", name="Announcements")
    expect(told_here).to_contain_text("The hub is <b>down</b> on Sunday.")  # as text
    expect(told_here).to_contain_text("Cake. · to team red")
    assert page.evaluate("document.documentElement.scrollWidth") == 420
    told_here.get_by_role("button", name="Hide: The hub").click()
    expect(told_here).not_to_contain_text("Sunday")
    page.goto(f"{stack.url}/hub/token")
    expect(told_here).to_contain_text("Cake.")
    expect(told_here).not_to_contain_text("Sunday")
    assert page.evaluate("localStorage.getItem('mlp-announcements-away')") == "[7]"  # as the panel keeps it
    context.close()
    assert not found, "\n".join(found)
