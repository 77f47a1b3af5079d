"""People in the panel: sign-ups, accounts and what each act on one ends."""

from __future__ import annotations

from playwright.sync_api import expect

from support.front.browser import shot
from support.front.pages import Pages
from support.front.service import FrontService


def test_users_are_approved_put_into_tenants_and_deactivated(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/users")
    page.get_by_role("button", name="Approve dave").click()
    expect(page.get_by_role("button", name="Approve dave")).to_have_count(0)
    page.get_by_role("button", name="Add to team: carol").click()
    page.get_by_role("dialog").get_by_label("Team", exact=True).select_option("red")
    shot(page, "panel-add-to-tenant")
    page.get_by_role("dialog").get_by_role("button", name="Add").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert front.data.members["red"]["carol"]["role"] == "member"
    expect(page.get_by_role("status").first).to_contain_text("carol is no longer in default")
    page.get_by_role("button", name="Manage carol").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Deactivate").click()
    expect(dialog).to_contain_text("Deactivate carol?")
    expect(dialog).to_contain_text("2 running jobs continue until they end.")
    expect(dialog).to_contain_text("The home directory stays")
    dialog.get_by_label("Jobs").select_option("stop")
    dialog.get_by_label("Files").select_option("remove")
    expect(dialog).to_contain_text("2 running jobs are cancelled.")
    expect(dialog).to_contain_text("The home directory, 4.66 GiB, is removed")
    shot(page, "panel-leaves")
    dialog.get_by_role("button", name="Deactivate").click()
    expect(page.get_by_role("row").filter(has_text="carol")).to_contain_text("Deactivated")


def test_managing_an_account_shows_beforehand_what_each_action_ends(
    pages: Pages, front: FrontService
) -> None:
    carol = next(u for u in front.data.users if u["username"] == "carol")
    carol["servers"] = 1
    page = pages.panel("admin/users")
    row = page.get_by_role("row").filter(has_text="carol")
    expect(row).to_contain_text("1 notebook")
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Manage carol").click()
    expect(dialog).to_contain_text("Stops 1 notebook server. Saved files stay, running work in it is lost.")
    expect(dialog).to_contain_text(
        "Ends all logins and tokens of carol and stops notebook servers. Jobs continue."
    )
    shot(page, "panel-account")
    dialog.get_by_role("button", name="New password").click()
    expect(dialog).to_contain_text("made-up-password")
    shot(page, "panel-new-password")
    dialog.get_by_role("button", name="Close").click()
    for label, route in (
        ("Stop notebook", "PUT /users/carol:stop_servers"),
        ("Log out everywhere", "PUT /users/carol:logout"),
        ("Make admin", "PUT /users/carol:admin"),
    ):
        page.get_by_role("button", name="Manage carol").click()
        dialog.get_by_role("button", name=label).click()
        expect(dialog).to_have_count(0)
        assert route in front.seen
    expect(row).to_contain_text("Platform administrator")
    expect(row).not_to_contain_text("notebook")
    page.get_by_role("button", name="Manage ann").click()  # oneself
    expect(dialog).to_contain_text("the hub's page Password")
    assert not pages.unexpected()


def test_of_many_users_a_page_is_shown_and_others_are_found_by_a_part_of_their_names(
    pages: Pages, front: FrontService
) -> None:
    front.data.users += [front.data._user(f"crowd{n:03d}") for n in range(250)]
    page = pages.panel("admin/users")
    expect(page.locator("main")).to_contain_text("254 users, 1 waiting for approval")
    rows = page.get_by_role("table").get_by_role("row")
    expect(rows).to_have_count(1 + 100)  # dave, who waits, stands first and once
    page.get_by_role("button", name="Show more").click()
    expect(rows).to_have_count(1 + 200)
    page.get_by_label("Find a user").fill("CROWD24")
    expect(rows).to_have_count(1 + 10)
    expect(page.locator("main")).to_contain_text('10 users with "crowd24"')


def test_a_sign_up_is_counted_in_the_navigation_and_can_be_refused(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/users")
    expect(page.get_by_role("link", name="Users")).to_contain_text("1 to approve")
    shot(page, "panel-sign-up")
    page.get_by_role("button", name="Refuse dave").click()
    page.get_by_role("dialog").get_by_role("button", name="Refuse").click()
    expect(page.get_by_role("row").filter(has_text="dave")).to_have_count(0)
    assert "dave" not in [u["username"] for u in front.data.users]


def test_a_prompt_to_enter_the_password_again_links_to_its_page_and_keeps_the_current_one(
    pages: Pages, front: FrontService
) -> None:
    front.data.forced["PUT /users/bob"] = (403, {"msg": "...", "reason": "LoginTooOld"})
    page = pages.panel("admin/users")
    page.get_by_role("button", name="Manage bob").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Deactivate").click()
    expect(dialog).to_contain_text("Deactivate bob?")
    dialog.get_by_role("button", name="Deactivate").click()
    way = dialog.get_by_role("link", name="Enter your password")
    expect(way).to_have_attribute("href", "/hub/confirm")
    expect(way).to_have_attribute("target", "_blank")
    del front.data.forced["PUT /users/bob"]
    dialog.get_by_role("button", name="Deactivate").click()
    expect(dialog).to_have_count(0)


def test_the_add_dialog_shows_beforehand_that_a_user_leaves_default(
    pages: Pages, front: FrontService
) -> None:
    for user in front.data.users:
        user["tenants"] = ["default"] if user["username"] == "carol" else user["tenants"]
    page = pages.panel("admin/users")
    page.get_by_role("button", name="Add to team: carol").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Team", exact=True).select_option("red")
    expect(dialog).to_contain_text("carol is in default only while carol is in no other team")
    shot(page, "panel-leaves-default")


def test_a_team_admin_sees_where_the_work_of_an_added_member_goes(pages: Pages, front: FrontService) -> None:
    front.data.session |= {"admin": False}  # who may list nobody, and so learns it only from the answer
    page = pages.panel("tenants/red#people")
    page.get_by_label("Add a user").fill("carol")
    form = page.get_by_role("form", name="Add a member to red")
    # before anything is sent
    expect(form).to_contain_text("A user who is only in default leaves it: their new work counts for red")
    form.get_by_role("button", name="Add").click()
    expect(form).to_contain_text("carol added to red: carol stays in default too")
    told = page.locator(".mlp-toast")
    expect(told).to_contain_text("carol stays in default too")
    told.get_by_role("button", name="Dismiss").click()  # at once: after a few seconds it goes by itself
    expect(told).to_have_count(0)
    expect(form).to_contain_text("carol stays in default too")
    shot(page, "panel-stays-in-default", full=True)


def test_the_badge_follows_an_approval_at_once(pages: Pages, front: FrontService) -> None:
    pages.still = True
    page = pages.panel("admin/users")
    badge = page.get_by_role("link", name="Users").locator(".mlp-count")
    expect(badge).to_have_text("1 to approve")
    page.get_by_role("button", name="Approve").first.click()
    expect(badge).to_have_count(0)


def test_a_platform_admin_reads_the_page_of_a_user(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/users")
    page.get_by_role("table").get_by_role("link", name="ann", exact=True).click()
    account = page.get_by_role("region", name="Account")
    expect(account).to_contain_text("Platform administrator")
    expect(account.get_by_role("link")).to_have_text(["default", "red"])
    expect(account).to_contain_text("Last active")
    expect(
        page.get_by_role("region", name="Newest jobs").get_by_role("link", name="digits", exact=True)
    ).to_be_visible()
    expect(page.get_by_role("region", name="In use")).to_be_visible()
    assert not pages.unexpected()
