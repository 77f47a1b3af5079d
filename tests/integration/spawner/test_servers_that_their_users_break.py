"""What a person has in the home never keeps the notebook server from starting: it runs without it, and says so."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import httpx
import pytest

from mlp_hub import sandbox
from support.hubs.hub_stack import Browser, HubStack, start_server, stop_server, text_of
from support.hubs.kernel_client import Kernel
from support.local_names import LocalNames
from support.waiting import PATIENCE_S

THEMES = "@jupyterlab/apputils-extension:themes"
STACK = {"MLP_CULL_IDLE_S": "7200"}

pytestmark = pytest.mark.skipif(sandbox.capabilities().mode is None, reason="no sandbox can be made here")


def home_of(stack: HubStack, user: str) -> Path:
    """Return the home of somebody whose server was started once."""
    return stack.settings.homes_dir / user


def put(stack: HubStack, user: str, path: str, text: str) -> None:
    """Put a file into a home, as its user would."""
    home = home_of(stack, user)
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    owner = home.stat()
    for each in (file, *file.parents):
        if each == home:
            break
        os.chown(each, owner.st_uid, owner.st_gid)


def left_out(stack: HubStack, user: str, token: str) -> str:
    """Return what Lab's page is told of settings that the server runs without."""
    url = f"{stack.notebooks(user)}/user/{user}/lab"
    with httpx.Client(transport=LocalNames(), timeout=PATIENCE_S) as client:
        page = client.get(url, headers={"Authorization": f"token {token}"}).text
    config = re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert config is not None, page[:500]
    found: str = json.loads(config[1]).get("mlpWithoutSettings", "")
    return found


def user_site(stack: HubStack, user: str, token: str) -> str:
    kernel = Kernel(stack.notebooks(user), user, token)
    try:
        found = kernel.run("import site; print(site.getusersitepackages(), site.ENABLE_USER_SITE)")
    finally:
        kernel.close()
    folder, is_on = found.split()
    assert is_on == "True"
    return folder.removeprefix(f"/home/{user}/")


def test_it_starts_whatever_lies_in_the_home_and_tells_what_it_left_out(stack: HubStack) -> None:
    stack.add("eve")
    token = start_server(stack, "eve")
    site = user_site(stack, "eve", token)
    assert left_out(stack, "eve", token) == ""
    stop_server(stack, "eve", token)

    put(stack, "eve", f"{site}/usercustomize.py", "raise SystemExit(3)")
    put(stack, "eve", f"{site}/ends.pth", "import os; os._exit(4)\n")
    token = start_server(stack, "eve")
    assert left_out(stack, "eve", token) == ""
    stop_server(stack, "eve", token)

    token = start_server(stack, "eve", without_settings=True)
    assert "as you chose" in left_out(stack, "eve", token)
    kernel = Kernel(stack.notebooks("eve"), "eve", token)  # which would end at once with these
    assert kernel.run(f"import os; os.remove(os.path.expanduser('~/{site}/ends.pth'))") == ""
    kernel.close()
    stop_server(stack, "eve", token)

    shutil.rmtree(home_of(stack, "eve") / ".local")
    put(stack, "eve", ".local", "a file")
    token = start_server(stack, "eve")
    assert "runs without them" in left_out(stack, "eve", token)
    kernel = Kernel(stack.notebooks("eve"), "eve", token)
    assert kernel.run("1") == "1"
    kernel.close()
    stop_server(stack, "eve", token)

    (home_of(stack, "eve") / ".local").unlink()
    wrong = json.dumps({"ServerApp": {"root_dir": "/nowhere"}})
    put(stack, "eve", ".jupyter/jupyter_server_config.json", wrong)
    token = start_server(stack, "eve")
    said = left_out(stack, "eve", token)
    assert "runs without them: Bad config encountered during initialization: No such directory: " in said
    assert "/nowhere" in said
    stop_server(stack, "eve", token)

    put(stack, "eve", ".jupyter/jupyter_server_config.py", "import os; os._exit(1)\n")
    token = start_server(stack, "eve")
    said = left_out(stack, "eve", token)
    assert (
        "runs without them: /home/eve/.jupyter/jupyter_server_config.py ended the process that read it"
        in said
    )
    stop_server(stack, "eve", token)

    shutil.rmtree(home_of(stack, "eve") / ".jupyter")
    put(stack, "eve", ".local/share/jupyter/labextensions/bad/package.json", "{")
    token = start_server(stack, "eve")
    assert "an extension in /home/eve/.local/share/jupyter/labextensions cannot be read" in left_out(
        stack, "eve", token
    )
    stop_server(stack, "eve", token)

    (home_of(stack, "eve") / ".local/share/jupyter/labextensions/bad/package.json").unlink()
    put(stack, "eve", f".jupyter/lab/user-settings/{THEMES.replace(':', '/')}.jupyterlab-settings", "\0\0")
    token = start_server(stack, "eve")
    assert left_out(stack, "eve", token) == ""
    with httpx.Client(transport=LocalNames(), timeout=PATIENCE_S) as client:
        url = f"{stack.notebooks('eve')}/user/eve/lab/api/settings"
        found = client.get(url, headers={"Authorization": f"token {token}"})
    assert found.status_code == 200, found.text  # without them Lab's page stays empty
    assert {one["id"]: one["settings"] for one in found.json()["settings"]}[THEMES] == {}
    stop_server(stack, "eve", token)

    person = Browser(stack)
    person.login("eve")
    form = text_of(person.get("/hub/spawn/eve"))
    assert "Start without my settings" in form
    assert "A server that nobody uses for 2 h is stopped." in form
