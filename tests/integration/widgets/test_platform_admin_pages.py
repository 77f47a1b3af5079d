"""The pages of who runs the platform: the overview, nodes out of service, announcements, people from a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from support.front.admin import an_announcement, imported
from support.front.axe import assert_accessible
from support.front.browser import shot, two_frames
from support.front.pages import LOOKS, Pages
from support.front.service import FrontService
from support.waiting import wait_for

MARKUP = "<img src=x onerror=document.title='hit'> <b>bold</b>"


@pytest.mark.parametrize("look", LOOKS)
def test_the_overview_looks_right(pages: Pages, front: FrontService, look: str) -> None:
    dark, width = LOOKS[look]
    front.data.admin.announcements = [
        an_announcement(1, "The hub restarts at noon.", level="warning"),
        an_announcement(2, "Red meets at four.", tenant="red"),
    ]
    front.data.admin.problems = [
        {"component": "disk", "reason": "DiskFull", "message": "the disk is nearly full"}
    ]
    front.data.admin.app_troubles = [
        {"user": "bob", "name": "line", "tenant": "red", "message": "its replicas end: ModuleNotFoundError"}
    ]
    page = pages.panel("admin", dark=dark, width=width)
    expect(page.locator("main")).to_contain_text("Waiting work and reasons")
    wrong = page.get_by_role("region", name="Problems")
    expect(wrong.get_by_role("listitem").filter(has_text="ModuleNotFoundError")).to_contain_text(
        "App line of bob"
    )
    expect(wrong.get_by_role("link", name="App line of bob")).to_have_attribute(
        "href", "/services/mlp/app/bob/line"
    )
    expect(page.get_by_role("region", name="Problems")).to_contain_text("The disk is nearly full")
    expect(page.get_by_role("region", name="Problems")).to_contain_text("node-2")
    expect(
        page.get_by_role("region", name="Problems").get_by_role("link", name="2 alerts fire")
    ).to_be_visible()
    expect(page.get_by_role("region", name="Current use by team")).to_contain_text("red")
    expect(page.get_by_role("region", name="Waiting work and reasons")).to_contain_text("digits-4")
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0
    shot(page, f"panel-overview-{look}", full=True)


def test_an_overview_of_nothing_says_so(pages: Pages, front: FrontService) -> None:
    front.data.queue, front.data.nodes, front.data.tenants = [], [], {}
    front.data.alerts.alerts = []
    page = pages.panel("admin")
    expect(page.locator("main")).to_contain_text("The platform knows of no problem.")
    expect(page.locator("main")).to_contain_text("Nothing is waiting")
    expect(page.locator("main")).to_contain_text("Nobody holds anything")
    assert_accessible(page)


def test_taking_a_node_out_of_service_shows_beforehand_what_it_stops_and_can_be_reverted(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("admin/nodes")
    page.get_by_role("button", name="Take out of service: node-1").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(
        "job digits-3 of bob, team red · 1 of its 3 ranks · saves a checkpoint every"
    )
    expect(dialog).to_contain_text("notebook server of bob")
    expect(dialog).to_contain_text("All of this continues until it ends; no new work starts there.")
    dialog.get_by_role("button", name="Take out of service").click()
    why = dialog.get_by_label("Why")
    expect(why).to_have_accessible_description("Enter a reason; owners of stopped work read it")
    assert front.data.admin.drained == {}
    assert_accessible(page)
    why.fill("a new kernel")
    expect(why).to_have_attribute("aria-invalid", "false")
    dialog.get_by_label("Move its work away").check()
    expect(dialog).to_contain_text("Notebook servers are stopped")
    assert_accessible(page)
    shot(page, "panel-drain")
    dialog.get_by_role("button", name="Take out of service").click()
    expect(dialog).to_have_count(0)
    assert front.data.admin.drained["node-1"]["evict"] is True
    expect(page.get_by_role("region", name="Node node-1")).to_contain_text("a new kernel")
    page.get_by_role("button", name="Put back into service …: node-1", exact=True).click()
    expect(dialog).to_contain_text("a new kernel · ann, since")
    dialog.get_by_role("button", name="Put back into service").click()
    expect(page.get_by_role("region", name="Node node-1")).to_contain_text("Up")
    assert front.data.admin.drained == {}


def test_an_announcement_is_made_shown_as_text_put_away_and_taken_back(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("admin")
    card = page.get_by_role("region", name="Announcements")
    card.get_by_role("button", name="Announce").click()
    card.get_by_role("button", name="Announce").click()
    expect(card).to_contain_text("Enter a text")
    card.get_by_label("Text").fill(MARKUP)
    card.get_by_label("Level").select_option("critical")
    card.get_by_role("button", name="Announce").click()
    expect(card.get_by_role("row")).to_have_count(2)
    [made] = front.data.admin.announcements
    assert (made["level"], made["text"]) == ("critical", MARKUP)
    page.reload()
    bar = page.get_by_role("alert").filter(has_text="<b>bold</b>")
    expect(bar).to_be_visible()
    expect(page.locator("main img, main b:text('bold')")).to_have_count(0)
    expect(page).not_to_have_title("hit")
    bar.get_by_role("button").click()
    expect(bar).to_have_count(0)
    page.reload()
    expect(page.get_by_role("region", name="Problems")).to_be_visible()
    expect(bar).to_have_count(0)
    page.get_by_role("button", name="Take back: ").click()
    page.get_by_role("dialog").get_by_role("button", name="Take back").click()
    expect(page.locator("main")).to_contain_text("Nothing is announced")


def test_an_admin_of_a_team_tells_its_members(pages: Pages, front: FrontService) -> None:
    front.data.session |= {"admin": False, "tenants": ["red"], "tenant_admin": ["red"]}
    page = pages.panel("tenants/red#settings")
    card = page.get_by_role("region", name="Announcements")
    card.get_by_role("button", name="Announce").click()
    card.get_by_label("Text").fill("Red meets at four.")
    card.get_by_role("button", name="Announce").click()
    expect(card).to_contain_text("Red meets at four.")
    assert [a["tenant"] for a in front.data.admin.announcements] == ["red"]


def choose(page: Page, path: Path) -> None:
    page.get_by_label("File").set_input_files(str(path))


def test_the_import_shows_who_becomes_a_platform_admin(
    pages: Pages, front: FrontService, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text("name,team,admin\ntina,red,yes\nzoe,red,no\n")
    front.data.admin.people = [imported(2, "tina", "new", admin=True), imported(3, "zoe", "new")]
    page = pages.panel("admin/users")
    page.get_by_role("button", name="Import people").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("makes a platform administrator, not an admin of the team")
    choose(page, tmp_path / "people.csv")
    expect(dialog.get_by_text("Platform administrator", exact=True)).to_have_count(1)
    expect(dialog.get_by_text("Admin", exact=True)).to_have_count(0)
    dialog.get_by_role("button", name="Import 2 people").click()
    expect(dialog).to_contain_text("k3Xp9QzLm2Rt7w")
    assert front.data.admin.imports[1]["csv"] == "name,team,platform_admin\ntina,red,yes\nzoe,red,no"


def test_the_file_that_was_chosen_last_is_shown_though_an_earlier_answer_comes_later(
    pages: Pages, front: FrontService, tmp_path: Path
) -> None:
    for name in ("first", "last"):
        (tmp_path / f"{name}.csv").write_text(f"name,team,admin\n{name},red,no\n")
    page = pages.panel("admin/users")
    page.get_by_role("button", name="Import people").click()
    dialog = page.get_by_role("dialog")
    held: list[Route] = []
    page.route("**/users:import", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/users:import"):
        choose(page, tmp_path / "first.csv")
    front.data.admin.people = [imported(2, "last", "new")]
    choose(page, tmp_path / "last.csv")
    expect(dialog.get_by_role("button", name="Import 1 person")).to_be_visible()
    front.data.admin.people = [imported(2, "first", "new"), imported(3, "too", "new")]
    with page.expect_response("**/users:import"):
        held[0].continue_()
    two_frames(page)
    expect(dialog.get_by_role("button", name="Import 1 person")).to_be_visible()


def test_people_of_a_file_are_shown_first_then_made(
    pages: Pages, front: FrontService, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text("name,team,admin\nzoe,red,no\nbob,red,no\n=cmd,red,no\n", "utf-16")
    page = pages.panel("admin/users")
    page.get_by_role("button", name="Import people").click()
    dialog = page.get_by_role("dialog")
    choose(page, tmp_path / "people.csv")
    expect(dialog).to_contain_text("1 row makes a change · 1 row refused")
    expect(dialog).to_contain_text("cannot be a user name")
    assert [i["dry_run"] for i in front.data.admin.imports] == [True]
    assert front.data.admin.imports[0]["csv"].startswith("name,team,admin\nzoe")
    assert_accessible(page)
    shot(page, "panel-import")
    dialog.get_by_role("button", name="Import 1 person").click()
    expect(dialog).to_contain_text("k3Xp9QzLm2Rt7w")
    assert front.data.admin.imports[1] == {"csv": "name,team,platform_admin\nzoe,red,no", "dry_run": False}
    link = dialog.get_by_role("link", name="Save the passwords")
    assert (
        link.get_attribute("href") == "data:text/csv;charset=utf-8,name%2Cpassword%0D%0Azoe%2Ck3Xp9QzLm2Rt7w"
    )
    shot(page, "panel-imported")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)


def test_files_that_are_not_text_or_too_large_never_leave_the_browser(
    pages: Pages, front: FrontService, tmp_path: Path
) -> None:
    (tmp_path / "latin.csv").write_bytes(b"j\xf6rg,red,no")
    (tmp_path / "large.csv").write_bytes(b"a,red,no\n" * 1_200_000)
    page = pages.panel("admin/users")
    page.get_by_role("button", name="Import people").click()
    choose(page, tmp_path / "latin.csv")
    expect(page.get_by_role("alert")).to_contain_text("not text in UTF-8")
    choose(page, tmp_path / "large.csv")
    expect(page.get_by_role("alert")).to_contain_text("too large")
    assert front.data.admin.imports == []


def test_all_who_wait_are_approved_after_a_question_that_names_them(
    pages: Pages, front: FrontService
) -> None:
    new = {"state": "NotActive", "new": True, "tenants": []}
    front.data.users += [
        front.data._user("eve") | new,
        front.data._user("fay") | new | {"applied_for": "red"},
    ]
    page = pages.panel("admin/users")
    page.get_by_role("button", name="Approve all 3").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("fay applied for red")
    dialog.get_by_role("button", name="Approve all 3").click()
    expect(dialog).to_have_count(0)
    assert {u["state"] for u in front.data.users if u["username"] in {"dave", "eve", "fay"}} == {"Actived"}


def test_runs_of_everybody_are_searched_by_filters_that_are_terms(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/runs")
    expect(page.get_by_role("row").filter(has_text="run 3")).to_be_visible()
    page.get_by_label("State").select_option("error")
    page.get_by_label("Team", exact=True).select_option("red")
    page.get_by_label("Of user").fill("bob")
    page.get_by_label("Search, such as lr<0.1 tag=best").fill("lr<0.1")
    wanted = "lr%3C0.1%20state%3Derror%20tenant%3Dred%20user%3Dbob"
    expect(page.get_by_role("link", name="CSV")).to_have_attribute(
        "href", f"/services/mlp/api/v1/runs:csv?search={wanted}"
    )
    wait_for(lambda: any(f"search={wanted}" in q for q in front.queries), message="for the search")
    shot(page, "panel-all-runs")
