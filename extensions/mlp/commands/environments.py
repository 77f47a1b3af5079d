"""Environments of packages in words: which team's are meant, what is sent, and what is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlp.client.rest import Client
from mlp.errors import UsageError
from mlp.language import say, says
from mlp.rendering import words
from mlp.rendering.format import clock_time, file_size
from mlp.rendering.tables import Sentences, Table

Json = dict[str, Any]
MOST_BYTES = 65_536
"""Most bytes of requirements that the service accepts."""


def tenant_of(client: Client) -> str:
    """Return the team of a user of one; raises `UsageError` where there are several."""
    names = [str(each["tenant"]["name"]) for each in client.quota()]
    if len(names) == 1:
        return names[0]
    raise UsageError(say("which team's? Add --tenant and one of: {names}", names=", ".join(names)))


def requirements_in(path: Path) -> str:
    """Read a file of requirements; raises `UsageError` where it is none."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(say("file {path} does not exist", path=str(path))) from None
    except OSError as error:
        raise UsageError(say("{path} cannot be read: {why}", path=str(path), why=str(error))) from None
    if len(data) > MOST_BYTES:
        raise UsageError(
            say(
                "{path} has more than {most} bytes, so it is not a list of packages",
                path=str(path),
                most=f"{MOST_BYTES:,}",
            )
        )
    try:  # `pip freeze > requirements.txt` in PowerShell writes UTF-16, editors of Windows a mark before UTF-8
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(say("{path} is not text in UTF-8; save it as UTF-8", path=str(path))) from None


def state(found: Mapping[str, Any]) -> str:
    """Return the state of an environment, and the reason of an error, in words."""
    said: dict[str, Callable[[], str]] = {
        "creating": lambda: say("being made"),
        "ready": lambda: say("ready"),
        "error": lambda: say("error: {why}", why=str(found.get("message") or "")),
        "deleting": lambda: say("being deleted"),
    }
    word = str(found.get("state") or "")
    return said[word]() if word in said else word


def table(found: Sequence[Json], tenant: str) -> Table:
    """List a team's environments."""
    rows = [
        [
            str(each.get("name", "")),
            state(each).partition("\n")[0],
            str(each.get("image") or len(each.get("packages") or {})),
            "-" if each.get("image") else file_size(each.get("size")),
            str(each.get("user", "")),
            clock_time(each.get("created_at")),
        ]
        for each in found
    ]
    packages = say("image") if any(each.get("image") for each in found) else say("packages")
    columns = (say("name"), say("state"), packages, say("size"), say("made by"), say("made"))
    command = words.command("env create NAME -f requirements.txt")
    empty = say("Team {tenant} has no environments. Make one: {command}", tenant=tenant, command=command)
    return Table(columns, rows, list(found), empty=empty)


def created(made: Json) -> Sentences:
    """Write that an environment was taken in."""
    name = str(made.get("name"))
    if made.get("image"):
        command = words.command(f"submit train.py --env-name {name}")
        return Sentences([say("{name} is made. Use it: {command}", name=name, command=command)], made)
    line = say("{name} is being made. See: {command}", name=name, command=words.command(f"env show {name}"))
    return Sentences([line], made)


def _made(about: Mapping[str, Any]) -> str:
    user, time = str(about.get("user")), clock_time(about.get("created_at"))
    if about.get("image"):
        return say("By {user}, {time}", user=user, time=time)
    return say("By {user}, {time}, {size}", user=user, time=time, size=file_size(about.get("size")))


def shown(found: Json) -> Sentences:
    """Write what an environment has, or how far it is."""
    about = found.get("environment") or {}
    name, packages = str(about.get("name")), about.get("packages") or {}
    lines = [
        say("{what}: {why}", what=name, why=state(about)),
        _made(about),
    ]
    use = words.command(f"submit train.py --env-name {name}")
    if about.get("image"):
        lines += [say("Image: {image}", image=about["image"]), say("Use it: {command}", command=use)]
    if about.get("shared_with"):
        lines.append(say("The same files as: {names}", names=", ".join(about["shared_with"])))
    if users := [*(about.get("jobs") or ()), *(about.get("servers") or ())]:
        lines.append(say("Used by: {names}", names=", ".join(users)))
    if packages:
        lines.append(says("1 package:", "{n} packages:", len(packages)))
        lines += [f"  {package}=={version}" for package, version in packages.items()]
        if about.get("state") == "ready":
            lines.append(say("Use it: {command}", command=use))
    if about.get("state") == "creating" and found.get("log"):
        lines += ["", str(found["log"])]
    return Sentences(lines, found)
