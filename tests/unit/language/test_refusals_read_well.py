"""Refusals as people read them, one golden file a language: `pytest --golden` writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_api.jobs.runtimes import RuntimeRole, RuntimeUpdate
from mlp_api.types import TenantCreate
from mlp_hub.api.auth.authentication import TooMany, Unauthorized
from mlp_hub.api.edge import answers, decode
from mlp_hub.domain.errors import MessageError, Unavailable, not_found
from mlp_hub.domain.jobs.job import JOB_MACHINE, Phase
from mlp_hub.domain.quantities import quantities, quantity
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant import no_such_tenant
from mlp_hub.service.support.units import finite_thousandths
from mlp_hub.service.tenants.runtime_rules import runtime_from
from mlp_language.catalogue import LANGUAGES
from mlp_language.message import JobRef, Moment, Span, TenantRef, msg, msgs
from mlp_language.render import Reader

GOLDEN = Path(__file__).parent / "golden"
BERLIN = ZoneInfo("Europe/Berlin")
ROOM = Resources(cpu=2500, ram=2048)


def _raised(work: Callable[[], object]) -> BaseException:
    try:
        work()
    except (MessageError, Unauthorized, TooMany) as error:
        return error
    raise AssertionError("nothing was refused")


def _body(raw: bytes, kind: type[msgspec.Struct]) -> Callable[[], object]:
    return lambda: decode.body(raw, kind)


def _runtime(**fields: Any) -> Callable[[], object]:
    return lambda: runtime_from("red", "mine", RuntimeUpdate(title="Mine", **fields))


ERRORS: dict[str, BaseException] = {
    "no token": Unauthorized(),
    "too often": TooMany(7),
    "away": Unavailable(msg("the hub does not answer; jobs continue, try again in a few seconds")),
    "fault": RuntimeError("secret"),
    "no job": not_found("job", "lr-0.001@4"),
    "no tenant": no_such_tenant("blue"),
    "default": no_such_tenant("default"),
    "move": _raised(
        lambda: JOB_MACHINE.check(Phase.FINISHED, Phase.RUNNING, ("queued", "running"), name="digits")
    ),
    "empty": _raised(_body(b"", JobCreate)),
    "no json": _raised(_body(b"{", JobCreate)),
    "unknown field": _raised(_body(b'{"name": "a", "spam": 1}', TenantCreate)),
    "missing": _raised(_body(b"{}", TenantCreate)),
    "wrong kind": _raised(_body(b'{"name": "red", "cpu": "two"}', TenantCreate)),
    "bound": _raised(_body(b'{"name": "red", "weight": -1}', TenantCreate)),
    "name": _raised(_body(b'{"name": "Red!"}', TenantCreate)),
    "choice": _raised(_body(b'{"name": "red", "network": "all"}', TenantCreate)),
    "query": _raised(lambda: decode.query("limit=1&limit=2", TenantCreate)),
    "least": _raised(lambda: finite_thousandths("cpu", 0.0001)),
    "no runtime": not_found("runtime", "mine"),
    "place": _raised(_runtime(program=["{prog}"])),
    "brace": _raised(_runtime(program=["{program}", "{0}"])),
    "place of a role": _raised(_runtime(program=["{program}", "{rank.worker}"])),
    "roles": _raised(_runtime(roles=[RuntimeRole(name="worker", count=2)])),
    "program of a role": _raised(_runtime(roles=[RuntimeRole(name="worker", program=["a\nb"])])),
}
MESSAGES = {
    "amounts": msg("no node can hold {need}, which can never start: {biggest}. Ask for less", need=quantities(ROOM),
        biggest=(msg("{node} has {amount}", node="n1", amount=quantity("gpu:a100", 1000)),)),
    "several": msgs("1 active job", "{n} active jobs", n=3),
    "one": msgs("1 active job", "{n} active jobs", n=1),
    "list": msg("{one} or {other}", one=("a", "b", "c"), other=Span(5400)),
    "moment": msg("{where}: {what}", where="red", what=Moment(1.9e9 + 60, 1.9e9)),
    "hidden": msg("{what} (so far: {history})", what=JobRef("", None, None, "red"), history=TenantRef(None)),
}  # fmt: skip


def _text(reader: Reader) -> str:
    lines = [f"{name}: {answers.of_error(error, 'test', reader)[1]['msg']}" for name, error in ERRORS.items()]
    lines += [f"{name}: {answers.render(message, reader)}" for name, message in MESSAGES.items()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_refusal_reads_as_it_did(language: str, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"refusals.{language}.txt", _text(Reader(language, BERLIN)))
