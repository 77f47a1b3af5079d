"""`models register` answers once the files are copied, since what comes next needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mlp.client.rest import Client
from mlp.commands import actions, models
from mlp.errors import MLPError
from mlp.grammar.parsing import parse
from mlp.grammar.verbs import COMMAND


class CopyingHub(Client):
    """Answers the next of its states at each look; the clock moves only by waiting."""

    def __init__(self, *states: tuple[str, str]) -> None:
        self.now, self.states = 0.0, list(states)
        super().__init__(
            "http://hub.test/services/mlp/api/v1", "token", sleep=self._pass, clock=lambda: self.now
        )

    def _pass(self, seconds: float) -> None:
        self.now += seconds

    def _next(self) -> dict[str, Any]:
        state, message = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return {"name": "net", "version": 2, "size": 3 << 20, "state": state, "message": message}

    def register(self, name: str, src: str, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._next()

    def model(self, name: str) -> dict[str, Any]:
        assert name == "net@2", "the version that was made, not the latest"
        return self._next()


def ran(hub: CopyingHub, words: Sequence[str] = ("models", "register", "net", "jobs/digits/net")) -> str:
    call = parse(list(words), COMMAND)
    return str(actions.SIMPLE[call.verb.name](hub, call))


def test_it_waits_for_the_copy() -> None:
    hub = CopyingHub(("creating", ""), ("creating", ""), ("ready", ""))
    assert ran(hub).startswith("net@2 is ready")
    assert hub.now == pytest.approx(2 * models.COPY_LOOK_S)


def test_a_long_copy_continues_in_the_background() -> None:
    hub = CopyingHub(("creating", ""))
    assert ran(hub).startswith("net@2 is being copied")
    assert models.COPY_S <= hub.now < models.COPY_S + 1


def test_a_copy_that_fails_is_an_error_with_its_reason() -> None:
    with pytest.raises(MLPError, match="net@2 is not registered: the storage of red is full"):
        ran(CopyingHub(("creating", ""), ("error", "the storage of red is full")))
