from __future__ import annotations

from types import SimpleNamespace

import pytest
from jupyterhub import roles
from traitlets import TraitError
from traitlets.config import Config

from mlp_hub.hub_integration import configure as module
from mlp_hub.hub_integration.config_check import check
from mlp_hub.hub_integration.proxy import SocketProxy
from mlp_hub.settings import Settings


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """Make the configuration of an environment."""
    monkeypatch.setattr(roles, "get_default_roles", roles.get_default_roles)
    monkeypatch.setattr(module.base, "SESSION_COOKIE_NAME", module.base.SESSION_COOKIE_NAME)

    def make(**environ):
        settings = Settings.load({"MLP_HOME": str(tmp_path), "MLP_PORT": "22099", **environ})
        settings.secrets_dir.mkdir()
        for name in ("proxy", "service", "spawner", "data", "gateway", "operator"):
            settings.secret_file(f"{name}_token").write_text(f"secret of the {name}\n")
        settings.secret_file("crypt_key").write_text(f"{'0' * 64}\n")
        c = Config()
        module.configure(c, settings)
        return c

    return make


@pytest.fixture
def config(configured):
    return configured()


def test_each_users_servers_have_a_separate_host_name_and_everything_else_is_on_the_platforms(config):
    hub = config.JupyterHub
    assert hub.subdomain_host == "http://localhost:22099"
    assert hub.subdomain_hook("ann", "x", kind="user") == "ann.localhost"
    assert hub.subdomain_hook("Ann", "x", kind="user") != "Ann.localhost"
    assert hub.subdomain_hook("mlp", "x", kind="service") == "localhost"
    assert sorted(config.SocketProxy.extra_routes) == [
        "localhost/api/v1/",
        "localhost/data/",
        "localhost/services/mlp/",
        "localhost/services/mlp/data/",
    ]


def test_cookies_are_the_platforms_names_alone_and_nobody_else_can_plant_them(config):
    hub = config.JupyterHub
    assert hub.cookie_host_prefix_enabled is True
    assert hub.tornado_settings["cookie_options"] == {"SameSite": "Lax", "secure": True}
    assert hub.tornado_settings["domain"] == "", "the session's cookie is for no names below"
    assert module.base.SESSION_COOKIE_NAME == "__Host-jupyterhub-session-id"


def test_behind_a_domain_without_tls_cookies_are_plain(configured):
    config = configured(MLP_PUBLIC_URL="http://hub.lan", MLP_USERS_DOMAIN="users.lan")
    assert config.JupyterHub.subdomain_host == "http://hub.lan"
    assert "cookie_host_prefix_enabled" not in config.JupyterHub
    assert module.base.SESSION_COOKIE_NAME == "jupyterhub-session-id"


def test_one_name_for_all_is_as_jupyterhub_is_by_itself(configured):
    config = configured(MLP_USERS_DOMAIN="none")
    assert "subdomain_host" not in config.JupyterHub
    assert set(config.SocketProxy.extra_routes) == {
        *("/api/v1/", "/services/mlp/"),
        *("/data/", "/services/mlp/data/"),
    }
    check(config)


def test_below_a_path_all_addresses_have_it(configured):
    config = configured(MLP_BASE_PATH="/mlp/")
    hub = config.JupyterHub
    assert hub.bind_url == "http://:22099/mlp/"
    assert sorted(config.SocketProxy.extra_routes) == [
        "localhost/mlp/api/v1/",
        "localhost/mlp/data/",
        "localhost/mlp/services/mlp/",
        "localhost/mlp/services/mlp/data/",
    ]
    assert hub.services[0]["oauth_redirect_uri"] == "/mlp/services/mlp/oauth_callback"
    assert hub.template_vars["mlp_prefix"] == "/mlp/services/mlp/"
    admin = SimpleNamespace(admin=True, active=False)
    assert hub.default_url(SimpleNamespace(current_user=admin)) == "/mlp/services/mlp/admin"
    check(config)


def test_below_a_path_on_one_name_over_tls_the_public_url_has_it(configured):
    config = configured(
        MLP_BASE_PATH="/mlp/", MLP_PUBLIC_URL="https://hub.example.org", MLP_USERS_DOMAIN="none"
    )
    assert config.JupyterHub.public_url == "https://hub.example.org/mlp/"


def test_our_own_configuration_has_no_unknown_key(config):
    check(config)


