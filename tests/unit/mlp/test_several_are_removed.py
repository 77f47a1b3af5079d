"""`rm` of several: one that is refused stops no other, and what stays of a model is said."""

from __future__ import annotations

from typing import Any

import pytest

from mlp.client.rest import Client
from mlp.commands import actions, apps
from mlp.commands.outcomes import Outcomes
from mlp.errors import Refused, UsageError
from mlp.grammar.parsing import parse
from mlp.grammar.verbs import COMMAND

HELD = "app line serves it"


class Hub(Client):
    """What a hub would answer, held here: `net` has three versions, of which the first is served."""

    def __init__(self) -> None:
        super().__init__("http://hub.test/services/mlp/api/v1", "token")
        self.there = {"net": [3, 2, 1], "old": [1]}

    def models(self, /, **query: Any) -> list[dict[str, Any]]:
        return [
            {"name": query["name"], "version": n, "state": "ready"} for n in self.there.get(query["name"], [])
        ]

    def remove_model(self, name: str) -> dict[str, Any]:
        plain, _, number = name.partition("@")
        if not self.there.get(plain):
            raise Refused("NotFound", f"model {name} does not exist")
        version = int(number or self.there[plain][0])
        if (plain, version) == ("net", 1):
            raise Refused("WrongState", HELD)
        self.there[plain].remove(version)
        return {"name": plain, "version": version, "state": "deleting"}

    def remove_app(self, name: str) -> dict[str, Any]:
        if name == "none":
            raise Refused("NotFound", "app none does not exist")
        return {"name": name}


def ran(line: str, hub: Hub | None = None) -> Any:
    call = parse(line.split(), COMMAND)
    return actions.SIMPLE[call.verb.name](hub or Hub(), call)


def test_of_a_models_name_the_latest_goes_and_what_stays_is_said() -> None:
    found = ran("models rm net")
    assert str(found).splitlines() == [
        "net@3 is being deleted",
        "2 versions of net stay: net@2 and net@1. To delete all: mlp models rm net --all",
    ]
    assert str(ran("models rm old")) == "old@1 is being deleted"
    assert str(ran("models rm net@2")) == "net@2 is being deleted"


def test_all_versions_go_but_those_that_are_refused() -> None:
    hub = Hub()
    found = ran("models rm net --all", hub)
    assert isinstance(found, Outcomes)
    assert hub.there["net"] == [1]
    assert str(found).splitlines() == [
        "net@3 is being deleted",
        "net@2 is being deleted",
        f"net@1: {HELD}",
    ]
    assert [error.reason for error in found.failed if isinstance(error, Refused)] == ["WrongState"]
    with pytest.raises(Refused, match="model nothing does not exist"):
        ran("models rm nothing --all")


def test_one_that_is_refused_stops_no_other() -> None:
    hub = Hub()
    found = ran("models rm nothing old", hub)
    assert hub.there["old"] == []
    assert str(found).splitlines() == ["nothing: model nothing does not exist", "old@1 is being deleted"]
    assert len(found.failed) == 1
    assert found.data[0] == {"name": "nothing", "error": "NotFound", "msg": "model nothing does not exist"}
    apps_gone = ran("apps rm none line")
    assert str(apps_gone).splitlines() == ["none: app none does not exist", "line is being deleted"]
    assert apps_gone.failed


def test_one_alone_is_refused_as_ever() -> None:
    with pytest.raises(Refused, match="app none does not exist"):
        apps.act(Hub(), ["rm", "none"], {})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("models register net", "the SOURCE of net is missing. Usage: mlp models register net jobs/JOB/ckpt"),
        ("models rm net@1 --all", "--all needs names without a version; net@1 is one version"),
        ("models show net --all", "models show net --all is not understood"),
        ("apps keys line create", "which key? .* Usage: mlp apps keys line create KEY"),
        ("apps keys line revoke", "which key? .* Usage: mlp apps keys line revoke KEY"),
    ],
)
def test_a_missing_name_is_reported(line: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        ran(line)
