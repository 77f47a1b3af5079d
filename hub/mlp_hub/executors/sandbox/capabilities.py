"""Find out by trying what kind of sandbox this machine allows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Missing:
    """Something this machine does not give: what it is, what that means here, and what to do about it."""

    what: str
    effect: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What is in force here.

    `mode`: `root-userns` (an own host user per person and a user namespace), `root` (an own host user, no user
    namespace), `userns` (the hub's user, namespaces are the wall), `open` (no wall at all; only when that was
    allowed explicitly) or `None` (no sandbox can be made). `cgroup`: `v2`, `v1` or `none`; `controllers` are
    the usable ones. `proc`: `own`, or `host` where a private /proc cannot be mounted.
    """

    mode: str | None
    bwrap: str | None = None
    bwrap_version: str | None = None
    proc: str = "own"
    disable_userns: bool = False
    cgroup: str = "none"
    controllers: tuple[str, ...] = ()
    slirp: str | None = None
    outbound: bool = False
    missing: tuple[Missing, ...] = ()


def capabilities() -> Capabilities:
    """Probe once per process and return what was found; the first call takes some 50 ms."""
    raise NotImplementedError
