"""Apps in the panel: how one is asked, its keys, who may open it and its log; those of others; models deployed, and registered from a job."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from mlp.serving.loaders import LoadedModel, Tensor
from mlp.serving.server import ModelServer
from mlp.serving.tensors import Named
from support.front.axe import assert_accessible_light_and_dark
from support.front.browser import shot, two_frames
from support.front.environments import environment
from support.front.pages import LOOKS, Pages, fits, restyle, story
from support.front.service import FrontService
from support.front.shapes import model
from support.waiting import PATIENCE_S


def ask(page: Page) -> str:
    """The Python program that the page shows."""
    return page.locator("#ask pre").nth(1).inner_text()


def test_an_app_shows_how_it_is_asked(pages: Pages, front: FrontService) -> None:
    page = pages.panel("app/ann/digits-app")
    url = f"{front.url}/services/mlp/apps/ann/digits-app/"
    way = page.get_by_role("region", name="How to ask it")
    expect(way.locator("code").nth(1)).to_have_text(url)
    expect(way.locator("pre").first).to_have_text(
        f'curl -H "Authorization: Bearer KEY" "{url}v2/models/digits"'
    )
    expect(way.get_by_role("link", name="Open")).to_have_count(0)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    way.get_by_role("button", name="Copy the address").press("Enter")
    expect(page.locator(".mlp-toast")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == url
    log = page.get_by_role("region", name="Log", exact=True)
    expect(log.get_by_role("log")).to_contain_text("POST /v2/models/digits/infer 200")
    asked = [q for q in front.queries if "digits-app/logs" in q]
    assert asked[0].endswith("replica=0&tail=50")
    assert not pages.unexpected()


class Twice(LoadedModel):
    """A model of two inputs of kinds that are written in different ways."""

    platform = "test"

    def __init__(self) -> None:
        self.inputs = [Tensor("rows", "FP64", (-1, 3)), Tensor("words", "BYTES", (-1,))]
        self.outputs = [Tensor("sum", "FP64", (-1,))]

    def predict(self, inputs: Named) -> Named:
        """Add up; what is not of the shape that the model takes is refused."""
        assert inputs["words"].shape == (1,)
        return {"sum": inputs["rows"].reshape(-1, 3).sum(axis=1) + 1.0}


def test_the_program_that_is_shown_runs_as_it_is(pages: Pages, front: FrontService, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = ModelServer(listener, Twice(), "digits", "2")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = pages.panel("app/ann/digits-app")
        program = ask(page).replace(
            f"{front.url}/services/mlp/apps/ann/digits-app/", f"http://127.0.0.1:{listener.getsockname()[1]}/"
        )
        ran = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        server.shutdown()
    assert ran.stdout == f"sum {np.ones(1).tolist()}\n", ran.stderr


def test_a_key_is_made_shown_once_and_revoked(pages: Pages, front: FrontService) -> None:
    page = pages.panel("app/ann/digits-app")
    keys = page.get_by_role("region", name="Keys", exact=True)
    expect(keys.get_by_role("row").filter(has_text="nightly")).to_contain_text("never")
    keys.get_by_role("button", name="New key").press("Enter")
    name = keys.get_by_label("Name")
    expect(name).to_be_focused()
    page.keyboard.type("builds")
    page.keyboard.press("Enter")
    expect(keys.get_by_role("alert")).to_contain_text("A key of this name exists")
    name.fill("reports")
    page.keyboard.press("Enter")
    shown = page.get_by_role("dialog")
    expect(shown.get_by_label("You see it only once; copy it now.")).to_have_value("mlpk_shown-this-once")
    assert_accessible_light_and_dark(page)
    shot(page, "panel-app-key", full=True)
    page.keyboard.press("Escape")
    expect(shown).to_have_count(0)
    expect(page.locator("main")).not_to_contain_text("mlpk_")
    keys.get_by_role("button", name="Revoke reports").press("Enter")
    with page.expect_request(lambda r: r.method == "DELETE") as asked:
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    assert asked.value.url.endswith("/users/ann/apps/digits-app/keys/reports")
    expect(keys.get_by_role("row").filter(has_text="reports")).to_have_count(0)
    assert not pages.unexpected()


def test_its_owner_says_who_may_open_it(pages: Pages, front: FrontService) -> None:
    page = pages.panel("app/ann/digits-app")
    card = page.get_by_role("region", name="Access")
    with page.expect_request(lambda r: r.method == "PUT") as asked:
        card.get_by_label("Access").select_option("hub")
    assert asked.value.url.endswith("/users/ann/apps/digits-app/access")
    assert asked.value.post_data_json == {"access": "hub"}
    expect(card.get_by_label("Access")).to_have_value("hub")


@pytest.mark.parametrize("look", LOOKS)
def test_apps_of_others_are_listed_below_the_users_own(pages: Pages, front: FrontService, look: str) -> None:
    dark, width = LOOKS[look]
    page = pages.panel("apps", dark=dark, width=width)
    others = page.get_by_role("table", name="Apps of others, newest first")
    expect(others.get_by_role("row").filter(has_text="line")).to_contain_text("bob")
    # a command has pages of its own, a model none but the one that shows how it is asked
    expect(others.get_by_role("link", name="Open plots")).to_have_attribute(
        "href", f"{front.url}/services/mlp/apps/carol/plots/"
    )
    shot(page, f"panel-apps-{look}", full=True)
    assert fits(page)
    others.get_by_role("link", name="How to ask line").press("Enter")
    expect(page.get_by_role("heading", name="line", level=1)).to_be_visible()
    expect(page.locator("main")).to_contain_text("an app of bob")
    expect(page.locator("#ask")).to_contain_text("/services/mlp/apps/bob/line/v2/models/digits")
    for name in ("Delete", "New key", "Revoke builds"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    assert not [q for q in front.seen if "bob/apps/line/" in q]
    assert not pages.unexpected()


def test_a_forbidden_object_is_reported_once_and_requested_once(pages: Pages, front: FrontService) -> None:
    for path, what in (("app/bob/secret", "app"), ("models/bob/net", "model"), ("jobs/bob/line", "job")):
        front.seen.clear()
        page = pages.panel(path)
        expect(page.get_by_role("alert").or_(page.locator(".mlp-empty"))).to_have_count(1)
        expect(page.get_by_text(re.compile(rf"{what} \S+ does not exist"))).to_have_count(1)
        two_frames(page)
        before = [q for q in front.seen if "/bob/" in q]
        page.clock.install()
        page.clock.run_for(120_000)
        two_frames(page)
        after = [q for q in front.seen if "/bob/" in q]
        assert after == before, path


def test_a_model_is_deployed_and_one_of_that_name_is_changed_after_a_word(
    pages: Pages, front: FrontService
) -> None:
    front.data.environments.rows.append(environment("nlp", tenant="red"))
    page = pages.panel("models/ann/digits@2")
    page.get_by_role("button", name="Deploy").press("Enter")
    form = page.get_by_role("form", name="Deploy")
    expect(form.get_by_label("Name of the app")).to_have_value("digits")
    form.get_by_label("Name of the app").fill("board")
    form.get_by_label("Replicas").fill("2:1")
    page.keyboard.press("Enter")
    expect(form.get_by_role("alert")).to_contain_text("MIN:MAX such as 0:2")
    form.get_by_label("Replicas").fill("0:2")
    form.get_by_label("Environment").select_option("nlp")
    for look, (dark, width) in LOOKS.items():
        restyle(page, dark=dark, width=width)
        two_frames(page)
        shot(page, f"panel-model-deploy-{look}", full=True)
        assert fits(page), look
    assert_accessible_light_and_dark(page)
    form.get_by_label("Replicas").press("Enter")
    expect(page.get_by_text("An app board already exists.")).to_be_visible()
    form.get_by_role("button", name="Change that app").click()
    expect(page.get_by_role("heading", name="board", level=1)).to_be_visible()
    wanted = {
        "name": "board",
        "replicas": "0:2",
        "model_name": "digits@2",
        "tenant": "red",
        "access": "tenant",
        "env_name": "nlp",
    }
    assert front.data.apps.deployed == [wanted | {"replace": False}, wanted | {"replace": True}]


def test_a_version_is_deleted_after_a_question(pages: Pages, front: FrontService) -> None:
    page = pages.panel("models/ann/digits@1")
    page.get_by_role("button", name="Delete").press("Enter")
    asking = page.get_by_role("dialog")
    expect(asking).to_contain_text("Other versions stay")
    with page.expect_request(lambda r: r.method == "DELETE") as asked:
        asking.get_by_role("button", name="Delete").click()
    assert asked.value.url.endswith("/users/ann/models/digits%401")
    expect(page.get_by_role("heading", name="Models", level=1)).to_be_visible()


def test_a_model_from_a_job_is_registered_on_the_jobs_page(pages: Pages, front: FrontService) -> None:
    story(front)
    front.data.job_models = [
        {"src": "jobs/digits@1/ckpt", "path": "ckpt", "format": "safetensors", "pickled": False},
        {"src": "jobs/digits@1/out/best", "path": "out/best", "format": "keras", "pickled": False},
    ]
    page = pages.panel("jobs/ann/digits")
    card = page.get_by_role("region", name="Register as a model")
    expect(card).to_contain_text("2 models were found in its files")
    card.get_by_role("button", name="Register as a model").press("Enter")
    card.get_by_label("What").select_option("jobs/digits@1/out/best")
    page.evaluate("window.scrollTo(0, 0)")  # the bar at the top lies over what is scrolled below it
    assert_accessible_light_and_dark(page)
    shot(page, "panel-job-register", full=True)
    with page.expect_request(lambda r: r.method == "POST") as asked:
        card.get_by_label("Name").press("Enter")
    assert asked.value.post_data_json == {"name": "digits", "src": "jobs/digits@1/out/best"}
    expect(page.get_by_role("heading", name="digits@1", level=1)).to_be_visible()


def test_a_registered_model_is_shown_on_its_jobs_page_and_not_offered_again(
    pages: Pages, front: FrontService
) -> None:
    story(front)
    front.data.job_models = [
        {"src": f"jobs/digits@1/{path}", "path": path, "format": "keras", "pickled": False}
        for path in ("ckpt", "best")
    ]
    uid = front.data.jobs["ann", "digits"]["uid"]
    made = model("digits", 3, src="jobs/digits@1/ckpt")
    front.data.models = [{**made, "lineage": {**made["lineage"], "job_uid": uid}}, model("other", 1)]
    page = pages.panel("jobs/ann/digits")
    card = page.get_by_role("region", name="Register as a model")
    expect(card).to_contain_text("1 model was found in its files")
    expect(card).to_contain_text("Registered as digits@3")
    expect(card.get_by_role("link")).to_have_attribute("href", "/services/mlp/models/ann/digits%403")
    front.data.job_models = front.data.job_models[:1]
    page.reload()
    expect(card).to_contain_text("Its model is registered")
    expect(card.get_by_role("button")).to_have_count(0)
    shot(page, "panel-job-registered", full=True)


def test_a_replica_is_called_by_its_app_where_quota_is_used(pages: Pages, front: FrontService) -> None:
    page = pages.panel("quota", width=420)
    row = page.get_by_role("row").filter(has_text="replica 0")
    expect(row).to_contain_text("app line, replica 0")
    expect(row.get_by_role("link")).to_have_attribute("href", "/services/mlp/app/bob/line")
    expect(page.locator("main")).not_to_contain_text("app~")
    assert fits(page)
    shot(page, "panel-quota-narrow", full=True)
