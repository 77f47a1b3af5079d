"""No handler reaches what is stored but for whom the gatekeeper admitted: each call of a service says whose objects are meant.

What a request is about is made once, by the gatekeeper: `Call.principal` (who asks, of the token alone) and `Call.params` (the
objects of the path, of which `authorize` has said that the caller may). Handlers have no way to the database, so each query
begins with a call of a service of the platform; this finds those that pass on neither of the two.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.api import resources
from mlp_hub.api.edge.call import Call
from mlp_hub.api.routes import Relation
from mlp_hub.api.table import all_routes

FOLDER = Path(resources.__file__).parent
MODULES = sorted(path for path in FOLDER.rglob("*.py") if path.name != "__init__.py")
SUBJECT = {"user", "params", "principal", "viewer", "address"}
"""Fields of a call that say whose objects are meant, or which viewer sees them."""
FOR_ALL = {Relation.PLATFORM, Relation.PUBLIC}
"""Routes that are about everybody's objects, or nobody's: of these the gatekeeper lets in platform admins alone, or says that they
hold nobody's data."""
ABOUT_NOBODY = {
    "monitoring.scrape": "metrics of the platform, without a label of a person",
    "accounting.prices": "the price list, which is the same for all",
    "executor.nodes": "which kinds of gpu the machines have",
    "problems.now": "what does not work, in words for everybody",
    "lease.is_held": "which replica decides",
    "notices.outbox.wanting": "of those who want to be told of requests the platform's admins are told, whoever asks",
}
"""Questions about the platform itself."""
DATABASE = {"identity.working": "asked by the hub alone, about who works at all"}
"""Handlers that read the database themselves."""


def functions() -> Iterator[tuple[str, ast.AsyncFunctionDef | ast.FunctionDef]]:
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef):
                yield path.stem, node


FUNCTIONS = [(f"{module}.{node.name}", node) for module, node in functions()]
HANDLERS = {
    f"{route.handler.__module__.rsplit('.', 1)[-1]}.{route.handler.__name__}": route for route in all_routes()
}


def is_subject(node: ast.AST, known: set[str]) -> bool:
    """Whether an expression says whose objects are meant: of the call, or made of that."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in known:
            return True
        if isinstance(part, ast.Attribute) and part.attr in SUBJECT and ast.unparse(part.value) == "call":
            return True
    return False


def known_in(function: ast.AsyncFunctionDef | ast.FunctionDef) -> set[str]:
    """Return the names that hold a subject: those a helper is given, and what is made of subjects."""
    arguments = [*function.args.args, *function.args.kwonlyargs]
    known = {one.arg for one in arguments if one.arg != "call"}
    known |= _of_helpers(function)
    before = -1
    while before != len(known):
        before = len(known)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if is_subject(node.value, known):
                    known |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            elif isinstance(node, ast.comprehension | ast.For | ast.AsyncFor) and is_subject(
                node.iter, known
            ):
                known |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    return known


def _of_helpers(function: ast.AsyncFunctionDef | ast.FunctionDef) -> set[str]:
    """Return names of what a helper found for the call: `account = await _account(call)`."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Await | ast.Call):
            value = node.value.value if isinstance(node.value, ast.Await) else node.value
            helper = (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Name)
                and value.func.id.startswith("_")
            )
            if helper and "call" in map(ast.unparse, value.args):  # type: ignore[union-attr]
                found |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return found


def services_of(function: ast.AsyncFunctionDef | ast.FunctionDef) -> Iterator[tuple[str, ast.Call]]:
    """Yield each call of a service of the platform: `jobs.get`, with its arguments."""
    short = {}  # local names of services: `offboarding = call.platform.offboarding`
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            text = ast.unparse(node.value)
            if text.startswith("call.platform"):
                short[node.targets[0].id] = text
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        text = ast.unparse(node.func)
        head, _, rest = text.partition(".")
        text = f"{short[head]}.{rest}" if head in short and rest else text
        if text.startswith("call.platform.") and "(" not in text:
            yield text.removeprefix("call.platform."), node


def unsaid(function: ast.AsyncFunctionDef | ast.FunctionDef) -> list[str]:
    """Return the calls of services that do not say whose objects are meant."""
    known = known_in(function)
    return [
        f"{name} in line {node.lineno}"
        for name, node in services_of(function)
        if name not in ABOUT_NOBODY
        and not any(is_subject(one, known) for one in [*node.args, *(k.value for k in node.keywords)])
    ]


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_a_handler_says_whose_objects_it_asks_for(
    name: str, function: ast.AsyncFunctionDef | ast.FunctionDef
) -> None:
    route = HANDLERS.get(name)
    if route is not None and route.relation in FOR_ALL:
        return
    assert unsaid(function) == []


def test_handlers_have_no_way_to_the_database_but_services() -> None:
    found = set()
    for name, function in FUNCTIONS:
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and node.attr in ("db", "board"):
                found.add(name)
    assert found == set(DATABASE)
    for path in MODULES:
        imported = [
            node.module or ""
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom)
        ]
        assert not [m for m in imported if m.startswith("mlp_hub.store")], path.name


def test_the_leak_finder_finds_a_leak() -> None:
    leaks = ast.parse(
        "async def leaks(call):\n"
        "    jobs, _ = await call.platform.jobs.list()\n"
        "    mine = await call.platform.jobs.list(call.user)\n"
        "    named = call.params['job']\n"
        "    return await call.platform.jobs.get(named, named)\n"
    ).body[0]
    assert isinstance(leaks, ast.AsyncFunctionDef)
    assert unsaid(leaks) == ["jobs.list in line 2"]


def test_a_call_contains_only_the_principal_admitted_by_the_gatekeeper() -> None:
    assert {"principal", "params"} <= set(inspect.signature(Call).parameters)
    assert isinstance(inspect.getattr_static(Call, "user"), property)
