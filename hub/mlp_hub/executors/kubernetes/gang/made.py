"""Result of one way for a gang."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlp_hub.kubernetes.kinds import Object


@dataclass(frozen=True, slots=True)
class Described:
    """Result of one way for a gang: its object, its plan, and whether ranks need names from the hub."""

    main: Object
    plan: Mapping[str, Any]
    nameless: bool = False
