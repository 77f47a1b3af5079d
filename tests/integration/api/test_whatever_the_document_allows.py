"""Requests made of the OpenAPI document, right and wrong ones: no fault, nothing that is not written there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS
from schemathesis.specs.openapi.checks import negative_data_rejection, unsupported_method
from tornado.netutil import bind_sockets

from api_rig import BASE, ApiRig, started
from mlp_hub.api import openapi
from mlp_hub.api.build import make_server
from mlp_hub.api.table import all_routes
from mlp_hub.web.site import make_application

DOCUMENT = msgspec.json.decode(msgspec.json.encode(openapi.document(all_routes(), "0")))
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
THERE = {"user": "ann", "job": "digits", "tenant": "red"}
"""Objects that are there: what is made up finds nothing, and never comes as far."""
EXCLUDED = [unsupported_method]
"""What is not here is refused as all else is, 403 with its reason: the contract knows no 405."""
EXAMPLES = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,  # the same requests each time
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


def judged(case: Any, where: tuple[ApiRig, str]) -> None:
    """Send a request as a platform admin, and check all there is to check of the answer."""
    rig, url = where
    if (case.query or {}).get("follow") not in (None, False, "false"):
        case.query = {**case.query, "follow": "false"}  # it would go on as long as the job does
    # what an earlier request took away is given back
    rig.hub.user("admin", rig.root_user, admin=True)
    rig.hub.accounts["admin"] |= {"authorized": True, "admin": True}
    headers = {"Authorization": f"Bearer {rig.root_user}"}
    case.call_and_validate(base_url=url, headers=headers, excluded_checks=EXCLUDED, timeout=120)


@SCHEMA.parametrize()
@EXAMPLES
def test_what_is_made_up_is_answered_as_the_document_says(case: Any, address: tuple[ApiRig, str]) -> None:
    judged(case, address)


@SCHEMA.parametrize()
@EXAMPLES
def test_so_is_what_is_asked_of_objects_that_are_there(case: Any, address: tuple[ApiRig, str]) -> None:
    named = {name: THERE[name] for name in case.path_parameters or {} if name in THERE}
    case.path_parameters = {**(case.path_parameters or {}), **named}
    judged(case, address)


def test_all_checks_that_there_are_are_made() -> None:
    names = {check.__name__ for check in CHECKS.get_all()}
    assert {"not_a_server_error", "status_code_conformance", "response_schema_conformance"} <= names
    assert negative_data_rejection.__name__ in names
