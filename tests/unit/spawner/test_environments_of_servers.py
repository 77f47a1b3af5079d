"""The environment that a server is started with: chosen among those of its team, kept, gone, and what becomes of one that is none for servers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mlp_language.render import plain
from mlp_spawner import launcher, server
from mlp_spawner.environment import Who
from mlp_spawner.errors import OptionsError
from mlp_spawner.grant import Grant
from mlp_spawner.kubernetes import pod_states
from mlp_spawner.paths import Paths
from mlp_spawner.quota.options import Choice, Defaults, choose, environment_in, form, from_form, repeated
from mlp_spawner.quota.service_client import Account, Room, ServerEnvironment
from support.cluster.server_pods import made

DEFAULTS = Defaults(0.2, 1024)
VISION = ServerEnvironment("u1", "vision", kernel="mlp-env-vision")
SPEECH = ServerEnvironment("u2", "Speech", kernel="mlp-env-speech")
OTHERS = ServerEnvironment("u3", "vision", kernel="mlp-env-vision")
THERE = {"red": (SPEECH, VISION), "blue": (OTHERS,), "teal": ()}
MINE = Account(1, ("red", "blue", "teal"), "red", {t: Room(environments=e) for t, e in THERE.items()})
IMAGE = "registry.example.org/ml/vision:1"


def chosen(**options: Any) -> Choice:
    return choose(options, DEFAULTS, ("red", "blue", "teal"), "red", environments=THERE)


def test_it_is_the_one_of_the_team_that_the_server_is_of() -> None:
    assert chosen(environment="vision").environment is VISION
    assert chosen(environment="vision", tenant="blue").environment is OTHERS
    for platforms in ({}, {"environment": ""}, {"environment": None}):
        assert chosen(**platforms).environment is None


@pytest.mark.parametrize(
    "given",
    ["Vision", "vision ", "../vision", "/mlp/env/vision", "u1", "mlp-env-vision", IMAGE, "x" * 9000,
     ["vision"], {"name": "vision"}, 1, True, 0, False, "vision\0", "<b>"],
)  # fmt: skip
def test_whatever_else_is_named_is_refused_with_those_that_there_are(given: object) -> None:
    with pytest.raises(OptionsError) as error:
        chosen(environment=given)
    said = str(error.value)
    assert said.startswith("team red has no ready environment ")
    assert said.endswith("; it has: Speech and vision")
    assert len(said) < 200


def test_another_teams_is_refused_as_a_made_up_one_is() -> None:
    for name in ("Speech", "never-made"):
        with pytest.raises(
            OptionsError, match=f"team blue has no ready environment '{name}'; it has: vision"
        ):
            chosen(tenant="blue", environment=name)
    with pytest.raises(OptionsError, match="nor any other; leave it out for the platform's"):
        chosen(tenant="teal", environment="vision")
    with pytest.raises(OptionsError, match="nor any other"):  # who was told of none has none
        choose({"environment": "vision"}, DEFAULTS, ("red",), "red")


def test_neither_image_nor_kernel_can_be_asked_for() -> None:
    for name in ("image", "kernel"):
        with pytest.raises(OptionsError, match=f"'{name}' is not an option of a notebook server"):
            chosen(environment="vision", **{name: "evil"})
        with pytest.raises(OptionsError, match=f"'{name}' is not an option"):
            from_form({name: ["evil"]})


def test_the_form_has_each_name_once_with_its_teams_and_keeps_the_last_choice() -> None:
    page = form(DEFAULTS, MINE, {"environment": "Speech", "tenant": "red"})
    assert '<label class="form-label" for="mlp-environment">Environment</label>' in page
    assert '<option value="">the platform&#x27;s environment</option>' in page
    assert '<option value="Speech" selected>Speech (team red)</option>' in page
    assert '<option value="vision">vision (team red and blue)</option>' in page
    assert "mlp-environment-gone" not in page
    assert "New notebooks begin with its packages" in page
    assert '<option value="" selected>' in form(DEFAULTS, MINE, {})
    assert from_form({"environment": ["Speech"], "cpu": [""]}) == {"environment": "Speech"}
    assert from_form({"environment": [""]}) == {}


def test_a_user_with_one_team_sees_no_team_choice_and_without_environments_no_field() -> None:
    one = Account(1, ("red",), "red", {"red": Room(environments=(VISION,))})
    assert '<option value="vision">vision</option>' in form(DEFAULTS, one, {})
    none = Account(1, ("red",), "red", {"red": Room()})
    assert 'name="environment"' not in form(DEFAULTS, none, {})
    images = Account(
        1, ("red",), "red", {"red": Room(environments=(ServerEnvironment("u", "v", image=IMAGE),))}
    )
    assert "The image that the server runs in." in form(DEFAULTS, images, {})
    assert IMAGE not in form(DEFAULTS, images, {})


def test_a_last_choice_that_is_gone_is_told_and_the_platforms_takes_its_place() -> None:
    for last in (
        {"environment": "gone", "tenant": "red"},
        {"environment": "Speech", "tenant": "blue"},  # that team has none of the name
    ):
        page = form(DEFAULTS, MINE, last)
        told = f"Environment {last['environment']}, which your last server had, no longer exists for team {last['tenant']}."
        assert told in page
        assert '<option value="" selected>' in page
    none = Account(1, ("red",), "red", {"red": Room()})
    assert "no longer exists for team red." in form(DEFAULTS, none, {"environment": "gone"})
    assert "&lt;b&gt;" in form(DEFAULTS, none, {"environment": "<b>"})


@pytest.mark.parametrize(
    "stored",
    [{}, {"environment": 1}, {"environment": ["vision"]}, {"environment": None}, {"environment": "half \ud800"},
     {"environment": "two\nlines"}, {"environment": "x" * 51}],
)  # fmt: skip
def test_an_invalid_stored_environment_is_ignored(stored: dict[str, Any]) -> None:
    assert environment_in(stored) == ""
    assert "mlp-environment-gone" not in form(DEFAULTS, MINE, stored)


def test_a_sandboxed_server_gives_new_notebooks_its_kernel(tmp_path: Path) -> None:
    def argv(grant: Grant) -> tuple[str, ...]:
        return server.spec(
            Paths(tmp_path, tmp_path, "ann", ""),
            Who("ann", "/user/ann/", "/home/ann", sys.executable, "/run/mlp.sock"),
            grant,
            env={},
            uid=None,
            home_dir=tmp_path,
            tenant_socket_dir=str(tmp_path),
            args=["--of=the hub"],
        ).argv

    option = "--MappingKernelManager.default_kernel_name=mlp-env-vision"
    assert option in argv(Grant("red", 1, 1024, environment="vision", kernel="mlp-env-vision"))
    assert not any("default_kernel_name" in word for word in argv(Grant("red", 1, 1024)))


def test_a_pod_has_the_image_of_its_environment_with_all_else_as_it_is() -> None:
    plain_pod, pod = made(), made(environment="vision", image=IMAGE)
    (container,) = pod["spec"]["containers"]
    assert container["image"] == IMAGE
    container["image"] = plain_pod["spec"]["containers"][0]["image"]
    assert pod == plain_pod


def ended(code: int, tail: str = "", **more: Any) -> str:
    """Say why a server in the image of environment vision ended while it started."""
    status = {
        "containerStatuses": [{"name": "notebook", "state": {"terminated": {"exitCode": code, **more}}}]
    }
    spec = {"containers": [{"name": "notebook", "image": IMAGE}]}
    pod = pod_states.pod_of({"metadata": {"uid": "u"}, "spec": spec, "status": status})
    return plain(pod_states.why_no_environment(pod, "vision", 2048, tail))


def test_an_incomplete_image_is_reported_with_its_missing_parts_and_the_way_out() -> None:
    said = ended(launcher.LACKS, message="jupyterhub jupyterlab")
    assert said.startswith(
        f"The image {IMAGE} of environment vision cannot start a notebook server: it lacks jupyterhub and jupyterlab."
    )
    assert "make it from the hub's notebook image" in said
    assert "start the server with another environment" in said
    assert "it lacks jupyterlab." in ended(launcher.LACKS, message="jupyterlab <b>")


@pytest.mark.parametrize(
    ("code", "tail", "more", "says"),
    [
        (128, "", {"reason": "StartError", "message": 'exec: "python": not found in $PATH'}, "it has no Python that starts as python"),
        (2, "Unknown option: -P", {}, "it ended with status 2 and printed: Unknown option: -P"),
        (launcher.LACKS, "own words", {"message": "evil"}, "it ended with status 78 and printed: own words"),
        (1, "", {}, "it ended with status 1."),
    ],
)  # fmt: skip
def test_however_an_image_ends_it_is_told_what_one_that_will_do_has(
    code: int, tail: str, more: dict[str, str], says: str
) -> None:
    said = ended(code, tail, **more)
    assert says in said
    assert "Such an image needs Python 3.11 or later, JupyterHub and JupyterLab" in said


def test_running_out_of_memory_is_not_blamed_on_the_image() -> None:
    assert "more than its 2048 MiB" in ended(137, reason="OOMKilled")


def test_an_image_that_cannot_be_had_is_the_environments() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "no such image."}
    status = {"containerStatuses": [{"name": "notebook", "state": {"waiting": waiting}}]}
    spec = {"containers": [{"name": "notebook", "image": IMAGE}]}
    pod = pod_states.pod_of({"metadata": {"uid": "u"}, "spec": spec, "status": status})
    said = plain(pod_states.hopeless(pod, "vision"))
    assert said.startswith(f"The image {IMAGE} of environment vision is not available: no such image.")
    assert "Start the server with another environment" in said


def test_launcher_and_hub_agree_on_the_requirements_of_an_image() -> None:
    assert (launcher.LACKS, launcher.NEEDED) == (pod_states.LACKS, pod_states.NEEDED)


def test_the_launcher_ends_at_once_where_its_python_has_no_server(tmp_path: Path) -> None:
    text = Path(launcher.__file__).read_text().replace("/dev/termination-log", str(tmp_path / "word"))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", text], capture_output=True, text=True, check=False
    )
    assert (done.returncode, (tmp_path / "word").read_text()) == (launcher.LACKS, "jupyterhub jupyterlab"), (
        json.dumps(done.stderr)
    )


@pytest.mark.parametrize(
    ("stored", "kept"),
    [
        ({"environment": "Speech", "cpu": 1}, True),
        ({"environment": "vision", "tenant": "blue"}, True),
        ({"environment": "Speech", "tenant": "blue"}, False),
        ({"environment": "gone", "ram": 700}, False),
        ({"environment": "vision", "tenant": ["blue"]}, False),
        ({"environment": "", "cpu": 1}, True),
        ({"environment": 5}, True),  # no name: it is refused as it was
        ({}, True),
    ],
)
def test_a_restart_without_options_drops_an_environment_that_no_longer_exists(
    stored: dict[str, object], kept: bool
) -> None:
    left = {key: value for key, value in stored.items() if key != "environment"}
    assert repeated(stored, "red", THERE) == (stored if kept else left)
