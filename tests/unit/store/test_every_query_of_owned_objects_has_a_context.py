"""Whose objects a query may return is said by a value that the gatekeeper alone makes; no query of owned objects comes without it.

The type checker refuses a call that leaves it out; this finds a method that does not ask for it, and a request that would have the
platform's own.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import mlp_hub
from mlp_hub.domain.tenants.tenant_context import NOBODY, SYSTEM, TenantContext
from mlp_hub.store.repos.jobs.jobs import Jobs
from mlp_hub.store.repos.jobs.runs import Runs
from mlp_hub.store.repos.jobs.sweeps import Sweeps
from mlp_hub.store.repos.owned.apps import Apps
from mlp_hub.store.repos.owned.datasets import Datasets
from mlp_hub.store.repos.owned.models import Models
from mlp_hub.store.tx import Tx

ROOT = Path(mlp_hub.__file__).parent
OWNED = (Jobs, Datasets, Models, Apps, Runs, Sweeps)
ROWS = ("Job", "EndedJob", "Dataset", "ModelVersion", "App", "RunRow", "Sweep", "SweepTrial", "T")
"""What the objects that users own are in Python: who returns one of them, or `T` of the base `OwnedRepo`, says of whom."""
TELLS_NO_ROW = {
    Jobs: {
        "insert", "insert_many", "update", "update_many", "remove",  # the caller has the row, which it read before
        "versions", "queued",  # numbers, or nothing, of uids that the caller has
        "images", "counts", "count_active",  # sums
        "suspend_all", "users_active", "waiting_without_place",  # of all, for commands and those who look after leavers
    },
    Datasets: {"put", "remove"},
    Models: {"next_version", "in_phases", "put", "change_stage", "remove"},
    Apps: {"count", "free_port", "put", "remove"},
    Runs: {
        "put_origin", "put_data", "put_params", "put_trial", "put_summary", "put_summaries", "reopen", "forget_metrics", "set_tags",  # of a job that the caller has
        "origin", "text", "tags", "names", "totals", "ends", "summary", "summaries",  # what is beside jobs whose uids the caller has
        "unsummed", "delete_unused_texts",  # of all, for who sums up and who looks after what nobody has any more
        "ended_since",  # of all, for who exports traces to the operator's collector
    },
    Sweeps: {"count", "put", "remove", "put_trials"},
}  # fmt: skip
"""Methods that are not asked for rows; of any other it is wrong to have no context."""
MAKES = {
    "api/auth/authorize.py",
    "api/auth/gatekeeper.py",
    "domain/tenants/tenant_context.py",
    "service/storage/data.py",
}
"""Where a context is made: as the gatekeeper authorises, and of whom a job is that reads a dataset of its tenant."""


def methods() -> Iterator[tuple[type, str, inspect.Signature]]:
    for repo in OWNED:
        for name, function in inspect.getmembers(repo, inspect.isfunction):
            if not name.startswith("_"):
                yield repo, name, inspect.signature(function)


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        if "node_modules" not in path.parts:
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def test_every_method_that_returns_owned_objects_asks_for_whose() -> None:
    for repo, name, signature in methods():
        where = f"{repo.__name__}.{name}"
        first = list(signature.parameters.values())[1:2]
        asks = [p.name for p in first if p.annotation == "TenantContext"] == ["context"]
        assert asks or name in TELLS_NO_ROW[repo], (
            f"{where} takes no TenantContext first; a method that returns no objects, such as a count, is a name in TELLS_NO_ROW"
        )
        assert not (asks and name in TELLS_NO_ROW[repo]), (
            f"{where} takes a TenantContext; remove it from TELLS_NO_ROW"
        )
        if asks:
            assert first[0].default is inspect.Parameter.empty, where
        else:
            taken = {
                n.id for n in ast.walk(ast.parse(str(signature.return_annotation))) if isinstance(n, ast.Name)
            }
            written = {"update", "update_many"}
            assert name in written or not taken & set(ROWS), (
                f"{where} returns objects: it needs a TenantContext"
            )


def test_the_list_of_owned_repositories_is_whole() -> None:
    """A kind of object that users own (`api/auth/owned.py`) has a repository here."""
    there = {name for name, made in vars(Tx).items() if made.__class__.__name__ == "cached_property"}
    assert {"jobs", "datasets", "models", "apps", "runs", "sweeps"} <= there
    for name, tree in modules():
        if not name.startswith("store/"):
            taken = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
            past = [module for module in taken if module.startswith("mlp_hub.store.tables")]
            assert not past, f"{name} goes past the repositories"


@pytest.mark.parametrize("name", ["SYSTEM", "TenantContext"])
def test_no_request_has_the_platforms_own_context_or_makes_one(name: str) -> None:
    for module, tree in modules():
        called = {
            n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        }
        named = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        if name == "SYSTEM":
            outside = module.startswith(("api/", "web/", "dav/", "hub_integration/"))
            assert not (outside and name in named and "tenant_context" in ast.unparse(tree)), module
        else:
            assert name not in called or module in MAKES, module


def test_a_context_sees_only_the_objects_within_it() -> None:
    ann = TenantContext("ann")
    assert [ann.sees("ann", "red"), ann.sees("bob", "red"), NOBODY.sees("ann", "red")] == [True, False, False]
    leads = ann.and_of(["red"])
    assert [leads.sees("bob", "red"), leads.sees("bob", "blue"), leads.sees("ann", "blue")] == [
        True,
        False,
        True,
    ]
    assert SYSTEM.sees("bob", "blue")
    assert SYSTEM.and_of(["red"]) is SYSTEM
