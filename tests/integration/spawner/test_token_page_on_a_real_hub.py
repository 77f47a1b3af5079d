"""The page of tokens: made with few rights, listed with the last use and from where, revoked; by keyboard, in Chinese, narrow."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from mlp_hub.api.auth.scopes import ACCESS, USER_SCOPES
from support.front.axe import violations_light_and_dark
from support.front.browser import chromium, new_context, shot
from support.hubs.hub_stack import PASSWORD, HubStack


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def opened(stack: HubStack, browser: Browser, name: str, *, width: int = 1280, locale: str = "en-US") -> Page:
    """Log a new person in and go to the page."""
    stack.add(name)
    page = new_context(browser, width=width, locale=locale).new_page()
    page.goto(f"{stack.url}/hub/login?next=/hub/token")
    page.locator("#username_input").fill(name)
    page.locator("#password_input").fill(PASSWORD)
    page.locator("#login_submit").click()
    page.wait_for_url("**/hub/token")
    ready(page)
    return page


def ready(page: Page) -> None:
    """Wait until JupyterHub's script has taken the page over."""
    page.wait_for_function("window._jupyterhub_page_loaded === true")


def tokens(stack: HubStack, name: str) -> list[dict]:
    found = stack.api("GET", f"/users/{name}/tokens").json()["api_tokens"]
    return [one for one in found if one["oauth_client"] == "JupyterHub"]


def test_a_token_is_made_with_few_rights_for_a_month_and_revoked(stack: HubStack, browser: Browser) -> None:
    page = opened(stack, browser, "tia")
    expect(page.locator("#mlp-no-tokens")).to_be_visible()
    expect(page.get_by_text("mlp login", exact=True)).to_be_visible()
    page.get_by_label("Purpose").press_sequentially("nightly")
    page.keyboard.press("Enter")
    expect(page.locator("#token-result")).not_to_be_empty()
    secret = page.locator("#token-result").inner_text()
    me = stack.api("GET", "/user", secret).json()
    assert me["name"] == "tia"
    held = {scope.partition("!user=")[0] for scope in me["scopes"] if not scope.startswith("read:users")}
    assert held == {ACCESS, *USER_SCOPES}
    (one,) = tokens(stack, "tia")
    assert one["note"] == "nightly"
    assert one["expires_at"] is not None
    stack.tell_service(addresses={"tia": {one["id"]: ["10.9.8.7", time.time() + 86_400]}})
    page.reload()
    ready(page)
    row = page.get_by_role("row").filter(has_text="nightly")
    expect(row).to_contain_text("0 s ago from 10.9.8.7")
    expect(row).to_contain_text("in 30 days")
    # a notebook comes by the machine's own socket, from no address
    stack.tell_service(addresses={"tia": {one["id"]: ["uid:300002", time.time() + 86_400]}})
    page.reload()
    ready(page)
    expect(row).to_contain_text("0 s ago")
    expect(row).not_to_contain_text("uid:")
    row.get_by_text("scopes").click()
    expect(row).to_contain_text("jobs:write")
    shot(page, "hub-tokens", full=True)
    page.get_by_role("button", name="revoke nightly").press("Enter")
    expect(row).to_have_count(0)
    assert stack.api("GET", "/user", secret).status_code == 403
    told = [c.split(" ", 2)[2] for c in stack.ledger()["calls"] if c.startswith("ended tia ")]
    before, after = (json.loads(body) for body in told)
    assert before.pop("once")
    assert before == {"actor": "tia", "note": "nightly", "token": one["id"]}  # the entry, and then the change
    assert after == {**before, "recorded": True}
    page.context.close()


def test_usage_notes_of_an_old_token_are_not_shown_for_a_new_one(stack: HubStack, browser: Browser) -> None:
    page = opened(stack, browser, "tom")
    page.get_by_label("Purpose").fill("first")
    page.get_by_role("button", name="Request new API token").click()
    expect(page.locator("#token-result")).not_to_be_empty()
    (one,) = tokens(stack, "tom")
    stack.tell_service(addresses={"tom": {one["id"]: ["10.6.6.6", time.time() - 3600]}})
    page.reload()
    ready(page)
    expect(page.get_by_role("row").filter(has_text="first")).not_to_contain_text("10.6.6.6")
    stack.tell_service(limits={"addresses": 0})
    try:
        page.reload()
        ready(page)
        expect(page.get_by_role("alert").first).to_contain_text("are not available now")
        expect(page.get_by_role("row").filter(has_text="first")).to_be_visible()
    finally:
        stack.tell_service(limits={"addresses": 1})
    page.context.close()


def test_the_page_is_chinese_and_fits_a_narrow_window(stack: HubStack, browser: Browser) -> None:
    page = opened(stack, browser, "tea", width=420, locale="zh-CN")
    expect(page.get_by_role("heading", level=1)).to_have_text("您的令牌")
    page.get_by_label("用途").fill("<b>夜间任务</b> " + "x" * 80)
    page.get_by_label("权限", exact=True).select_option("提交、查看和停止作业")
    page.get_by_label("权限", exact=True).press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#token-result")).not_to_be_empty()
    shot(page, "hub-tokens-made", full=True)
    page.reload()
    ready(page)
    expect(page.get_by_role("row").filter(has_text="<b>夜间任务</b>")).to_contain_text("30 天")
    shot(page, "hub-tokens-narrow", full=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 420
    assert violations_light_and_dark(page) == []
    page.context.close()
