from __future__ import annotations

from types import SimpleNamespace

import pytest
from traitlets import TraitError
from traitlets.config import Config

from mlp_hub.hubside import configure as module
from mlp_hub.hubside.config_check import check
from mlp_hub.hubside.proxy import SocketProxy
from mlp_hub.settings import Settings


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setattr(module.roles, "get_default_roles", module.roles.get_default_roles)
    settings = Settings.load({"MLP_HOME": str(tmp_path), "MLP_PORT": "22099"})
    settings.secrets_dir.mkdir()
    for name in ("proxy", "service", "spawner", "operator"):
        settings.secret_file(f"{name}_token").write_text(f"secret of the {name}\n")
    c = Config()
    module.configure(c, settings)
    return c


def test_our_own_configuration_has_no_unknown_key(config):
    check(config)


def test_the_hub_and_the_proxy_talk_over_unix_sockets_only(config, tmp_path):
    run = str(tmp_path).replace("/", "%2F") + "%2Frun%2F"
    assert config.JupyterHub.hub_bind_url == f"http+unix://{run}private%2Fhub.sock"
    assert config.JupyterHub.hub_connect_url == config.JupyterHub.hub_bind_url
    assert config.SocketProxy.api_url == f"http+unix://{run}private%2Fproxy-api.sock"
    assert set(config.SocketProxy.extra_routes.values()) == {f"http+unix://{run}private%2Fmlp.sock"}


def test_a_hub_that_ends_leaves_servers_and_proxy_alone(config):
    assert config.JupyterHub.cleanup_servers is False
    assert config.JupyterHub.cleanup_proxy is False
    assert config.SocketProxy.should_start is False


@pytest.mark.parametrize(
    ("user", "goes_to"),
    [
        (None, ""),
        (SimpleNamespace(admin=False, active=False), ""),
        (SimpleNamespace(admin=True, active=True), ""),
        (SimpleNamespace(admin=True, active=False), "/services/mlp/admin"),
    ],
)
def test_an_administrator_without_a_server_arrives_at_the_panel(config, user, goes_to):
    assert config.JupyterHub.default_url(SimpleNamespace(current_user=user)) == goes_to


def test_nobody_can_sign_up_as_the_administrator(config):
    assert config.NativeAccounts.reserved_names == {"admin"}


def test_only_the_spawner_and_the_operator_hold_the_ledgers_scope(config):
    holders = [r["name"] for r in config.JupyterHub.load_roles if "custom:mlp:ledger:write" in r["scopes"]]
    assert holders == ["mlp-spawner", "mlp-operator"]
    assert "custom:mlp:ledger:write" not in config.JupyterHub.extra_user_scopes
    assert "custom:mlp:ledger:write" not in config.LocalSpawner.server_token_scopes


def test_administrators_hold_all_of_the_platforms_scopes(config):
    admin = next(r for r in module.roles.get_default_roles() if r["name"] == "admin")
    assert set(config.JupyterHub.custom_scopes) <= set(admin["scopes"])
    assert "admin:users" in admin["scopes"]


@pytest.mark.parametrize(
    ("section", "key", "hint"),
    [
        ("JupyterHub", "cookie_max_age_day", "cookie_max_age_days"),
        ("NativeAccounts", "enable_sign_up", "enable_signup"),
        ("NativeAuthenticator", "min_password_length", "minimum_password_length"),
        ("Spawner", "default_uri", "default_url"),
    ],
)
def test_an_unknown_key_fails_the_start_and_names_those_close_to_it(config, section, key, hint):
    config[section][key] = 1
    with pytest.raises(ValueError, match=rf"c\.{section}\.{key} is no setting; close to it: .*{hint}"):
        check(config)


def test_a_misspelt_section_fails_the_start_and_a_foreign_one_does_not(config):
    config.MyOwnHook.colour = "blue"
    config.MLPHub.port = 1
    check(config)
    config.NativeAcounts.enable_signup = False
    with pytest.raises(ValueError, match=r"c\.NativeAcounts is no setting; close to it: NativeAccounts"):
        check(config)


@pytest.mark.parametrize(
    "routes",
    [
        {"services/mlp/": "http://x"},
        {"/services/mlp": "http://x"},
        {"/x/": "ftp://x"},
        {"/x/": "http+unix:///run/x"},
    ],
)
def test_extra_routes_are_checked(routes):
    with pytest.raises(TraitError):
        SocketProxy(should_start=True, extra_routes=routes)


def test_extra_routes_may_lead_to_unix_sockets():
    routes = {"/services/mlp/": "http+unix://%2Frun%2Fmlp.sock"}
    assert SocketProxy(should_start=True, extra_routes=routes).extra_routes == routes
