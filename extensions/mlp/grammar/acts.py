"""Acts of verbs, such as `models register`: whether one has the options that are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlp.errors import UsageError
from mlp.grammar import notice_options
from mlp.grammar.alert_options import right_alerts_call
from mlp.grammar.app_options import right_call as right_app_call
from mlp.grammar.sweep_options import right_call as right_sweep_call
from mlp.grammar.team_options import right_call as right_team_call
from mlp.language import say
from mlp.rendering.words import command


def _model_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the act of `models` has the options that are given."""
    act = names[0] if names else "ls"
    for option, acts in (("any_files", {"register"}), ("tenant", {"ls", "register"}), ("all", {"rm"})):
        if option in given and act not in acts:
            return False
    if act == "register" and len(names) == 2:
        raise UsageError(
            say(
                "the SOURCE of {name} is missing. Usage: {line}",
                name=names[1],
                line=command(f"models register {names[1]} jobs/JOB/ckpt"),
            )
        )
    if given.get("all") and any("@" in one for one in names[1:]):
        raise UsageError(
            say(
                "--all needs names without a version; {name} is one version",
                name=next(one for one in names[1:] if "@" in one),
            )
        )
    return True


def _data_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the act of `data` has the options that are given."""
    act = names[0] if names else "ls"
    if "tenant" in given and act not in {"push", "add"}:
        return False
    return act == "add" or not {"endpoint", "region", "secret", "mode"} & set(given)


def _env_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the act of `env` has the options that are given."""
    return len({"file", "image"} & set(given)) == (names[:1] == ["create"])


def _token_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the words after `token` are one of its acts, with options that it has."""
    act = names[0] if names else "list"
    of_program = "service" in given
    if (of_program or act == "rotate") and "tenant" not in given:
        raise UsageError(say("which team's program is it? Add --tenant NAME"))
    if "tenant" in given and act in {"create", "revoke"} and not of_program:
        return False  # a person's tokens are of no tenant
    return not of_program or (act in {"create", "revoke"} and len(names) == 1)


RIGHT: dict[str, Callable[[Sequence[str], Mapping[str, Any]], bool]] = {
    "model": _model_call,
    "data": _data_call,
    "env": _env_call,
    "secret": lambda _names, _given: True,
    "token": _token_call,
    "sweeps": right_sweep_call,
    "app": right_app_call,
    "team": right_team_call,
    "notify": notice_options.right_notify_call,
    "announce": notice_options.right_announce_call,
    "alerts": right_alerts_call,
}
"""Of verbs with acts: whether the act has the options that are given."""


WITHOUT_WORDS = {
    ("app", "deploy"): {"command", "name"},
    ("token", "create"): {"service"},
    ("token", "revoke"): {"service"},
}
"""Options that take the place of an act's words."""
