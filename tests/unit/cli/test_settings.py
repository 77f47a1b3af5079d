"""Settings come from the environment, else from the file, else from the table's defaults."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from mlp_hub.settings import Settings, SettingsError, table, variable_of
from mlp_hub.settings.definition import PARTS
from mlp_hub.settings.state_paths import SOCKET_PATH_MAX


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_without_anything_set_the_defaults_hold() -> None:
    settings = Settings.load({"HOME": "/home/ann"})
    assert settings.home == Path("/home/ann/.local/share/mlp-hub")
    assert (settings.bind, settings.port, settings.admin_name) == ("127.0.0.1", 8000, "admin")
    assert (settings.notebook_cpu, settings.notebook_ram, settings.node_cpu_overcommit) == (0.2, 1024, 3.0)


def test_the_state_lies_below_xdg_data_home() -> None:
    assert Settings.load({"XDG_DATA_HOME": "/x"}).home == Path("/x/mlp-hub")


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    config = write(
        tmp_path / "c.py", "c.MLPHub.port = 9001\nc.MLPHub.notebook_ram = 512\nc.Spawner.debug = True\n"
    )
    settings = Settings.load({"MLP_CONFIG": config, "MLP_PORT": "9002", "HOME": "/h"})
    assert (settings.port, settings.notebook_ram, settings.config) == (9002, 512, Path(config))


def test_an_unknown_key_names_itself_and_what_is_close(tmp_path: Path) -> None:
    config = write(tmp_path / "c.py", "c.MLPHub.notebok_cpu = 1\n")
    with pytest.raises(SettingsError, match=r"c\.MLPHub\.notebok_cpu.*close to it: notebook_cpu"):
        Settings.load({"MLP_CONFIG": config})


def test_a_file_that_is_not_there_or_does_not_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no such file"):
        Settings.load({"MLP_CONFIG": str(tmp_path / "none.py")})
    with pytest.raises(SettingsError, match=r"bad\.py cannot be read: ZeroDivisionError"):
        Settings.load({"MLP_CONFIG": write(tmp_path / "bad.py", "1 / 0\n")})


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("MLP_PORT", "eighty", "MLP_PORT is 'eighty'; it must be a whole number"),
        ("MLP_PORT", "99999", "MLP_PORT is '99999'; it must be at most 65535"),
        ("MLP_EXECUTOR", "cloud", "MLP_EXECUTOR is 'cloud'; it must be one of local, simulated, kubernetes"),
        ("MLP_ALLOW_NO_SANDBOX", "maybe", "MLP_ALLOW_NO_SANDBOX is 'maybe'; it must be 1 or 0"),
        ("MLP_NOTEBOOK_CPU", "nan", "MLP_NOTEBOOK_CPU is 'nan'; it must be at least 0.1"),
        (
            "MLP_TRUSTED_PROXIES",
            "10.0.0.5,gateway",
            "MLP_TRUSTED_PROXIES: 'gateway' does not appear to be an IPv4 or IPv6 network; it takes addresses and networks, "
            "as 10.0.0.0/8",
        ),
        (
            "MLP_TRUSTED_PROXIES",
            "10.0.0.5/8",
            "MLP_TRUSTED_PROXIES: 10.0.0.5/8 has host bits set; it takes addresses and networks, as 10.0.0.0/8",
        ),
        (
            "MLP_TRUSTED_PROXIES",
            "::/0",
            "MLP_TRUSTED_PROXIES has ::/0, which is everybody; name the addresses of your proxies",
        ),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_the_way_out(variable: str, value: str, says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.load({variable: value})
    assert str(caught.value) == says


def test_children_load_the_same_settings_from_the_environment_alone(tmp_path: Path) -> None:
    config = write(tmp_path / "c.py", "c.MLPHub.allowed_hosts = ['a.example', 'b']\nc.MLPHub.node_gpus = 2\n")
    settings = Settings.load({"MLP_CONFIG": config, "MLP_ALLOW_NO_SANDBOX": "1", "HOME": "/h"})
    child = Settings.load(settings.to_environ())
    assert child == dataclasses.replace(settings, config=None)


def test_socket_paths_fit_however_deep_the_state_directory_is() -> None:
    for home in ("/h", "/h/" + "d" * 74, "/h/" + "d" * 200, "/h/" + "ö" * 40):
        settings = Settings.load({"MLP_HOME": home})
        assert len(bytes(settings.proxy_api_socket)) <= SOCKET_PATH_MAX
    assert Settings.load({"MLP_HOME": "/h"}).run_dir == Path("/h/run")
    assert str(settings.run_dir).startswith("/tmp/mlp-")


def test_two_state_directories_never_share_a_run_directory() -> None:
    one, two = (Settings.load({"MLP_HOME": f"/h/{'d' * 200}{n}"}) for n in "12")
    assert one.run_dir != two.run_dir


def test_the_table_describes_every_setting() -> None:
    rows = table()
    last = [spec.name for part in PARTS for spec in dataclasses.fields(part)]
    others = [spec.name for spec in dataclasses.fields(Settings) if spec.name not in last]
    assert [row.name for row in rows] == others + last
    assert all(row.doc.endswith(".") and row.variable == variable_of(row.name) for row in rows)


@pytest.mark.parametrize(
    ("bind", "one_name"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000/"),
        ("0.0.0.0", "http://127.0.0.1:8000/"),  # noqa: S104 - an argument, nothing is bound
        ("::1", "http://[::1]:8000/"),
    ],
)
def test_the_url_can_be_opened_on_this_machine(bind: str, one_name: str) -> None:
    assert Settings.load({"MLP_BIND": bind}).url == "http://localhost:8000/"
    assert Settings.load({"MLP_BIND": bind, "MLP_USERS_DOMAIN": "none"}).url == one_name


def test_settings_need_only_the_standard_library() -> None:
    code = (
        "import sys; before = set(sys.modules); import mlp_hub.settings;"
        "new = {m.partition('.')[0] for m in sys.modules if m not in before};"
        "print(sorted(m for m in new if m not in sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['mlp_api', 'mlp_hub']"
