"""Environments over REST where jobs run in containers: what is no image, whose they are, and what a page is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.executors.simulated.executor import SimulatedExecutor
from support.rigs.api_rig import ApiRig, started

ALL = "/tenants/red/environments"
DIGEST = "cd" * 32


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiRig]:
    """Give red and blue, of a platform whose jobs run in containers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedExecutor, "images", True)
        root: Path = tmp_path_factory.mktemp("api")
        yield from started(root)


def made(rig: ApiRig, name: str, image: str, token: str) -> Any:
    return rig.ask("POST", ALL, {"name": name, "image": image}, token=token)


def test_a_member_creates_an_environment_of_an_allowed_image_and_pages_learn_of_it(rig: ApiRig) -> None:
    assert rig.ask("GET", "/session", token=rig.ann).json["images"] is True
    image = f"registry.example.org/red/train@sha256:{DIGEST}"
    refused = made(rig, "vision", image, rig.ann)
    assert (refused.status, refused.json["reason"]) == (403, "Forbidden"), refused.body
    assert "allowed are none yet: ask an administrator" in refused.json["msg"]
    answer = made(rig, "vision", image, rig.root_user)
    assert (answer.status, answer.json["state"], answer.json["image"]) == (201, "ready", image), answer.body
    runtime = {"title": "Mine", "program": ["{program}"], "image": "registry.example.org/red/other:1"}
    rig.ask("PUT", "/tenants/red/runtimes/mine", runtime, token=rig.root_user)
    assert made(rig, "other", runtime["image"], rig.ann).status == 201
    found = rig.ask("GET", f"{ALL}/vision", token=rig.ann).json["environment"]
    assert (found["lock"], found["size"], found["packages"]) == (DIGEST, 0, {})
    job = rig.job("ann", "seen", rig.ann, env_name="vision")
    assert (job["env_name"], job["env_lock"]) == ("vision", DIGEST)
    for token in (rig.bob, rig.blue):  # of another team: it is not there
        assert rig.ask("GET", f"{ALL}/vision", token=token).status == 403
        assert rig.ask("DELETE", f"{ALL}/vision", token=token).status == 403
        asked = {"name": "theirs", "code": "x", "env_name": "vision"}
        user = "bob" if token is rig.bob else "blue"
        theirs = rig.ask("POST", f"/users/{user}/jobs", asked, token=token)
        assert theirs.json["reason"] == "NotFound", theirs.body
    assert rig.ask("DELETE", f"{ALL}/other", token=rig.ann).json["state"] == "deleting"


@pytest.mark.parametrize(
    "image",
    [
        "",
        "a b",
        "python\n",
        "--privileged",
        "Red/Train:1",
        "pyth\N{LATIN SMALL LETTER O WITH DIAERESIS}n",
        "../../etc/passwd",
        "a" * 501,
        7,
        ["python"],
        {"name": "python"},
    ],
)
def test_an_invalid_image_is_refused_with_a_reason(rig: ApiRig, image: Any) -> None:
    answer = rig.ask("POST", ALL, {"name": "bad", "image": image}, token=rig.root_user)
    assert answer.json["reason"] == "Invalid", answer.body
    assert "image" in answer.json["msg"]
    assert answer.status == 403


def test_ten_megabytes_of_a_name_are_refused_unread(rig: ApiRig) -> None:
    answer = rig.ask("POST", ALL, {"name": "bad", "image": "a" * (10 << 20)}, token=rig.root_user)
    assert answer.status in (400, 403, 413), answer.body
    assert len(answer.body) < 1000
    assert [e["name"] for e in rig.ask("GET", ALL, token=rig.ann).json if e["name"] == "bad"] == []


def test_of_two_or_of_none_nothing_is_made(rig: ApiRig) -> None:
    for of in ({}, {"image": "python", "requirements": "numpy"}, {"image": None, "requirements": None}):
        answer = rig.ask("POST", ALL, {"name": "bad", **of}, token=rig.root_user)
        assert (answer.json["reason"], "name one of the two" in answer.json["msg"]) == ("Invalid", True)
    packages = rig.ask("POST", ALL, {"name": "bad", "requirements": "numpy"}, token=rig.root_user)
    assert "make the environment from an image that has them (--image" in packages.json["msg"]
