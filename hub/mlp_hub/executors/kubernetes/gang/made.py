"""What one way makes of a gang."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlp_hub.kubernetes.kinds import Object


@dataclass(frozen=True, slots=True)
class Described:
    """What one way makes of a gang: its object, its plan, and whether ranks need names that nobody else gives them."""

    main: Object
    plan: Mapping[str, Any]
    nameless: bool = False
