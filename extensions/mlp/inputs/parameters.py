"""Inside a job: the parameters that it was submitted with, or that a sweep chose for it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from mlp.language import say

PARAMS = "MLP_PARAMS"
Param = bool | int | float | str


class Params(dict[str, Param]):
    """Parameters by name, as `params["lr"]` or `params.lr`; empty where nothing was submitted, as in a notebook."""

    __slots__ = ()

    @classmethod
    def of(cls, env: Mapping[str, str]) -> Params:
        """Return those of a process with these variables."""
        try:
            found = json.loads(env.get(PARAMS) or "{}")
        except ValueError:
            found = {}
        return cls(found if isinstance(found, dict) else {})

    def __missing__(self, name: str) -> Param:
        raise KeyError(_lacks(name))

    def __getattr__(self, name: str) -> Param:
        if name in self:
            return self[name]
        # whoever looks for a protocol's method must not be told of parameters
        raise AttributeError(_lacks(name))


def _lacks(name: str) -> str:
    return say(
        "parameter {name} is not given: submit with --param {name}=VALUE, or take a default with mlp.params.get({quoted}, VALUE)",
        name=name,
        quoted=repr(name),
    )


params = Params.of(os.environ)
