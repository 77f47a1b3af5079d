"""One call at the end of another hub's configuration: what it adds, what stays, and what it refuses in words."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyterhub import roles
from kubespawner import KubeSpawner
from traitlets.config import Config

from mlp_hub.api.auth.scopes import ACCESS, ADMIN_SCOPES, HUB_SCOPES, JOBS_WRITE, LEDGER_WRITE
from mlp_hub.hub_integration import copying
from mlp_hub.hub_integration.attached import attach
from mlp_spawner.attached.pod_quota import PodQuota

AT = {"service": "http://service:8084/", "data": "http://data:8087", "installation": "site"}


@pytest.fixture(autouse=True)
def default_roles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("kubespawner.spawner.load_config", lambda **_: None)
    monkeypatch.setattr("kubespawner.spawner.shared_client", lambda _: None)
    before = roles.get_default_roles
    yield
    roles.get_default_roles = before


def z2jh(**hub: Any) -> Any:
    """Return the configuration as a Zero-to-JupyterHub has it when it reads `hub.extraConfig`."""
    c = Config()
    c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
    c.JupyterHub.services = [
        {"name": "jupyterhub-idle-culler", "command": ["x"]},
        {"name": "mlp", "url": "http://service:8083", "api_token": "a" * 64},
        {"name": "mlp-spawner", "api_token": "b" * 64},
        {"name": "mlp-data", "api_token": "c" * 64},
    ]
    c.JupyterHub.load_roles = [{"name": "jupyterhub-idle-culler", "scopes": ["list:users"], "services": []}]
    c.KubeSpawner.profile_list = [{"display_name": "Small"}]
    for name, value in hub.items():
        c.JupyterHub[name] = value
    return c


def test_services_and_roles_have_the_scopes_that_the_platform_needs() -> None:
    c = z2jh()
    attach(c, **AT)
    role = {one["name"]: one for one in c.JupyterHub.load_roles}
    assert set(role["mlp-service"]["scopes"]) == set(HUB_SCOPES)
    assert LEDGER_WRITE in role["mlp-spawner"]["scopes"]
    assert role["jupyterhub-idle-culler"] == {
        "name": "jupyterhub-idle-culler",
        "scopes": ["list:users"],
        "services": [],
    }
    service = {one["name"]: one for one in c.JupyterHub.services}
    assert JOBS_WRITE in service["mlp"]["oauth_client_allowed_scopes"]
    assert (service["mlp"]["display"], service["mlp-spawner"]["display"]) == (True, False)
    assert {ACCESS, JOBS_WRITE} <= set(c.JupyterHub.extra_user_scopes)
    (admin,) = [one for one in roles.get_default_roles() if one["name"] == "admin"]
    assert set(ADMIN_SCOPES) <= set(admin["scopes"])


def test_the_spawner_is_theirs_with_quota_around_it() -> None:
    c = z2jh()
    attach(c, **AT, by_limits=False)
    made = c.JupyterHub.spawner_class
    assert issubclass(made, PodQuota)
    assert made.__mro__.index(PodQuota) < made.__mro__.index(KubeSpawner)
    spawner = made(config=c, _mock=True)
    assert spawner.profile_list == [{"display_name": "Small"}]
    assert (spawner.service_url, spawner.service_token) == ("http://service:8084", "b" * 64)
    assert spawner.mlp_api_url == "http://service:8084/services/mlp/api/v1"
    assert spawner.mlp_data_url == "http://data:8087/data"
    assert (spawner.mlp_installation, spawner.mlp_by_limits) == ("site", False)
    assert JOBS_WRITE in spawner.server_token_scopes


class TheirSpawner(KubeSpawner):
    """A class of the site's own."""


def test_a_class_of_the_sites_own_keeps_its_section() -> None:
    c = z2jh(spawner_class=TheirSpawner)
    c.TheirSpawner.cpu_limit = 3
    attach(c, **AT)
    assert issubclass(c.JupyterHub.spawner_class, TheirSpawner)
    assert c.JupyterHub.spawner_class(config=c, _mock=True).cpu_limit == 3


def test_roles_and_scopes_of_the_site_stay() -> None:
    c = z2jh(custom_scopes={"custom:site:x": {"description": "x"}})
    c.JupyterHub.load_roles.append({"name": "user", "scopes": ["self", "custom:site:x"]})
    c.KubeSpawner.server_token_scopes = ["custom:site:x"]
    attach(c, **AT)
    assert {"custom:site:x", JOBS_WRITE} <= set(c.JupyterHub.custom_scopes)
    (people,) = [one for one in c.JupyterHub.load_roles if one["name"] == "user"]
    assert {"self", "custom:site:x", JOBS_WRITE, ACCESS} <= set(people["scopes"])
    assert "extra_user_scopes" not in c.JupyterHub
    assert {"custom:site:x", JOBS_WRITE} <= set(c.QuotaSpawner.server_token_scopes)


@pytest.mark.parametrize(
    ("hub", "words"),
    [
        ({"services": []}, "hub.services has no mlp: add `mlp: {}`"),
        ({"services": [{"name": "mlp", "url": "http://x"}]}, "hub.services.mlp has no token"),
        (
            {"services": [{"name": n, "api_token": "x" * 32} for n in ("mlp", "mlp-spawner", "mlp-data")]},
            "hub.services.mlp has no url",
        ),
        ({"spawner_class": "jupyterhub.spawner.SimpleLocalProcessSpawner"}, "is not a KubeSpawner"),
        ({"spawner_class": "simple"}, "write it with its module"),
    ],
)
def test_a_configuration_that_does_not_fit_is_named_with_the_way_out(hub: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        attach(z2jh(**hub), **AT)


def test_a_second_call_is_refused() -> None:
    c = z2jh()
    attach(c, **AT)
    with pytest.raises(ValueError, match="attach was called twice"):
        attach(c, **AT)


_LOADS = """
import sys
sys.path.insert(0, sys.argv[1])
import jupyterhub.app, kubespawner
before = set(sys.modules)
import mlp_hub.hub_integration.attached, mlp_spawner.attached.pod_quota
new = {name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
assert mlp_hub.__file__.startswith(sys.argv[1]), mlp_hub.__file__
print(*sorted(new))
"""


def test_a_hub_needs_only_the_copied_packages_beside_its_own(tmp_path: Path) -> None:
    copying.copy(tmp_path)
    copying.copy(tmp_path)  # as a restarted pod does
    done = subprocess.run(
        [sys.executable, "-c", _LOADS, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["mlp_hub", "mlp_language", "mlp_spawner"], done.stderr
