"""What the supervisor is told to run, and what makes it run something anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlp_hub import proxy
from mlp_hub.cli import plan as plans
from mlp_hub.settings import Settings

SHELL = {
    "PATH": "/bin",
    "HOME": "/root",
    "SSH_TTY": "/dev/pts/1",
    "AWS_SECRET_ACCESS_KEY": "x",
    "https_proxy": "p",
}


@pytest.fixture(autouse=True)
def _a_proxy_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle = tmp_path / "proxy.mjs"
    bundle.touch()
    monkeypatch.setattr(proxy, "BUNDLE", bundle)
    monkeypatch.setattr(proxy, "node", lambda: "/usr/bin/node")


def plan(environ: dict[str, str] | None = None, **variables: str) -> dict[str, dict[str, object]]:
    given = {"MLP_HOME": "/h", **variables}
    made = plans.make(Settings.load(given), environ or {**SHELL, **given})
    return {c["name"]: c for c in made["components"]} | {"id": made["id"]}


def test_components_are_listed_in_the_order_in_which_they_stop() -> None:
    made = plans.make(Settings.load({"MLP_HOME": "/h"}), SHELL)
    assert [c["name"] for c in made["components"]] == ["hub", "service", "proxy"]


def test_the_operators_environment_stays_outside_but_for_what_programs_need() -> None:
    env = plan()["service"]["env"]
    assert env == {
        "PATH": "/bin",
        "HOME": "/root",
        "https_proxy": "p",
        **Settings.load({"MLP_HOME": "/h"}).to_environ(),
    }


def test_another_shell_restarts_nothing() -> None:
    assert plan()["id"] == plan({"PATH": "/usr/bin", "HOME": "/root", "MLP_HOME": "/h"})["id"]


def test_another_port_restarts_what_depends_on_it() -> None:
    before, after = plan(), plan(MLP_PORT="9000")
    assert before["id"] != after["id"]
    assert before["proxy"]["digest"] != after["proxy"]["digest"]


def test_a_changed_config_file_restarts_the_hub_alone(tmp_path: Path) -> None:
    config = tmp_path / "c.py"
    config.write_text("c.Spawner.debug = False\n")
    before = plan(MLP_CONFIG=str(config))
    config.write_text("c.Spawner.debug = True\n")
    after = plan(MLP_CONFIG=str(config))
    changed = [name for name in plans.STOP_ORDER if before[name]["digest"] != after[name]["digest"]]
    assert changed == ["hub"]
    assert "MLP_CONFIG" not in after["service"]["env"]  # type: ignore[operator]


def test_no_secret_stands_in_a_command_line_or_in_the_plan() -> None:
    assert plan()["proxy"]["secret_env"] == {"CONFIGPROXY_AUTH_TOKEN": "/h/secrets/proxy_token"}
    assert "CONFIGPROXY_AUTH_TOKEN" not in plan()["proxy"]["env"]  # type: ignore[operator]


def test_the_proxy_without_its_bundle_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "BUNDLE", Path("/nowhere/proxy.mjs"))
    with pytest.raises(proxy.ProxyMissing, match=r"/nowhere/proxy\.mjs is missing"):
        plan()
