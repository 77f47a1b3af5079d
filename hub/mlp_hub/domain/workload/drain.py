"""Nodes that are taken out of service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeDrain:
    """That a node takes nothing new since somebody said so; with `evict` what runs there goes elsewhere."""

    node: str
    reason: str
    actor: str
    since: float
    evict: bool = False
