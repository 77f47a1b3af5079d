"""Part of the audit log that belongs to a tenant and to the tenants below it, from when on they were below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlp_hub.store.records import ParentMove


def below_since(
    top: str, parents: Mapping[str, str | None], moves: Sequence[ParentMove]
) -> Mapping[str, int]:
    """Return the tenants that are below `top`, and `top`, each with the entry after which it was always below it.

    `parents` are those of these tenants now, `moves` all changes of parents, the newest first. 0: it was below `top` from its
    beginning on, or for longer than the log goes back. A tenant that is no longer below `top` counts as one that never was.
    """
    parents, since = dict(parents), dict.fromkeys([top, *parents], 0)
    still = set(parents)
    for move in moves:
        if not still:
            break
        if move.tenant not in parents:
            continue
        parents[move.tenant] = move.before
        if _reaches(move.tenant, top, parents):
            continue
        left, seen = {move.tenant}, {top}
        while left:
            since.update(dict.fromkeys(left & still, move.entry))
            still -= left
            seen |= left
            left = {name for name, parent in parents.items() if parent in left} - seen
    return since


def _reaches(name: str, top: str, parents: Mapping[str, str | None]) -> bool:
    """Whether the way up from a tenant leads to `top`; a circle does not."""
    seen: set[str] = set()
    above: str | None = name
    while above is not None and above != top and above not in seen:
        seen.add(above)
        above = parents.get(above)
    return above == top
