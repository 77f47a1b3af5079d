"""What the supervisor is told to run, and what makes it run something anew."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from mlp_hub import proxy
from mlp_hub.cli.state import plan as plans
from mlp_hub.cli.state import state_dir
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
    assert [c["name"] for c in made["components"]] == ["hub", "service", "data", "proxy"]


def test_only_necessary_variables_of_the_operators_environment_are_passed_on() -> None:
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
    changed = [
        name
        for name in ("hub", "service", "data", "proxy")
        if before[name]["digest"] != after[name]["digest"]
    ]
    assert changed == ["hub"]
    assert "MLP_CONFIG" not in after["service"]["env"]  # type: ignore[operator]


def test_no_secret_appears_in_a_command_line_or_in_the_plan() -> None:
    assert plan()["proxy"]["secret_env"] == {
        "CONFIGPROXY_AUTH_TOKEN": "/h/secrets/proxy_token",
        "MLP_GATEWAY_TOKEN": "/h/secrets/gateway_token",
    }
    assert "CONFIGPROXY_AUTH_TOKEN" not in plan()["proxy"]["env"]  # type: ignore[operator]


def test_a_clients_secret_given_as_a_variable_goes_to_a_file_of_the_hub_alone(tmp_path: Path) -> None:
    given = {
        "MLP_HOME": str(tmp_path),
        "MLP_LOGIN": "keycloak",
        "MLP_LOGIN_ISSUER": "https://sso.example.org/realms/company",
        "MLP_LOGIN_CLIENT_ID": "mlp-hub",
    }
    variable = "MLP_LOGIN_CLIENT_SECRET"
    settings = Settings.load({**given, variable: "s3cret-of-company"})
    assert "s3cret-of-company" not in repr(settings)
    state_dir.prepare(settings)
    made = plans.make(settings, {**SHELL, variable: "s3cret-of-company"})
    plans.write(settings, made)
    assert "s3cret-of-company" not in plans.plan_file(settings).read_text()
    hub, *others = made["components"]
    path = Path(hub["secret_env"][variable])
    assert path.read_text() == "s3cret-of-company\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert variable not in {name for other in others for name in other["secret_env"]}

    other = plans.make(Settings.load({**given, variable: "another"}), SHELL)
    assert other["id"] != made["id"], "a changed secret restarts the hub"
    without = Settings.load(given)
    plans.write(without, plans.make(without, SHELL))
    assert not path.exists()


def test_the_proxy_without_its_bundle_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "BUNDLE", Path("/nowhere/proxy.mjs"))
    with pytest.raises(proxy.ProxyMissing, match=r"/nowhere/proxy\.mjs is missing"):
        plan()


def test_the_proxy_receives_the_addresses_of_the_proxies_in_front_of_it() -> None:
    given = plan(
        MLP_PUBLIC_URL="https://hub.example.org",
        MLP_USERS_DOMAIN="none",
        MLP_TRUSTED_PROXIES="10.0.0.5,2001:db8::/48",
        MLP_HSTS="600",
    )
    argv = given["proxy"]["argv"]
    assert isinstance(argv, list)
    told = [f"{a} {b}" for a, b in itertools.pairwise(argv)]
    assert [one for one in told if one.startswith("--trusted ")] == [
        "--trusted 10.0.0.5/32",
        "--trusted 2001:db8::/48",
    ]
    assert {"--hsts 600", "--platform https://hub.example.org"} <= set(told)
    assert "--users" not in argv
