"""What all tests share: a short place for their files, and which files are begun first."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from support.slices import Slice
from support.waiting import PATIENCE_S

SLOWEST = (
    "test_story",
    "test_hub",
    "test_the_chart_is_installed",
    "test_backups",
    "test_groups_within_a_minute",
    "test_saved_notebooks",
    "test_real_use_is_reported",
    "test_behind_a_domain",
    "test_servers_on_a_real_hub",
    "test_axe",
    "test_pages_in_chinese",
    "test_every_older_database",
    "test_keycloak_is_restarted",
    "test_dav",
    "test_proxy_before_silence",
    "test_team_pages",
    "test_pages_look",
    "test_hung_components",
    "test_on_postgresql",
    "test_whatever_the_document_allows",
    "test_attacks_on_the_edge",
    "test_notebooks_that_run",
    "test_attacks_between_origins",
    "test_monitor_elsewhere",
    "test_one_job_cannot_fill_the_disk",
    "test_attacks_on_shim",
    "test_sessions_on_a_real_hub",
    "test_keycloak_through_nginx",
    "test_servers_with_environments",
    "test_faults",
    "test_panel_tenants",
    "test_runs_pages",
    "test_servers_that_their_users_break",
    "test_two_replicas",
    "test_tables_on_a_phone",
    "test_event_files_of_real_writers",
    "test_programs_page",
    "test_full_disk",
    "test_confirming_on_a_real_hub",
    "test_panel_walk",
    "test_failover_is_bounded",
    "test_copies",
    "test_a_notebook_is_stopped_for_the_disk",
    "test_accounts_on_a_real_hub",
    "test_attacks_live",
    "test_a_notebook_cannot_fill_the_disk",
    "test_login_with_keycloak",
    "test_without_the_hubs_database",
    "test_monitor_live",
    "test_dashboards_have_data",
    "test_watch",
    "test_alerts_are_delivered",
)
"""Files that take a minute beside others, the longest first (`make test-summary`): begun last, one would be waited for alone."""

ALWAYS = ("test_story",)
"""Files of each slice."""

LONGEST_S = 4 * PATIENCE_S

INSTALLS = ("local", "cluster", "helm")

OWN = pytest.StashKey[str]()
"""The directory that was made for all files of this run."""

os.environ["MLP_LANGUAGE"] = "en"  # whatever the terminal's is
# jsonschema would build a grammar for a format that no schema here has, for a second and a half in each worker
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # means: not installed

# no test asserts on time: how long an example takes says more of the machine than of the code
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="write the golden files anew")
    parser.addoption(
        "--whole-document",
        action="store_true",
        help="make up many requests of each operation of the API, and try the bounds of every field",
    )
    parser.addoption(
        "--install",
        choices=INSTALLS,
        default="local",
        help="where the acceptance suite has notebooks and jobs",
    )
    parser.addoption(
        "--slice",
        type=Slice.parse,
        metavar="K/N",
        help="run one of N slices of the files, and the story",
    )


@pytest.fixture
def golden(pytestconfig: pytest.Config) -> Callable[[Path, str], None]:
    """Hold a text to a golden file, or write the file with `--golden`."""

    def held(path: Path, text: str) -> None:
        if pytestconfig.getoption("--golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        known = path.read_text(encoding="utf-8") if path.exists() else None
        assert text == known, (
            f"{path} differs: if that is meant, run pytest --golden, and read the difference"
        )

    return held


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # modules and items make no garbage; looking for it among them took half of the time of collecting them
    if config.option.basetemp is None:
        # a UNIX socket's path has 107 bytes at most, and pytest's own directories leave too few for those of workers
        config.option.basetemp = config.stash[OWN] = tempfile.mkdtemp(prefix="m", dir="/tmp")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remove the files of tests that all passed."""
    if exitstatus == 0 and OWN in session.config.stash:
        shutil.rmtree(session.config.stash[OWN], ignore_errors=True)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over files of other slices. None: others decide."""
    chosen: Slice | None = config.getoption("--slice")
    if chosen is None or not collection_path.match("test_*.py"):
        return None
    if collection_path.stem in ALWAYS:
        return None
    return None if chosen.has(collection_path, SLOWEST) else True


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test on an event loop of its own; `LONGEST_S` only bounds one that would never end. None: others do."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}

    async def bounded() -> None:
        async with asyncio.timeout(LONGEST_S):
            await test(**given)

    asyncio.run(bounded())
    return True


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slowest files; the rest stay in their order."""
    rank = {name: number for number, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))
