"""The table of components: how each is made, and the orders in which they start, are kept in order, and stop."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import pytest

from mlp_hub.domain.errors import Unavailable
from mlp_hub.service.components import Components
from mlp_hub.service.platform import Platform
from mlp_hub.service.support.component import ServiceComponent, StopStage, call, rows, stops
from mlp_language.message import verbatim

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = {row.name: row for row in rows(Components)}


def test_components_stop_in_stages_and_within_a_stage_the_last_started_first() -> None:
    standing_by = [name for name, _ in stops(Components, close=False)]
    assert standing_by == [
        *("exports", "audit_shipping", "traces", "alerts", "alert_deliveries", "over_time"),
        *("metrics", "disk", "summaries"),
        *("retention", "admission", "queue"),
        *("sweeps", "app_worker", "reconciler", "file_accounting", "drains", "board", "notices"),
    ]
    closing = [(name, stop.stage.name) for name, stop in stops(Components, close=True)]
    assert closing == [
        *(
            (name, "INTAKE")
            for name in (
                "former_members_servers",
                "submissions",
                "exports",
                "audit_shipping",
                "traces",
                "alerts",
                "alert_deliveries",
                "over_time",
                "monitoring",
            )
        ),
        *((name, "INTAKE") for name in ("metrics", "disk", "summaries", "retention", "forecasts")),
        ("admission", "DECISIONS"),
        ("queue", "QUEUE"),
        *((name, "WORKERS") for name in ("sweeps", "app_worker", "reconciler", "file_accounting", "drains")),
        *((name, "STATE") for name in ("metrics", "idle", "board")),
        ("board", "COMMITS"),
        *((name, "LAST") for name in ("audit_chain", "notices", "lease", "bus")),
    ]


def test_the_queue_starts_before_all_that_add_to_it_and_decisions_begin_after_them() -> None:
    starts = [row.name for row in rows(Components) if row.start is not None]
    workers = {
        "external_jobs",
        "storage_migration",
        "notices",
        "reconciler",
        "models",
        "datasets",
        "app_worker",
        "sweeps",
    }
    assert starts[:4] == ["users", "tenants", "ledger", "board"]
    assert max(starts.index(name) for name in workers) < starts.index("admission")
    assert min(starts.index(name) for name in workers) > starts.index("queue")


def test_every_component_that_can_be_stopped_is_stopped() -> None:
    classes = {name: get_args(hint)[0] for name, hint in _hints().items()}
    assert classes.keys() == ROWS.keys()
    can_stop = {name for name, kind in classes.items() if hasattr(kind, "stop")}
    assert can_stop <= {name for name, _ in stops(Components, close=True)}, "each has a stage in its row"


def _hints() -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(Components).items() if name in ROWS}


class Two:
    one: ServiceComponent[Two, str] = ServiceComponent(lambda root: f"after {root.two}")
    two: ServiceComponent[Two, str] = ServiceComponent(lambda root: "two")
    left: ServiceComponent[Two, str] = ServiceComponent(lambda root: root.right)
    right: ServiceComponent[Two, str] = ServiceComponent(lambda root: root.left)


def test_a_component_is_made_once_and_after_those_that_it_needs() -> None:
    root = Two()
    assert root.one == "after two"
    assert root.one is root.one
    assert list(vars(root)) == ["_making", "two", "one"]


def test_a_circle_of_components_is_named() -> None:
    with pytest.raises(RuntimeError, match="left -> right -> left"):
        _ = Two().left


class Parent:
    def act(self) -> None:
        raise AssertionError("the component's own method counts")


class Child(Parent):
    def __init__(self) -> None:
        self.acted: list[str] = []

    def act(self) -> None:
        self.acted.append("own")

    async def later(self, by: float) -> None:
        self.acted.append(f"later by {by}")


async def test_a_verb_is_the_components_own_method_and_may_be_async() -> None:
    child = Child()
    await call(Parent.act, child)
    await call(Child.later, child, 2.0)
    await call(lambda component: component.acted.append("lambda"), child)
    assert child.acted == ["own", "later by 2.0", "lambda"]


def _root(failing: str, error: Exception) -> tuple[Any, list[str]]:
    tidied: list[str] = []

    def doing(name: str) -> Callable[[], None]:
        def tidy() -> None:
            tidied.append(name)
            if name == failing:
                raise error

        return tidy

    tended = {name: row.tidy for name, row in ROWS.items() if row.tidy is not None}
    parts = {name: SimpleNamespace(**{verb.__name__: doing(name)}) for name, verb in tended.items()}
    return SimpleNamespace(**parts), tidied


async def test_a_fault_of_one_component_keeps_no_other_from_being_kept_in_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    root, tidied = _root("bookings", ValueError("broken"))
    with caplog.at_level(logging.ERROR):
        await Platform._tidy(root)
    assert tidied == [row.name for row in rows(Components) if row.tidy is not None]
    assert "keeping bookings in order failed" in caplog.text


async def test_without_a_database_no_further_component_is_tried() -> None:
    root, tidied = _root("bookings", Unavailable(verbatim("no database")))
    with pytest.raises(Unavailable):
        await Platform._tidy(root)
    assert tidied[-1] == "bookings"


def test_stages_are_in_the_order_of_their_names() -> None:
    assert [stage.name for stage in sorted(StopStage)] == [stage.name for stage in StopStage]
