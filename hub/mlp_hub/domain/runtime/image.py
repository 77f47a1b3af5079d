"""Names of containers' images: which text is one, what tells one apart from all others, and whether it lies below another name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import msg

_NAME = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"((?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?{_NAME}(?:/{_NAME})*)(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@sha256:([0-9a-f]{{64}}))?"
)
"""Given: how a container's image is named; with another name a pod would be refused, or wait for ever."""
ANY = "*"
"""Contract: value that allows all images."""


def check_image(image: str) -> None:
    """Raise `Refused` for a text that is not the name of an image."""
    if not _IMAGE.fullmatch(image):
        raise Refused(
            Reason.INVALID,
            msg(
                "image {image} is not the name of an image; write HOST/NAME:TAG or HOST/NAME@sha256:DIGEST, with the name in small letters",
                image=repr(image[:60]),
            ),
        )


def digest_in(image: str) -> str:
    """Return the SHA-256 that an image is named with; empty where its name may mean another one tomorrow."""
    found = _IMAGE.fullmatch(image)
    return (found[2] or "") if found else ""


def is_below(image: str, allowed: Iterable[str]) -> bool:
    """Tell whether an image is one of those that are allowed, or lies below one, by whole parts of its name.

    What is allowed is read as nodes read it: `python` is one image of Docker Hub's own, and `python/x` is somebody's who has that name there.
    """
    found = _IMAGE.fullmatch(image)
    return found is not None and any(
        each == ANY
        or each in (image, found[1])
        or (_may_hold(each) and found[1].startswith(each.rstrip("/") + "/"))
        for each in allowed
        if each
    )


def _may_hold(name: str) -> bool:
    """Return whether images can be below a name.

    The name has several parts, is a host, or ends in a `/`, which shows that it is not an image.
    """
    first, slash, _ = name.partition("/")
    host, _, port = first.partition(":")
    return bool(slash) or ((not port or port.isdecimal()) and ("." in host or host == "localhost"))
