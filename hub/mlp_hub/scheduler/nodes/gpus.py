"""Which GPUs of one node a rank gets: neighbours, in aligned blocks of 2, 4 and 8, as links between GPUs are laid out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mlp_hub.domain.resources import MILLI


def pick_whole(free: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the numbers of `count` untouched GPUs; `free` has the free thousandths of each GPU of the node.

    The smallest aligned block with enough untouched GPUs is taken, of equal ones the one with fewest to spare, so
    that larger blocks stay whole. Raises ValueError when fewer than `count` are untouched.
    """
    mask = 0
    for number, part in enumerate(free):
        if part == MILLI:
            mask |= 1 << number
    return _pick(mask, len(free), count)


@lru_cache(maxsize=1 << 14)
def _pick(mask: int, size: int, count: int) -> tuple[int, ...]:
    if count == 0:
        return ()
    if mask.bit_count() < count:
        raise ValueError(f"{count} whole GPUs asked for, {mask.bit_count()} are untouched")
    width = _power(count)
    while True:
        best: tuple[tuple[int, ...], int] | None = None
        for start in range(0, size, width):
            if _count(mask, start, width) >= count:
                # what is left free in the block, then in the blocks around it: the most used neighbourhood first
                spare = []
                around = width
                while around < 2 * size:
                    spare.append(_count(mask, start - start % around, around))
                    around *= 2
                rank = (*spare, start)
                if best is None or rank < best[0]:
                    best = (rank, start)
        if best is not None:
            return tuple(sorted(_within(mask, best[1], width, count)))
        width *= 2


def _within(mask: int, start: int, width: int, count: int) -> tuple[int, ...]:
    """Take `count` of a block that has them: all from one half where that can be, else the fuller half and some."""
    if count == 0:
        return ()
    if _count(mask, start, width) == count:
        return tuple(n for n in range(start, start + width) if mask >> n & 1)
    half = width // 2
    halves = sorted((_count(mask, at, half), at) for at in (start, start + half))
    for have, at in halves:
        if have >= count:
            return _within(mask, at, half, count)
    (_, small), (most, large) = sorted(
        halves, key=lambda h: (h[0], -h[1])
    )  # of equal ones the first is filled
    return _within(mask, large, half, most) + _within(mask, small, half, count - most)


def _count(mask: int, start: int, width: int) -> int:
    return (mask >> start & (1 << width) - 1).bit_count()


def _power(count: int) -> int:
    return 1 << (count - 1).bit_length()
