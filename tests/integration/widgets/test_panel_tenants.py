"""An admin's tenants in the panel: by keyboard alone, with refusals beside what was refused."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from support.front.browser import shot
from support.front.pages import LOOKS, Pages, fits
from support.front.service import FrontService


def tab_to(page: Page, name: str, most: int = 40) -> None:
    """Press Tab until the element of that text or label has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        text = page.evaluate(
            "(() => { const e = document.activeElement; return (e.labels?.[0]?.innerText || e.getAttribute('aria-label') || e.innerText || '').trim(); })()"
        )
        if text == name:
            return
    raise AssertionError(f"{name} cannot be reached with the Tab key")


def test_a_tenant_is_made_with_the_keyboard_alone(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/tenants")
    expect(page.get_by_role("table")).to_be_visible()
    tab_to(page, "New team")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.type("Green")
    expect(page.get_by_role("alert")).to_have_text(
        "a name can contain only a-z, 0-9 and dashes, must start with a letter and must not end with a dash, "
        "such as green"
    )
    page.keyboard.press("Control+A")
    page.keyboard.type("reserved")
    tab_to(page, "CPU")
    page.keyboard.type("two")
    expect(page.get_by_role("alert")).to_contain_text("cpu is a number")
    shot(page, "panel-new-tenant-errors", full=True)
    page.keyboard.press("Enter")
    expect(page.get_by_label("CPU")).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("2.5")
    tab_to(page, "Memory")
    page.keyboard.type("4 GiB")
    page.keyboard.press("Enter")
    # the service's own refusal, beside the field that it names
    expect(page.get_by_role("alert")).to_have_text("name reserved is kept for the platform; choose another")
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("green")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{front.url}/services/mlp/admin/tenants/green")
    tab_to(page, "Now")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Add a user")).to_be_visible()
    made = front.data.tenants["green"]
    assert {k: made[k] for k in ("cpu", "gpu", "ram", "rom")} == {
        "cpu": 2.5,
        "gpu": None,
        "ram": 4096,
        "rom": None,
    }
    tab_to(page, "Add a user")
    page.keyboard.type("bob")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Members", exact=True)).to_contain_text("bob")
    assert front.data.members["green"]["bob"]["role"] == "member"


def test_a_new_quota_is_previewed_before_it_is_saved(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/tenants/red")
    page.get_by_role("button", name="Edit quota").click()
    preview = page.get_by_role("status", name="Effect of this quota")
    expect(preview).to_contain_text("2 jobs would still wait")
    page.get_by_label("CPU").fill("6.2")
    expect(preview).to_contain_text("2 waiting jobs could start: digits-4, digits-5")
    shot(page, "panel-edit-quota", full=True)
    page.get_by_label("CPU").fill("2")
    expect(preview).to_contain_text("3.2 cpu in use, 1.2 cpu above the new quota")
    expect(preview).to_contain_text("Expected to be inside the quota by")
    shot(page, "panel-edit-quota-over", full=True)
    assert front.data.tenants["red"]["cpu"] == 4.0, "a preview changes nothing"
    page.get_by_label("CPU").fill("lots")
    expect(preview).to_contain_text("Correct the fields")
    page.get_by_label("CPU").fill("6.2")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("region", name="Quota in use")).to_contain_text("3.2 of 6.2")
    assert front.data.tenants["red"]["description"] == "Vision"


def test_whom_a_tenant_shares_with_is_set_by_keyboard_and_faults_unfold_the_section(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("admin/tenants/red")
    page.get_by_role("button", name="Edit quota").click()
    expect(page.get_by_role("group").filter(has_text="with nobody")).to_be_visible()
    tab_to(page, "Order and sharing with nobody")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Borrow CPU")).to_be_visible()
    tab_to(page, "Borrow CPU")
    page.keyboard.type("2")
    expect(page.get_by_role("alert")).to_have_text("needs a cohort or a parent")
    page.get_by_label("Lend CPU").focus()  # so that the focus that comes is seen to come
    page.keyboard.press("Enter")
    expect(page.get_by_label("Borrow CPU")).to_be_focused()
    page.get_by_label("Cohort").fill("main")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_label("Lend CPU").fill("1")
    shot(page, "panel-sharing", full=True)
    # folded again, a fault of the service unfolds it and has the focus
    page.locator("summary").click()
    expect(page.get_by_label("Lend CPU")).to_have_count(0)
    refusal = {"msg": "lending_limit.cpu is 1 and red is not asked", "reason": "Invalid"}
    front.data.forced["PUT /tenants/red"] = (403, refusal)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_have_text(refusal["msg"])
    expect(page.get_by_label("Lend CPU")).to_be_focused()
    front.data.forced.clear()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("region", name="Quota in use")).to_contain_text(
        "In cohort main · borrows at most 2 cpu · lends at most 1 cpu"
    )
    saved = front.data.tenants["red"]
    assert [saved[f] for f in ("cohort", "parent", "borrowing_limit", "lending_limit", "reserved")] == [
        "main",
        None,
        {"cpu": 2},
        {"cpu": 1},
        None,
    ]


def test_the_network_of_a_tenant_is_shown_and_set(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/tenants/red")
    expect(
        page.get_by_text("Jobs of team red have no network; an administrator of the hub can allow it.")
    ).to_be_visible()
    page.get_by_role("button", name="Edit quota").click()
    choice = page.get_by_label("Network of its jobs and notebooks")
    expect(choice).to_have_value("")
    choice.select_option("Outbound")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Team red saved")).to_be_visible()
    assert front.data.tenants["red"]["network"] == "outbound"


def test_a_limit_that_a_lower_quota_makes_wrong_is_unfolded_and_told(pages: Pages) -> None:
    page = pages.panel("admin/tenants/blue")
    page.get_by_role("button", name="Edit quota").click()
    expect(page.get_by_label("Lend CPU")).to_have_count(0)
    page.get_by_label("CPU").fill("2")
    expect(page.get_by_role("alert")).to_have_text("is above the quota")
    expect(page.get_by_label("Lend CPU")).to_be_visible()


def test_borrowed_quota_also_fits_a_narrow_window(pages: Pages) -> None:
    page = pages.panel("admin/tenants/blue", dark=True, width=420)
    expect(page.get_by_role("region", name="Quota in use")).to_contain_text("4.36 GiB borrowed")
    page.get_by_role("button", name="Edit quota").click()
    page.locator("summary").click()
    expect(page.get_by_label("Borrow memory")).to_have_value("8 GiB")
    expect(page.get_by_role("status", name="Effect of this quota")).to_contain_text("is affected")
    shot(page, "panel-sharing-narrow", full=True)
    assert fits(page)


def test_borrowed_and_lent_quota_is_shown(pages: Pages) -> None:
    page = pages.panel("admin/tenants")
    expect(page.get_by_role("row").filter(has_text="blue")).to_contain_text("4.36 GiB borrowed")
    expect(page.get_by_role("row").filter(has_text="teal")).to_contain_text("4.36 GiB lent")
    page.get_by_role("link", name="blue").click()
    bars = page.get_by_role("region", name="Quota in use")
    expect(bars).to_contain_text("4.36 GiB borrowed · 3.64 GiB more to borrow")
    expect(bars).to_contain_text("In cohort main")
    shot(page, "panel-borrowed", full=True)


def test_a_tenant_in_use_is_not_deleted_and_the_dialog_says_why(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/tenants/red")
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Delete team").click()
    expect(dialog.get_by_role("alert")).to_contain_text("red has 1 running job")
    shot(page, "panel-delete-refused")
    front.data.tenants["red"]["running"] = 0
    dialog.get_by_role("button", name="Delete team").click()
    expect(page).to_have_url(f"{front.url}/services/mlp/admin/tenants")
    assert "red" not in front.data.tenants


def test_the_focus_stays_in_a_dialog_and_returns_after_it(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/tenants/red")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog").get_by_role("button", name="Cancel")).to_be_focused()
    for _ in range(5):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('dialog') !== null")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Delete")).to_be_focused()