def test_the_hub_and_the_proxy_talk_over_unix_sockets_only(config, tmp_path):
    run = str(tmp_path).replace("/", "%2F") + "%2Frun%2F"
    assert config.JupyterHub.hub_bind_url == f"http+unix://{run}private%2Fhub.sock"
    assert config.JupyterHub.hub_connect_url == config.JupyterHub.hub_bind_url
    assert config.SocketProxy.api_url == f"http+unix://{run}private%2Fproxy-api.sock"
    service, data = (f"http+unix://{run}private%2F{name}.sock" for name in ("mlp", "data"))
    assert {path.partition("/")[2]: to for path, to in config.SocketProxy.extra_routes.items()} == {
        "api/v1/": service,
        "services/mlp/": service,
        "data/": data,
        "services/mlp/data/": data,
    }


def test_a_hub_that_ends_leaves_servers_and_proxy_alone(config):
    assert config.JupyterHub.cleanup_servers is False
    assert config.JupyterHub.cleanup_proxy is False
    assert config.SocketProxy.should_start is False


@pytest.mark.parametrize(
    ("admin", "active", "seen", "goes_to"),
    [
        (False, False, None, "/services/mlp/"),
        (False, False, 1, ""),
        (False, True, 1, ""),
        (True, False, None, "/services/mlp/admin"),
        (True, True, 1, ""),
    ],
    ids=["new", "had a server", "has one", "admin", "admin with a server"],
)
def test_users_without_a_previous_server_start_at_the_first_steps_and_administrators_at_the_panel(
    config, admin, active, seen, goes_to
):
    servers = {"": SimpleNamespace(last_activity=seen)}  # the hub makes its record before there is any server
    user = SimpleNamespace(admin=admin, active=active, orm_spawners=servers)
    assert config.JupyterHub.default_url(SimpleNamespace(current_user=user)) == goes_to
    assert config.JupyterHub.default_url(SimpleNamespace(current_user=None)) == ""


def test_nobody_can_sign_up_as_the_administrator(config):
    assert config.NativeAccounts.reserved_names == {"admin"}


def test_only_the_spawner_and_the_operator_hold_the_ledgers_scope(config):
    holders = [r["name"] for r in config.JupyterHub.load_roles if "custom:mlp:ledger:write" in r["scopes"]]
    assert holders == ["mlp-spawner", "mlp-operator"]
    assert "custom:mlp:ledger:write" not in config.JupyterHub.extra_user_scopes
    assert "custom:mlp:ledger:write" not in config.LocalSpawner.server_token_scopes


def test_the_tokens_of_the_file_service_and_the_gateway_are_limited_to_their_routes(config):
    roles = {r["name"]: r["scopes"] for r in config.JupyterHub.load_roles}
    assert roles["mlp-data"] == ["access:services!service=mlp", "custom:mlp:stored:write"]
    assert roles["mlp-gateway"] == ["access:services!service=mlp", "custom:mlp:gateway"]
    tokens = {s["name"]: s["api_token"] for s in config.JupyterHub.services}
    assert len(set(tokens.values())) == len(tokens)


def test_administrators_hold_all_of_the_platforms_scopes(config):
    admin = next(r for r in roles.get_default_roles() if r["name"] == "admin")
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


@pytest.mark.parametrize(
    ("setting", "cookie", "header", "spoken"),
    [
        ("en", "zh-CN", "zh", "en"),
        ("", "zh-CN", "en", "zh-CN"),
        ("", None, "zh", "zh-CN"),
        ("", None, "", "en"),
    ],
)
def test_a_server_speaks_as_the_page_that_started_it_which_follows_setting_cookie_and_browser(
    config, setting, cookie, header, spoken
):
    handler = SimpleNamespace(
        mlp_language=setting,
        get_cookie=lambda _name, default=None: cookie or default,
        request=SimpleNamespace(headers={"Accept-Language": header}),
    )
    assert config.LocalSpawner.language_of(handler) == spoken


COMPANY = {
    "MLP_LOGIN": "keycloak",
    "MLP_LOGIN_ISSUER": "https://sso.example.org/realms/ml",
    "MLP_LOGIN_CLIENT_ID": "mlp-hub",
}


def test_a_provider_changes_who_logs_people_in_and_nothing_of_hubs_without_one(configured):
    config = configured(**COMPANY, MLP_LOGIN_REFRESH_S="20")
    company = config.CompanyAccounts
    assert config.JupyterHub.authenticator_class.endswith("providers.login.authenticator.CompanyAccounts")
    assert (company.enable_auth_state, company.manage_groups, company.auth_refresh_age) == (True, True, 20)
    assert config.NativeAccounts.reserved_names == {"admin"}
    check(config)
    config.CompanyAccounts.manage_group = False
    with pytest.raises(ValueError, match=r"close to it: .*manage_groups"):
        check(config)


def test_without_a_provider_people_log_in_with_accounts_of_the_hub(config):
    assert config.JupyterHub.authenticator_class.endswith(
        "hub_integration.accounts.authenticator.NativeAccounts"
    )
    assert "CompanyAccounts" not in config
