"""Notebook servers that are started with an environment of their team, on a real hub: one build for all of this file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from html import unescape

import httpx
import pytest

from mlp_hub import sandbox
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.workspace import StoredPlace
from support.executors.environment_factory import Factory
from support.hubs.hub_stack import Browser, HubStack, start_server, stop_server, text_of, user_token
from support.hubs.kernel_client import Kernel
from support.local_names import LocalNames
from support.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.skipif(sandbox.capabilities().mode is None, reason="no sandbox can be made here")

PLACE = StoredPlace("environment", "red", "tools-0123456789ab", "red")
TOOLS = {"uid": "u1", "name": "tools", "image": None, "kernel": "mlp-env-tools"}
THEIRS = {"uid": "u2", "name": "theirs", "image": None, "kernel": "mlp-env-theirs"}
FINDS = "import sys, small, numpy, mlp; print(small.SAYS, small.__file__.startswith('/mlp/env/'), sys.prefix)"


@pytest.fixture(scope="module")
def made(stack: HubStack) -> Iterator[HubStack]:
    """A hub with an environment of team red that has one small package, and users in red, in blue and in both."""
    directories = Directories(stack.settings.homes_dir, stack.settings.jobs_dir)
    factory = Factory(stack.home / "factory", directories, PLACE)
    factory.wheel("small", {"small.py": "SAYS = 'here'"})
    factory.make("small\n")
    asyncio.run(factory.maker.offer(PLACE, "tools", epoch=1))
    for name in ("ann", "bea", "cyd"):
        stack.add(name)
    stack.tell_service(
        tenants={"ann": ["red"], "bea": ["blue"], "cyd": ["blue", "red"]},
        environments={"red": [TOOLS], "blue": [THEIRS]},
    )
    yield stack
    asyncio.run(factory.maker.forget(PLACE, epoch=1))


def specs(stack: HubStack, user: str, token: str) -> dict:
    with httpx.Client(transport=LocalNames(), timeout=PATIENCE_S) as client:
        answer = client.get(
            f"{stack.notebooks(user)}/user/{user}/api/kernelspecs",
            headers={"Authorization": f"token {token}"},
        )
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(stack: HubStack, user: str, **options: object) -> str:
    """Start a server that is refused; return why. Nothing is held and nothing runs."""
    token = user_token(stack, user, "servers!user", "read:users!user")
    answer = stack.api("POST", f"/users/{user}/server", token, json={"user_options": options})
    wait_for(lambda: not stack.api("GET", f"/users/{user}", token).json()["servers"])
    assert f"{user}/" not in stack.ledger()["rows"]
    if answer.status_code in (201, 202):  # it was refused a moment later
        person = Browser(stack)
        person.login(user)
        return unescape(text_of(person.get(f"/hub/spawn-pending/{user}")))
    return answer.json()["message"]


def test_new_notebooks_begin_with_its_packages_and_the_server_stays_the_platforms(made: HubStack) -> None:
    token = start_server(made, "ann", environment="tools")
    try:
        assert made.ledger()["rows"]["ann/"]["environment"] == "u1"
        told = specs(made, "ann", token)
        assert told["default"] == "mlp-env-tools"
        assert {"mlp-env-tools", "python3"} <= set(told["kernelspecs"])
        assert list(told["kernelspecs"]["mlp-env-tools"]["resources"]) == ["logo-svg"]
        kernel = Kernel(made.notebooks("ann"), "ann", token)
        assert kernel.run(FINDS).split() == ["here", "True", f"/mlp/env/{PLACE.name}"]
        kernel.close()
        plain = Kernel(made.notebooks("ann"), "ann", token, "python3")
        assert "ModuleNotFoundError" in plain.run("import small")
        assert "/mlp/env" not in plain.run(
            "import os; print(open(f'/proc/{os.getppid()}/cmdline').read().split(chr(0))[0])"
        )
        plain.close()
        person = Browser(made)
        person.login("ann")
        assert "Your notebook server is running, with environment tools." in text_of(person.get("/hub/home"))
    finally:
        stop_server(made, "ann", token)


def test_the_form_has_it_and_keeps_the_choice_until_it_is_gone(made: HubStack) -> None:
    person = Browser(made)
    person.login("cyd")
    page = person.get("/hub/spawn/cyd").text
    assert '<option value="tools">tools (team red)</option>' in page
    assert '<option value="theirs">theirs (team blue)</option>' in page
    fields = {"cpu": "0.2", "ram": "512"}
    person.spawn("cyd", tenant="blue", environment="tools", **fields)
    said = unescape(text_of(person.get("/hub/spawn-pending/cyd")))
    assert "team blue has no ready environment 'tools'; it has: theirs" in said
    person.spawn("cyd", tenant="red", environment="tools", **fields)
    token = user_token(made, "cyd", "servers!user", "access:servers!user", "read:users!user")

    def ready() -> bool:
        server = made.api("GET", "/users/cyd", token).json()["servers"].get("")
        return bool(server and server["ready"])

    wait_for(ready)
    try:
        assert specs(made, "cyd", token)["default"] == "mlp-env-tools"
    finally:
        stop_server(made, "cyd", token)
    assert '<option value="tools" selected>' in person.get("/hub/spawn/cyd").text
    made.tell_service(environments={"red": []})
    try:
        page = person.get("/hub/spawn/cyd")
        assert "Environment tools, which your last server had, no longer exists for team red." in text_of(
            page
        )
        assert '<option value="" selected>' in page.text
        person.spawn("cyd", tenant="red", environment="", **fields)
        wait_for(ready)
        assert specs(made, "cyd", token)["default"] == "python3"
        stop_server(made, "cyd", token)
        assert "mlp-environment-gone" not in person.get("/hub/spawn/cyd").text
    finally:
        made.tell_service(environments={"red": [TOOLS]})


def test_a_start_without_options_repeats_the_last_ones_with_the_platforms_where_theirs_is_gone(
    made: HubStack,
) -> None:
    token = start_server(made, "ann", environment="tools", ram=700)
    stop_server(made, "ann", token)

    def again(**body: object) -> tuple[str, int]:
        answer = made.api("POST", "/users/ann/server", token, **body)
        assert answer.status_code in (201, 202), answer.text

        def ready() -> bool:
            server = made.api("GET", "/users/ann", token).json()["servers"].get("")
            return bool(server and server["ready"])

        wait_for(ready)
        try:
            return specs(made, "ann", token)["default"], made.ledger()["rows"]["ann/"]["ram"]
        finally:
            stop_server(made, "ann", token)

    assert again() == ("mlp-env-tools", 700)
    made.tell_service(environments={"red": []})
    try:
        assert again() == ("python3", 700)
        assert again(json={"display_name": ""}) == ("python3", 700)
        person = Browser(made)
        person.login("ann")
        assert "mlp-environment-gone" not in person.get("/hub/spawn/ann").text
        assert "has no ready environment 'tools'" in refused(made, "ann", environment="tools")
    finally:
        made.tell_service(environments={"red": [TOOLS]})


@pytest.mark.parametrize(
    "given",
    [
        "theirs",
        "made-up",
        "../tools",
        "/mlp/env/tools",
        "mlp-env-tools",
        "u1",
        ["tools"],
        {"name": "tools"},
        1,
        True,
    ],
)
def test_nobody_gets_another_teams_nor_what_is_none(made: HubStack, given: object) -> None:
    assert "team red has no ready environment " in refused(made, "ann", environment=given)


def test_a_user_outside_the_team_gets_none_of_its_environments(made: HubStack) -> None:
    assert "team blue has no ready environment 'tools'; it has: theirs" in refused(
        made, "bea", environment="tools"
    )
    assert "you are not in a team 'red'" in refused(made, "bea", environment="tools", tenant="red")


@pytest.mark.parametrize("name", ["image", "kernel"])
def test_image_and_kernel_are_nobodys_to_choose(made: HubStack, name: str) -> None:
    assert f"'{name}' is not an option of a notebook server" in refused(
        made, "ann", environment="tools", **{name: "evil"}
    )
