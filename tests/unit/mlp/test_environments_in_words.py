"""`mlp env`: how a line is read, what is sent, and what is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from mlp.client.rest import Client
from mlp.commands import environments
from mlp.commands.actions import env
from mlp.errors import UsageError
from mlp.grammar.parsing import parse
from mlp.grammar.verbs import COMMAND

Json = dict[str, Any]
READY: Json = {
    "name": "tools", "state": "ready", "packages": {"iniconfig": "2.3.1"}, "size": 2048, "user": "ann",
    "created_at": "2026-11-24T10:00:00Z", "shared_with": ["same"], "jobs": ["digits"], "message": "",
}  # fmt: skip

OF_IMAGE: Json = {
    **READY, "image": "registry.example.org/ml/train:1", "packages": {}, "size": 0, "shared_with": [], "lock": "",
}  # fmt: skip


class Stand:
    """A client that takes note."""

    def __init__(self, *tenants: str) -> None:
        self.tenants, self.asked = tenants, cast("list[Any]", [])

    def quota(self) -> list[Json]:
        return [{"tenant": {"name": name}} for name in self.tenants]

    def __getattr__(self, name: str) -> Any:
        def asked(*given: str, **named: str) -> Any:
            self.asked.append((name, *given, *named.items()))
            if "image" in named:
                return {**OF_IMAGE, "name": given[1]}
            return [READY] if name == "environments" else {"environment": READY, "log": "", **READY}

        return asked


def said(stand: Stand, *words: str) -> str:
    return str(env(cast(Client, stand), parse(["env", *words], COMMAND)))


@pytest.mark.parametrize(
    "words",
    [
        ["create", "tools"],
        ["create", "-f", "x"],
        ["create", "a", "b", "-f", "x"],
        ["show"],
        ["show", "a", "b"],
        ["delete"],
        ["list", "a"],
        ["list", "-f", "x"],
        ["list", "--image", "python"],
        ["create", "a", "-f", "x", "--image", "python"],
        ["make", "a"],
    ],
)
def test_a_line_that_is_none_is_refused_with_the_right_one(words: list[str]) -> None:
    with pytest.raises(UsageError, match=r"create NAME -f requirements.txt"):
        parse(["env", *words], COMMAND)


def test_of_one_team_nobody_has_to_say_which(tmp_path: Path) -> None:
    stand = Stand("red")
    file = tmp_path / "requirements.txt"
    file.write_text("iniconfig\n")
    assert "tools is being made. See: mlp env show tools" in said(stand, "create", "tools", "-f", str(file))
    assert "tools  ready" in said(stand)
    shown = said(stand, "show", "tools")
    for part in ("iniconfig==2.3.1", "The same files as: same", "Used by: digits", "--env-name tools"):
        assert part in shown
    assert said(stand, "delete", "a", "b").splitlines() == ["a is being deleted", "b is being deleted"]
    assert stand.asked == [
        ("create_environment", "red", "tools", "iniconfig\n"),
        ("environments", "red"),
        ("environment", "red", "tools"),
        ("delete_environment", "red", "a"),
        ("delete_environment", "red", "b"),
    ]


def test_one_of_an_image_is_there_at_once_and_its_image_is_shown() -> None:
    stand = Stand("red")
    told = said(stand, "create", "vision", "--image", "registry.example.org/ml/train:1")
    assert told == "vision is made. Use it: mlp submit train.py --env-name vision"
    assert stand.asked == [
        ("create_environment", "red", "vision", ("image", "registry.example.org/ml/train:1"))
    ]
    listed = str(environments.table([OF_IMAGE], "red"))
    assert "registry.example.org/ml/train:1" in listed
    assert "image" in listed.splitlines()[0]
    shown = str(environments.shown({"environment": OF_IMAGE, "log": ""})).splitlines()
    assert shown[2:] == [
        "Image: registry.example.org/ml/train:1",
        "Use it: mlp submit train.py --env-name tools",
        "Used by: digits",
    ]
    with pytest.raises(UsageError, match="at most 500 characters"):
        said(stand, "create", "vision", "--image", "a" * 501)


def test_of_several_teams_one_has_to_be_said() -> None:
    stand = Stand("red", "blue")
    with pytest.raises(UsageError, match="Add --tenant and one of: red, blue"):
        said(stand, "list")
    said(stand, "list", "--tenant", "blue")
    assert stand.asked == [("environments", "blue")]


def test_a_file_that_is_none_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    (tmp_path / "huge").write_text("a" * (environments.MOST_BYTES + 1))
    (tmp_path / "bytes").write_bytes(b"caf\xe9")
    (tmp_path / "wide").write_bytes(b"\xff\xfe\0")
    for name, why in (
        ("none", "^file .*/none does not exist$"),
        ("huge", "not a list of packages"),
        ("bytes", "not text in UTF-8"),
        ("wide", "not text in UTF-8"),
    ):
        with pytest.raises(UsageError, match=why):
            environments.requirements_in(tmp_path / name)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_file_that_windows_wrote_is_read(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "requirements.txt"
    file.write_bytes("pandas  # für alle\r\n".encode(encoding))
    assert environments.requirements_in(file) == "pandas  # für alle\r\n"


def test_one_that_could_not_be_made_says_why() -> None:
    failed = {
        **READY,
        "state": "error",
        "message": "No solution found\n  cause",
        "packages": {},
        "shared_with": [],
    }
    assert "error: No solution found" in str(environments.shown({"environment": failed, "log": ""}))
    assert "cause" not in str(environments.table([failed], "red"))
