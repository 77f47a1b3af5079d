"""What the platform may do for one job, one point, one cycle, and load at rest: counts, of which `tests/budgets.toml` has the most.

Counts need no clock and no quiet machine: what costs more than it did is found by them, whoever else is busy.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.sandbox.control import SHIM
from mlp_hub.store.repos.base import Repo
from support.rigs.platform_rig import FAST, Rig, running_rig
from support.waiting import until

BUDGETS = tomllib.loads((Path(__file__).parents[2] / "budgets.toml").read_text())
LONG = {"DURATION": 600}
MANY = 200


def most(name: str) -> int:
    """Return the most of a count."""
    found: int = BUDGETS[name]["most"]
    return found


@contextmanager
def counted(*, of: str = "") -> Iterator[list[str]]:
    """Collect the statements that are run meanwhile; with `of` those that name it."""
    found: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        # what is done now and then, whether anything happens or not
        if "lease" not in statement and of in statement:
            found.append(" ".join(statement.split()))

    plain = Repo._by_driver

    def by_driver(repo: Repo, sql: str, parameters: Any, *, many: bool = False) -> Any:
        done = plain(repo, sql, parameters, many=many)
        if done is not None:  # SQLAlchemy tells nobody of those
            note(None, None, sql)
        return done

    event.listen(Engine, "before_cursor_execute", note)
    Repo._by_driver = by_driver  # type: ignore[method-assign]
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", note)
        Repo._by_driver = plain  # type: ignore[method-assign]


async def test_one_job_alone(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("first", sim={"DURATION": 0.05})
        await rig.until("first", "finished")
        before = _commits(rig)
        with counted() as statements:
            await rig.submit("a", sim={"DURATION": 0.05})
            await rig.until("a", "finished")
        writes = [s for s in statements if s.startswith(("INSERT", "UPDATE", "DELETE"))]
        assert len(writes) <= most("one_job_writes"), writes
        assert _commits(rig) - before <= most("one_job_commits")


async def test_one_job_asks_few_things_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    plain = ThreadPoolExecutor.submit

    def submit(pool: ThreadPoolExecutor, work: Any, *args: Any, **more: Any) -> Any:
        found.append(str(args or work))
        return plain(pool, work, *args, **more)

    policy = replace(FAST, charge_files=True)
    async with running_rig(tmp_path, policy=policy) as rig:
        home = Path(rig.directories.home("ann"))
        home.mkdir(parents=True, exist_ok=True)
        (home / "true.sh").write_text("exit 0")
        await rig.submit("first", entry="true.sh", code=None, sim={"DURATION": 0.05})
        await rig.until("first", "finished")
        monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
        await rig.submit("a", entry="true.sh", code=None, sim={"DURATION": 0.05})
        await rig.until("a", "finished")
        assert len(found) <= most("submits_of_one_job"), found


def _commits(rig: Rig) -> int:
    writer = rig.db._writer
    assert writer is not None
    return writer.commits


async def test_many_jobs_that_end_are_summed_up_together(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:

        async def summed() -> bool:
            left = await rig.db.read(lambda tx: tx.runs.unsummed(MANY))
            return not left

        with counted() as statements:
            await asyncio.gather(
                *(rig.submit(f"j{n}", cpu=0.01, sim={"DURATION": 0.01}) for n in range(MANY))
            )
            await until(lambda: _all_ended(rig), what="all to end")
            await until(summed, what="all to be summed up")
        of_sums = [s for s in statements if "run_summary" in s or "job.past, job.ranks" in s]
        of_sums = [s for s in of_sums if "OUTER JOIN" not in s]  # the test itself
        assert len(of_sums) <= most("sums_of_200_runs"), of_sums
        writes = [s for s in statements if s.startswith(("INSERT", "UPDATE", "DELETE"))]
        assert len(writes) <= most("writes_of_200_jobs"), len(writes)


async def test_directories_of_jobs_that_end_together_are_charged_together(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=replace(FAST, charge_files=True)) as rig:

        async def charged() -> bool:
            left = await rig.db.read(lambda tx: tx.stored.jobs_never_measured(MANY))
            return not left

        with counted(of="sum(stored.used)") as statements:
            await asyncio.gather(
                *(rig.submit(f"j{n}", cpu=0.01, sim={"DURATION": 0.01}) for n in range(MANY))
            )
            await until(lambda: _all_ended(rig), what="all to end")
            await until(charged, what="all to be charged")
        assert len(statements) <= most("charges_of_200_jobs"), len(statements)


async def _all_ended(rig: Rig) -> bool:
    return not rig.platform.board.jobs


async def test_one_batch_of_points(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        job = await rig.submit("a", sim=LONG)
        await rig.until("a", "running")

        async def report(n: int) -> None:
            points = [MetricPoint(n=n, t=float(n), v={"loss": 1.0})]
            await rig.platform.metrics.append(SYSTEM, "ann", "a", MetricBatch(source="0.0.a", points=points))

        await report(1)
        with counted(of="metric") as statements:
            await report(2)
        assert len([s for s in statements if "run_value" not in s]) <= most("one_batch_of_points"), statements
        rig.end(job)


async def test_a_tenant_is_made_without_looking_at_all_others(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        from mlp_api.types import TenantCreate

        await rig.platform.tenants.create(TenantCreate(name="first"))
        with counted(of="FROM tenant") as statements:
            await rig.platform.tenants.create(TenantCreate(name="other"))
        whole = [s for s in statements if "WHERE" not in s]
        assert len(whole) <= most("reads_of_all_tenants"), whole


LOADED = """
import sys
{code}
print(len([m for m in sys.modules if not m.startswith(("encodings", "_"))]))
"""


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("modules_of_the_service", "import mlp_hub.app"),
        ("modules_of_waiting_for_files", "import mlp_hub.dav.__main__"),
        ("modules_of_the_supervisor", "import mlp_hub.cli.supervisor"),
        ("modules_of_the_command", "import mlp.cli"),
        ("modules_of_the_culler", "import mlp_hub.hub_integration.culler"),
        ("modules_of_the_doctors_look", "import mlp_hub.hub_integration.providers.examine"),
    ],
)
def test_the_load_at_rest_stays_within_the_budget(name: str, code: str) -> None:
    said = subprocess.run(
        [sys.executable, "-I", "-c", LOADED.format(code=code)], capture_output=True, text=True, check=True
    )
    assert int(said.stdout) <= most(name)


def test_the_process_that_forks_shims_stays_within_the_module_budget() -> None:
    code = f"""
import sys
sys.argv = ["shim", "--serve", "-1"]
try:
    exec(compile(open({SHIM!r}).read(), {SHIM!r}, "exec"), {{"__name__": "__main__", "__package__": None, "__file__": {SHIM!r}}})
except (OSError, ValueError):
    print(len(sys.modules))
"""
    said = subprocess.run([sys.executable, "-IS", "-c", code], capture_output=True, text=True, check=True)
    assert int(said.stdout) <= most("modules_of_a_shim")


def test_loading_the_magics_stays_within_the_module_budget() -> None:
    code = (
        "import sys; from IPython.core.interactiveshell import InteractiveShell as S; s = S(); n = len(sys.modules); "
        "s.run_line_magic('load_ext', 'mlp'); print(len(sys.modules) - n)"
    )
    said = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert int(said.stdout) <= most("modules_of_the_magics")
