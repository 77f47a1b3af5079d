"""Datasets in the panel: listed, uploaded, walked through, fetched, deleted; empty, error, refused, stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from support.front.browser import shot
from support.front.files import dataset
from support.front.pages import LOOKS, Pages, fits
from support.front.service import FrontService
from support.waiting import wait_for


@pytest.mark.parametrize("look", LOOKS)
def test_datasets_are_listed_with_state_size_and_progress(
    pages: Pages, front: FrontService, look: str
) -> None:
    dark, width = LOOKS[look]
    page = pages.panel("datasets", dark=dark, width=width)
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="clips")).to_contain_text("being uploaded, 42 %")
    expect(rows.filter(has_text="old.scans")).to_contain_text("incomplete, 7 %")
    expect(rows.filter(has_text="spare").get_by_role("button")).to_have_count(0)
    shot(page, f"panel-datasets-{look}", full=True)
    assert fits(page)
    page.get_by_role("link", name="pets").press("Enter")
    expect(page.get_by_role("heading", name="pets", level=1)).to_be_visible()
    files = page.get_by_role("region", name="Files")
    expect(files.get_by_role("link", name="labels.csv")).to_have_attribute(
        "href", "/services/mlp/data/ann/pets/labels.csv"
    )
    expect(files.get_by_role("link", name="<b>odd & 100%.txt")).to_have_attribute(
        "href", "/services/mlp/data/ann/pets/%3Cb%3Eodd%20%26%20100%25.txt"
    )
    expect(files.locator("b")).to_have_count(0)
    files.get_by_role("button", name="train/").press("Enter")
    expect(files.get_by_role("link", name="cat-1.jpg")).to_have_attribute(
        "href", "/services/mlp/data/ann/pets/train/cat-1.jpg"
    )
    shot(page, f"panel-dataset-{look}", full=True)
    assert fits(page)
    assert not pages.unexpected()


def test_a_dataset_of_a_team_that_was_left_says_so(pages: Pages, front: FrontService) -> None:
    front.data.datasets.rows.append(dataset("kept", tenant="gone"))
    page = pages.panel("datasets")
    kept = page.get_by_role("row").filter(has_text="kept")
    expect(kept).to_contain_text("you left")
    expect(kept).to_contain_text("still counts in the storage of that team")
    expect(page.get_by_role("row").filter(has_text="pets")).not_to_contain_text("you left")


def test_chosen_files_become_a_dataset(pages: Pages, front: FrontService, tmp_path: Path) -> None:
    folder = tmp_path / "My Photos"
    (folder / "day 1").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    (folder / "day 1" / "b.txt").write_text("bb")
    page = pages.panel("datasets")
    page.get_by_label("Directory to upload").set_input_files(folder)
    expect(page.get_by_role("region", name="New dataset")).to_contain_text("2 files, 3 B")
    expect(page.get_by_label("Name")).to_have_value("my-photos")
    page.get_by_label("Name").fill("pets")
    expect(page.get_by_role("region", name="New dataset")).to_contain_text("A dataset of this name exists")
    expect(page.get_by_role("button", name="Upload")).to_be_disabled()
    page.get_by_label("Name").fill("photos")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name="photos", level=1)).to_be_visible()
    expect(page.locator("main")).to_contain_text("ready")
    files = {k: v for k, v in front.data.datasets.files.items() if k.startswith("photos")}
    assert files == {"photos/day 1": None, "photos/a.txt": b"a", "photos/day 1/b.txt": b"bb"}
    assert "without a token" not in front.data.datasets.asked
    assert not pages.unexpected()


def test_a_dropped_file_goes_where_one_is(pages: Pages, front: FrontService) -> None:
    page = pages.panel("datasets/ann/pets")
    files = page.get_by_role("region", name="Files")
    files.get_by_role("button", name="train/").click()
    expect(files.get_by_role("link", name="cat-1.jpg")).to_be_visible()
    page.evaluate(
        """() => {
            const carried = new DataTransfer();
            carried.items.add(new File(["meow"], "cat-2.jpg"));
            const target = document.querySelector(".mlp-drop");
            for (const type of ["dragover", "drop"]) {
                target.dispatchEvent(new DragEvent(type, { dataTransfer: carried, bubbles: true, cancelable: true }));
            }
        }"""
    )
    expect(files.get_by_role("link", name="cat-2.jpg")).to_be_visible()
    assert front.data.datasets.files["pets/train/cat-2.jpg"] == b"meow"
    wait_for(
        lambda: next(r for r in front.data.datasets.rows if r["name"] == "pets")["state"] == "ready",
        message="for it to be whole",
    )


def test_a_refused_file_is_told_with_the_words_of_the_service(
    pages: Pages, front: FrontService, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("x")
    front.data.datasets.refused = (507, {"msg": "red may use 64 GiB storage; all of it is in use"})
    page = pages.panel("datasets/ann/pets")
    page.get_by_label("Files to upload").set_input_files(tmp_path / "f")
    expect(page.get_by_role("alert")).to_contain_text("red may use 64 GiB storage")
    wait_for(
        lambda: next(r for r in front.data.datasets.rows if r["name"] == "pets")["state"] == "error",
        message="for it to be told that it is not whole",
    )


def test_datasets_and_files_are_deleted_once_that_is_confirmed(pages: Pages, front: FrontService) -> None:
    page = pages.panel("datasets/ann/pets")
    page.get_by_role("button", name="Delete labels.csv").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert "pets/labels.csv" in front.data.datasets.files
    page.get_by_role("button", name="Delete labels.csv").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("link", name="labels.csv")).to_have_count(0)
    assert "pets/labels.csv" not in front.data.datasets.files
    page = pages.panel("datasets")
    page.get_by_role("button", name="Delete clips").click()
    expect(page.get_by_role("dialog")).to_contain_text("5 GiB, are removed for good")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("row").filter(has_text="clips")).to_contain_text("being deleted")
    assert "PUT /users/ann/datasets/clips:heartbeat" in front.seen, "an upload that nobody ends is ended"


def test_no_datasets_and_no_answer_are_told(pages: Pages, front: FrontService) -> None:
    front.data.datasets.rows.clear()
    page = pages.panel("datasets")
    expect(page.locator(".mlp-empty").first).to_contain_text("No datasets yet")
    expect(page.locator(".mlp-empty").first).to_contain_text("%mlp data push photos")
    front.data.forced["GET /users/ann/datasets"] = (503, {"msg": "the database is away"})
    page = pages.panel("datasets")
    expect(page.get_by_role("alert")).to_contain_text("the database is away")
    page = pages.panel("datasets/ann/nothing")
    expect(page.get_by_role("alert")).to_contain_text("dataset nothing does not exist")
