"""The OpenAPI 3.1 document, made from the route table and the structs that validate."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from mlp_api.localized import schema_of
from mlp_api.types import Fault, Refusal
from mlp_hub.api.auth.scopes import SCOPES
from mlp_hub.api.edge.call import API_BASES
from mlp_hub.api.routes import Relation, Route
from mlp_hub.api.table import all_routes
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.jobs.job import Phase

_REF = "#/components/schemas/{name}"
_FAULTS = ("429", "503")
MEANT = {
    "job": {"description": "A job's name, which means its latest run, or NAME@RUN."},
    "model": {"description": "A model's name, which means its latest version, or NAME@VERSION."},
}
RELATIONS = {
    Relation.PUBLIC: "Needs no token.",
    Relation.ANYBODY: "Any caller with a valid token.",
    Relation.SELF: "The user of the path, or a platform admin.",
    Relation.OWNED: "Its owner, an admin of its tenant, or a platform admin.",
    Relation.VISITOR: "Its owner, who may open it as its access says, or a platform admin.",
    Relation.MEMBER: "A member of the tenant, or a platform admin.",
    Relation.TENANT_ADMIN: "An admin of the tenant, or a platform admin.",
    Relation.PLATFORM: "A platform admin, or a service with the scope.",
}
"""Description of each relation in words."""


def document(routes: Iterable[Route], version: str) -> dict[str, Any]:
    """Make the document."""
    routes = list(routes)
    kinds = [Refusal, Fault]
    kinds += [k for r in routes for k in (r.body, r.reply) if k is not None and _is_schema(k)]
    schemas = msgspec.json.schema_components(
        list(dict.fromkeys(kinds)), ref_template=_REF, schema_hook=schema_of
    )
    components = dict(schemas[1])
    components["Refusal"]["properties"]["reason"] = {"type": "string", "enum": [str(r) for r in Reason]}
    for schema in components.values():
        _say_items(schema)
        if schema.get("properties", {}).get("phase") == {"type": "string"}:  # of a job; an app's says its own
            schema["properties"]["phase"] = {"type": "string", "enum": [str(p) for p in Phase]}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        methods = paths.setdefault(route.path, {})
        # a WebSocket may share its path with nothing else: OpenAPI has one GET per path
        methods[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "MLP Hub",
            "version": version,
            "summary": "Distributed training jobs inside tenants' quotas.",
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "servers": [{"url": base} for base in API_BASES],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": _responses(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A JupyterHub token, or a job's own token.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "mlp-session",
                    "description": "The browser's session; unsafe methods need the X-XSRFToken header as well.",
                },
            },
        },
        "x-scopes": SCOPES,
    }


def _say_items(schema: Any) -> None:
    """Say of lists of anything that they are: generators of clients pass over a list that says nothing."""
    if isinstance(schema, dict):
        if schema.get("type") == "array":
            schema.setdefault("items", {})
        for part in schema.values():
            _say_items(part)
    elif isinstance(schema, list):
        for part in schema:
            _say_items(part)


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.operation,
        "summary": route.summary,
        "description": _description(route),
        "tags": [route.operation.partition("_")[0]],
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": _answers(route),
    }
    if route.relation is Relation.PUBLIC:
        operation["security"] = []
    else:
        needed = [route.scope] if route.scope else []
        operation["security"] = [{"token": needed}, {"session": needed}]
    if route.job_token:
        operation["x-job-token"] = True
    if route.socket:
        operation["x-websocket"] = True
    if route.takes_key:
        operation["parameters"].append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "The same key with the same body gives the first request's answer.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 255},
            }
        )
    if route.partial:
        operation["parameters"] += [
            _header("Range", "bytes=FIRST-LAST, bytes=FIRST- or bytes=-LENGTH."),
            _header(
                "If-Range",
                "The ETag that the part is to be of; all of it comes where it is another file by now.",
            ),
        ]
    if route.body is not None:
        operation["requestBody"] = {
            "required": not route.body_optional,
            "content": {"application/json": {"schema": _schema(route.body)}},
        }
        operation["x-body-limit"] = route.body_limit
    return operation


def _header(name: str, description: str) -> dict[str, Any]:
    schema = {"type": "string", "maxLength": 255}
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}


def _description(route: Route) -> str:
    text = (route.handler.__doc__ or "").strip()
    if route.job_token:
        return f"{text}\n\n{RELATIONS[route.relation]} Also the job's own token."
    return f"{text}\n\n{RELATIONS[route.relation]}"


def _answers(route: Route) -> dict[str, Any]:
    shared = {code: {"$ref": f"#/components/responses/{code}"} for code in ("403", *_FAULTS)}
    if route.relation is not Relation.PUBLIC:
        shared["401"] = {"$ref": "#/components/responses/401"}
    if route.socket:
        ok = {"101": {"description": "Messages, each one object as below.", "content": _content(route)}}
    else:
        ok = {str(route.status): {"description": route.summary, "content": _content(route)}}
        if route.partial:
            ok["206"] = {"description": "The part that Range asked for.", "content": _content(route)}
    return {**ok, **dict(sorted(shared.items()))}


def _content(route: Route) -> dict[str, Any]:
    if route.reply is dict:
        return {"application/json": {"schema": {"type": "object"}}}
    return {route.media: {"schema": _schema(route.reply)}}


def _schema(kind: Any) -> dict[str, Any]:
    schemas, _ = msgspec.json.schema_components([kind], ref_template=_REF, schema_hook=schema_of)
    return schemas[0]


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, **MEANT.get(name, {})}
        for name in route.params
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    _, components = msgspec.json.schema_components([route.query], ref_template=_REF)
    properties = components[route.query.__name__]["properties"]
    return [
        {"name": name, "in": "query", "required": False, "schema": spec} for name, spec in properties.items()
    ]


def _responses() -> dict[str, Any]:
    def answer(text: str, schema: str, headers: dict[str, Any] | None = None) -> dict[str, Any]:
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
        return {"description": text, "content": content, **({"headers": headers} if headers else {})}

    wait = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    again = {
        "Retry-After": {
            "schema": {"type": "integer"},
            "description": "Only with `WaitingForPreempted`: seconds after which there may be room for the same request.",
        }
    }
    return {
        "401": answer("The token is missing or not valid.", "Fault"),
        "403": answer("The request is refused, with its reason; nothing was changed.", "Refusal", again),
        "429": answer("Too many requests.", "Fault", wait),
        "503": answer("The fault is the server's, or passes by itself.", "Fault"),
    }


def _is_schema(kind: Any) -> bool:
    return kind is not dict and kind is not str


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(document(all_routes(), "")))
