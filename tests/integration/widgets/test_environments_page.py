"""Environments of a team: made by keyboard with what is wrong said at its field, looked at, deleted after a question."""

from __future__ import annotations

from playwright.sync_api import expect

from support.front.axe import assert_accessible
from support.front.browser import shot
from support.front.pages import Pages, fits
from support.front.service import FrontService


def test_one_is_made_by_keyboard_looked_at_and_deleted_after_a_question(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("environments")
    region = page.get_by_role("region", name="Environments of default")
    expect(region).to_contain_text("pandas 3.0.2, numpy 2.4.1, python-dateutil 2.9.0 and 2 more")
    expect(region).to_contain_text("No solution found when resolving dependencies")
    page.get_by_role("button", name="Create an environment").press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type("Vision")
    page.keyboard.press("Enter")
    expect(region.get_by_role("alert").first).to_have_text("vision already exists")
    page.get_by_label("Name", exact=True).fill("speech")
    page.get_by_label("Requirements").fill("-e .\n")
    refusal = {
        "msg": "line 1 of the requirements is -e .: it is an option; leave it out",
        "reason": "Invalid",
    }
    front.data.forced["POST /tenants/default/environments"] = (403, refusal)
    page.get_by_role("button", name="Create", exact=True).click()
    expect(region.get_by_role("alert")).to_contain_text("line 1 of the requirements")
    expect(page.get_by_label("Requirements")).to_be_focused()
    assert_accessible(page)
    shot(page, "panel-create-environment", full=True)
    fits(page)
    front.data.forced.clear()
    page.get_by_label("Requirements").fill("librosa\n")
    page.get_by_role("button", name="Create", exact=True).click()
    row = region.get_by_role("row").filter(has_text="speech")
    expect(row).to_contain_text("being resolved")
    page.get_by_role("button", name="Delete environment speech").click()
    expect(page.get_by_role("dialog")).to_contain_text("Jobs and notebook servers can no longer use it.")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_contain_text("being deleted")
    vision = front.data.environments.rows[0]
    vision |= {"jobs": [], "servers": ["bob's notebook"]}
    served = region.get_by_role("row").filter(has_text="vision")
    expect(served).to_contain_text("ready")
    page.reload()
    page.get_by_role("button", name="Delete environment vision").click()
    told = "Running notebook servers were started with it: bob's notebook. It stays until they end."
    expect(page.get_by_role("dialog")).to_contain_text(told)
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    vision["jobs"] = ["digits"]
    page.get_by_role("link", name="vision").click()
    main = page.locator("main")
    expect(main).to_contain_text("The same files as same; charged once")
    expect(main).to_contain_text("Used by digits, bob's notebook")
    expect(main).to_contain_text("%mlp submit train.py --env-name vision")
    assert_accessible(page)


def test_one_with_pytorch_is_a_click_until_there_is_one(pages: Pages, front: FrontService) -> None:
    page = pages.panel("environments")
    region = page.get_by_role("region", name="Environments of default")
    offer = region.get_by_role("button", name="Create one with PyTorch")
    refusal = {"msg": "team default has no network, and packages are fetched over one", "reason": "Invalid"}
    front.data.forced["POST /tenants/default/environments"] = (403, refusal)
    offer.click()
    expect(region.get_by_role("alert")).to_contain_text("team default has no network")
    assert_accessible(page)
    front.data.forced.clear()
    shot(page, "panel-offers-pytorch", full=True)
    assert fits(page)
    offer.press("Enter")
    expect(region.get_by_role("row").filter(has_text="pytorch")).to_contain_text("being resolved")
    expect(offer).to_have_count(0)
    assert front.data.environments.asked == {"name": "pytorch", "requirements": "torch\n"}


def test_where_jobs_run_in_containers_one_is_an_image(pages: Pages, front: FrontService) -> None:
    front.data.environments.of_images()
    front.data.session["images"] = True
    page = pages.panel("environments")
    region = page.get_by_role("region", name="Environments of default")
    expect(region).to_contain_text("registry.example.org/ml/speech:1")
    expect(region).not_to_contain_text("PyTorch")
    expect(region.get_by_role("columnheader", name="Size")).to_have_count(0)
    page.get_by_role("button", name="Create an environment").press("Enter")
    page.keyboard.type("text")
    expect(page.get_by_label("Requirements")).to_have_count(0)
    page.get_by_label("Image", exact=True).fill("not an image")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_label("Image", exact=True)).to_be_focused()
    expect(region.get_by_role("alert").first).to_contain_text("registry.example.org/team/train:1")
    page.get_by_label("Image", exact=True).fill("evil.example/train:1")
    refusal = {
        "msg": "image evil.example/train:1 is not allowed for environments of teams here",
        "reason": "Forbidden",
    }
    front.data.forced["POST /tenants/default/environments"] = (403, refusal)
    page.get_by_role("button", name="Create", exact=True).click()
    expect(region.get_by_role("alert")).to_contain_text("is not allowed for environments of teams here")
    expect(page.get_by_label("Image", exact=True)).to_be_focused()
    assert_accessible(page)
    shot(page, "panel-create-environment-of-an-image", full=True)
    fits(page)
    front.data.forced.clear()
    page.get_by_label("Image", exact=True).fill("registry.example.org/ml/text:1")
    page.get_by_role("button", name="Create", exact=True).click()
    row = region.get_by_role("row").filter(has_text="registry.example.org/ml/text:1")
    expect(row).to_contain_text("ready")
    page.get_by_role("button", name="Delete environment text").click()
    expect(page.get_by_role("dialog")).to_contain_text(
        "Running servers keep it; the image stays in its registry."
    )
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    page.get_by_role("link", name="vision").click()
    main = page.locator("main")
    expect(main).to_contain_text("registry.example.org/ml/vision@sha256:")
    expect(main).not_to_contain_text("Requirements")
    assert_accessible(page)
    fits(page)
