"""The OpenAPI document is sound and holds every route."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from mlp_hub.api import openapi
from mlp_hub.api.auth import scopes
from mlp_hub.api.routes import Relation
from mlp_hub.api.table import all_routes
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.jobs.job import Phase

ROUTES = all_routes()


@pytest.fixture(scope="module")
def document() -> Any:
    return msgspec.json.decode(msgspec.json.encode(openapi.document(ROUTES, "1.2.3")))


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(v) for v in value.values()))
    if isinstance(value, list):
        return set().union(*(references(v) for v in value))
    return set()


def operations(document: Any) -> dict[tuple[str, str], Any]:
    return {(m.upper(), p): op for p, methods in document["paths"].items() for m, op in methods.items()}


def test_every_reference_leads_somewhere(document: Any) -> None:
    for reference in references(document):
        found = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]


def test_every_schema_is_a_json_schema_of_2020(document: Any) -> None:
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_route_is_there_with_its_scope_and_all_its_answers(document: Any) -> None:
    found = operations(document)
    for route in ROUTES:
        operation = found[route.method, route.path]
        public = route.relation is Relation.PUBLIC
        needed = {"101" if route.socket else str(route.status), "403", "429", "503"} | (
            set() if public else {"401"}
        )
        needed |= {"206"} if route.partial else set()
        assert set(operation["responses"]) == needed
        scope = [route.scope] if route.scope else []
        assert operation["security"] == ([] if public else [{"token": scope}, {"session": scope}])
        names = re.findall(r"{(\w+)}", route.path)
        assert names == [p["name"] for p in operation["parameters"] if p["in"] == "path"]
        assert operation["summary"]
        assert operation["description"]
    assert len(found) == len(ROUTES)


def test_operation_ids_are_unique(document: Any) -> None:
    ids = [operation["operationId"] for operation in operations(document).values()]
    assert len(ids) == len(set(ids))


def test_the_reasons_are_the_closed_set(document: Any) -> None:
    reason = document["components"]["schemas"]["Refusal"]["properties"]["reason"]
    assert reason["enum"] == [str(r) for r in Reason]


def test_requests_refuse_unknown_fields_and_responses_hold_all_of_theirs(document: Any) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["JobCreate"]["additionalProperties"] is False
    assert set(schemas["Job"]["required"]) == set(schemas["Job"]["properties"])


def test_every_scope_of_a_route_is_defined_and_every_defined_one_is_used() -> None:
    used = {r.scope for r in ROUTES if r.scope is not None}
    assert used == set(scopes.SCOPES)


def test_every_route_of_the_table_but_the_public_and_personal_ones_names_a_scope() -> None:
    without = {r.path for r in ROUTES if r.scope is None}
    assert without == {
        "/health",
        "/ready",
        "/users/{user}/token",
        "/openapi.json",
        "/users",
        "/auth",
        "/session",
        "/runtimes",
        "/users/{user}/preferences",
    }


def test_scopes_can_be_read_without_the_service(tmp_path: Path) -> None:
    source = Path(scopes.__file__).read_text()
    assert re.findall(r"^(?:import|from) .*", source, re.MULTILINE) == ["from __future__ import annotations"]
    for name, definition in scopes.custom_scopes().items():
        assert re.fullmatch(r"custom:[a-z0-9][a-z0-9-_:*]+[a-z0-9*]", name)
        assert definition["description"]
    assert scopes.PLATFORM_ADMIN not in (*scopes.USER_SCOPES, *scopes.SERVER_SCOPES)
    assert scopes.LEDGER_WRITE not in (*scopes.USER_SCOPES, *scopes.SERVER_SCOPES)


def test_types_can_be_made_of_it_that_hold_what_there_is(document: Any) -> None:
    schemas = document["components"]["schemas"]
    for name in ("Job", "QueueEntry", "Why"):
        assert schemas[name]["properties"]["phase"]["enum"] == [str(p) for p in Phase]
    messages = document["paths"]["/users/{user}/jobs/{job}:stream"]["get"]["responses"]["101"]
    frames = messages["content"]["application/json"]["schema"]["anyOf"]
    kinds = [schemas[f["$ref"].rpartition("/")[2]]["properties"]["type"]["enum"][0] for f in frames]
    assert sorted(kinds) == ["attempts", "end", "events", "job", "log", "metrics", "synced", "why"]
