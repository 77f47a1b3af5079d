"""Requests made of the OpenAPI document, right and wrong ones: no fault, nothing that is not written there.

Each time a few of each operation; `make test-document` makes many, and tries the bounds of every field.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.python._constants.orchestrator import make_constants_value_source
from schemathesis.specs.openapi.checks import negative_data_rejection, unsupported_method
from tornado.netutil import bind_sockets

from mlp_hub.api import openapi
from mlp_hub.api.build import make_server
from mlp_hub.api.table import all_routes
from mlp_hub.web.site import make_application
from support.rigs.api_rig import BASE, ApiRig, a_model, a_window, started

DOCUMENT = msgspec.json.decode(msgspec.json.encode(openapi.document(all_routes(), "0")))
OPERATIONS = [f"{method.upper()} {path}" for path, methods in DOCUMENT["paths"].items() for method in methods]
THERE = {
    "user": "ann",
    "job": "digits",
    "tenant": "red",
    "model": "net",
    "dataset": "pets",
    "app": "site",
    "key": "mine",
    "booking": "night",
    "runtime": "mine",
    "service": "ci",
}
"""Objects that are there: what is made up finds nothing, and never comes as far."""
_numbers = count()
EXCLUDED = [unsupported_method]
"""What is not here is refused as all else is, 403 with its reason: the contract knows no 405."""
FEW, MANY = 4, 60
"""Requests that are made up of an operation."""


class Made:
    """What requests are made of. It is built when the first is made: each of pytest's workers would, while it collects tests."""

    def __init__(self) -> None:
        self.schema = schemathesis.openapi.from_dict(DOCUMENT)
        found = (operation.ok() for operation in self.schema.get_all_operations())
        self.operations = {operation.label: operation for operation in found}
        assert list(self.operations) == OPERATIONS
        self.feedback = FeedbackSources(constants_value_source=make_constants_value_source(self.schema))
        """What answers to earlier requests teach those that are made up later."""


all_made = functools.cache(Made)


def examples(config: pytest.Config) -> settings:
    """Say how many requests are made up: the same each time, or with `--whole-document` many more, and others each time."""
    whole = bool(config.getoption("--whole-document"))
    all_made().schema.config.phases.coverage.enabled = whole
    return settings(
        max_examples=MANY if whole else FEW,
        deadline=None,
        derandomize=not whole,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ApiRig, str]]:
    """Give the API on a port of its own, with ann's job digits in red."""
    root: Path = tmp_path_factory.mktemp("fuzz")
    for rig in started(root):

        async def listen(rig: ApiRig = rig) -> int:
            server = make_server(rig.service, make_application(rig.service), behind_proxy=True)
            sockets = bind_sockets(0, "127.0.0.1")
            server.add_sockets(sockets)
            rig._servers.append(server)
            return int(sockets[0].getsockname()[1])

        yield rig, f"http://127.0.0.1:{rig.run(listen())}{BASE}"


def let_in(rig: ApiRig) -> None:
    """Give back what an earlier request took away of who asks, and of whom it is about."""
    rig.hub.user("admin", rig.root_user, admin=True)
    rig.hub.accounts["admin"] |= {"authorized": True, "admin": True}
    rig.hub.user("ann", rig.ann)
    rig.hub.accounts["ann"] |= {"authorized": True}


def revived(rig: ApiRig, asked: Collection[str]) -> None:
    """Make anew of the objects that a request names what an earlier one deleted, in the order in which they need each other."""

    def is_there(path: str) -> bool:
        found = rig.ask("GET", path, token=rig.root_user)
        return found.status == 200 and (
            not isinstance(found.json, dict) or found.json.get("state") != "deleting"
        )

    if "job" in asked and not is_there("/users/ann/jobs/digits"):
        rig.job("ann", "digits", rig.ann)
    if "model" in asked and not is_there("/users/ann/models/net"):
        name = f"source{next(_numbers)}"
        rig.job("ann", name, rig.ann, cpu=0.1)
        rig.until("ann", name, "running")
        (rig.rig.workspace("ann", name) / "ckpt" / "last.pt").write_text("weights")
        a_model(rig, "net", src=f"jobs/{name}/ckpt")
    if "dataset" in asked and not is_there("/users/ann/datasets/pets"):
        rig.ask("POST", "/users/ann/datasets", {"name": "pets", "size": 1}, token=rig.ann)  # or it is going
    if "app" in asked:
        rig.site("ann", rig.ann)
    made = [
        ("POST", "key", "/users/ann/apps/site/keys", {"name": "mine"}),
        ("POST", "booking", "/tenants/red/bookings", a_window("night")),
        ("PUT", "runtime", "/tenants/red/runtimes/mine", {"title": "Mine"}),
        ("POST", "service", "/tenants/red/services", {"name": "ci"}),
    ]
    for method, kind, path, body in made:
        if kind in asked:
            answer = rig.ask(method, path, body, token=rig.root_user)
            assert answer.status in (200, 201) or answer.json["reason"] == "Conflict", answer.body


def judged(case: Any, address: tuple[ApiRig, str]) -> None:
    """Send a request as a platform admin, and check all there is to check of the answer."""
    rig, url = address
    if (case.query or {}).get("follow") not in (None, False, "false"):
        case.query = {**case.query, "follow": "false"}  # it would go on as long as the job does
    let_in(rig)
    headers = {"Authorization": f"Bearer {rig.root_user}"}
    case.call_and_validate(base_url=url, headers=headers, excluded_checks=EXCLUDED, timeout=120)


def tried(label: str, request: Callable[..., None], where: tuple[ApiRig, str]) -> None:
    """Make requests of one operation, and hand each of them on."""
    of = all_made()
    build_operation_test(
        config=of.schema.config,
        operation=of.operations[label],
        test_func=request,
        given_kwargs={},
        feedback=of.feedback,
    )(address=where)


@pytest.mark.parametrize("label", OPERATIONS)
def test_generated_requests_are_answered_as_the_document_says(
    label: str, address: tuple[ApiRig, str], pytestconfig: pytest.Config
) -> None:
    """Each is asked as it was made up, and of objects that are there."""

    @examples(pytestconfig)
    def of_whatever(case: Any, address: tuple[ApiRig, str]) -> None:
        judged(case, address)
        named = {name: THERE[name] for name in case.path_parameters or {} if name in THERE}
        if named:
            let_in(address[0])
            revived(address[0], named.keys())
            case.path_parameters = {**(case.path_parameters or {}), **named}
            judged(case, address)

    tried(label, of_whatever, address)


def test_all_checks_that_there_are_are_made() -> None:
    names = {check.__name__ for check in CHECKS.get_all()}
    assert {"not_a_server_error", "status_code_conformance", "response_schema_conformance"} <= names
    assert negative_data_rejection.__name__ in names
