"""Files of a job and models in the panel: listed, walked through, fetched, staged; empty, error, keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from support.front.browser import shot
from support.front.pages import LOOKS, Pages, fits, story
from support.front.service import FrontService
from support.front.shapes import file


@pytest.mark.parametrize("look", LOOKS)
def test_models_are_listed_with_state_stage_and_what_is_wrong(
    pages: Pages, front: FrontService, look: str
) -> None:
    dark, width = LOOKS[look]
    page = pages.panel("models", dark=dark, width=width)
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="digits@2")).to_contain_text("production")
    expect(rows.filter(has_text="digits@2")).to_contain_text("3 MiB")
    expect(rows.filter(has_text="notes@1")).to_contain_text("it contains no model, but notes.txt")
    expect(rows.filter(has_text="big@1")).to_contain_text("being copied")
    shot(page, f"panel-models-{look}", full=True)
    assert fits(page)
    page.get_by_role("link", name="digits@2").press("Enter")
    expect(page.get_by_role("heading", name="digits@2", level=1)).to_be_visible()
    expect(page.locator("main")).to_contain_text("From jobs/digits@2/ckpt")
    expect(page.locator("main")).to_contain_text("accuracy 0.98")
    expect(page.get_by_role("link", name="model.safetensors")).to_have_attribute(
        "href", "/services/mlp/api/v1/users/ann/models/digits%402/files/content?path=model.safetensors"
    )
    shot(page, f"panel-model-{look}", full=True)
    assert fits(page)
    assert not pages.unexpected()


def test_a_version_is_staged_from_its_page(pages: Pages, front: FrontService) -> None:
    page = pages.panel("models/ann/digits@1")
    expect(page.locator("main")).to_contain_text("load only models that you trust")
    with page.expect_request(lambda r: r.method == "PUT") as asked:
        page.get_by_label("Stage").select_option("staging")
    assert asked.value.url.endswith("/users/ann/models/digits%401:stage")
    assert asked.value.post_data_json == {"stage": "staging"}
    expect(page.get_by_label("Stage")).to_have_value("staging")


def test_no_models_and_no_answer_are_told(pages: Pages, front: FrontService) -> None:
    front.data.models.clear()
    page = pages.panel("models")
    expect(page.locator(".mlp-empty")).to_contain_text("No models yet")
    expect(page.locator(".mlp-empty")).to_contain_text("%mlp models register")
    front.data.forced["GET /users/ann/models"] = (503, {"msg": "the database is away"})
    page = pages.panel("models")
    expect(page.get_by_role("alert")).to_contain_text("the database is away")
    page = pages.panel("models/ann/nothing")
    expect(page.get_by_role("alert")).to_contain_text("model nothing does not exist")


def test_files_of_a_job_are_walked_through_and_names_stay_text(pages: Pages, front: FrontService) -> None:
    story(front)
    front.data.files.append(file("<b>x</b>&?#.bin", size=5))
    page = pages.panel("jobs/ann/digits")
    files = page.get_by_role("region", name="Files")
    expect(files.get_by_role("link", name="model.safetensors")).to_be_visible()
    expect(files).to_contain_text("latest (a link)")
    expect(files.locator("b")).to_have_count(0)
    hostile = files.get_by_role("link", name="<b>x</b>&?#.bin")
    expect(hostile).to_have_attribute(
        "href",
        "/services/mlp/api/v1/users/ann/jobs/digits/files/content?path=%3Cb%3Ex%3C%2Fb%3E%26%3F%23.bin",
    )
    front.data.files[:] = []
    with page.expect_request(lambda r: "path=step" in r.url):
        files.get_by_role("button", name="step/").press("Enter")
    expect(files).to_contain_text("No files here")
    with page.expect_request(lambda r: r.url.endswith("path=")):
        files.get_by_role("button", name="Up").press("Enter")
    assert not pages.unexpected()