def test_known_users_are_offered_as_members(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/tenants/red#people")
    offered = page.locator("datalist option")
    expect(offered.first).to_be_attached()
    names = offered.evaluate_all("options => options.map((o) => o.value)")
    assert "carol" in names
    assert "ann" not in names  # is one already


def test_members_change_role_and_leave_and_strangers_are_refused(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/tenants/red#people")
    page.get_by_label("Role of bob").select_option("admin")
    expect(page.get_by_role("status").filter(has_text="bob is now admin of red")).to_be_visible()
    page.get_by_label("Add a user").fill("nobody")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("alert")).to_have_text("user nobody does not exist")
    page.get_by_role("button", name="Remove bob").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("button", name="Remove bob")).to_have_count(0)
    assert list(front.data.members["red"]) == ["ann"]


@pytest.mark.parametrize("look", LOOKS)
def test_a_legend_explains_the_colours_of_bars_that_show_more_than_use(
    pages: Pages, front: FrontService, look: str
) -> None:
    dark, width = LOOKS[look]
    front.data.tenants["red"] |= {
        "cohort": "main",
        "cpu": 3.0,
        "cpu_inuse": 6.0,
        "borrowed": {"cpu": 3.0},
        "over": {"cpu": 1.0},
        "lent": {"ram": 2048},
        "ram_inuse": 1024,
        "free": {"cpu": 0.0, "ram": 10_240},
    }
    page = pages.panel("admin/tenants/red", dark=dark, width=width)
    quota = page.get_by_role("region", name="Quota in use")
    legend = quota.get_by_role("list", name="Meaning of the bars' colours")
    expect(legend.get_by_role("listitem")).to_have_text(
        [
            "own use",
            "borrowed: others take it back when they need it",
            "beyond its limit",
            "lent: others use it now and give it back when it is needed",
        ]
    )
    expect(quota).to_contain_text("6 of 3 · 1 beyond quota · 2 borrowed")
    expect(quota).to_contain_text("1 GiB of 8 GiB · 2 GiB lent · 5 GiB free · 5 GiB more to borrow")
    lengths = {
        round(b["width"])
        for b in quota.locator(".mlp-bar").evaluate_all(
            "bars => bars.map(b => ({width: b.getBoundingClientRect().width}))"
        )
    }
    assert len(lengths) == 1
    shot(page, f"panel-quota-legend-{look}", full=True)
    assert fits(page)
