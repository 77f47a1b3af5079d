"""Which devices an attempt gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlp_hub.domain.resources import MILLI
from mlp_hub.executors.base import CannotStart
from mlp_language.message import msg


def assign(need: int, ranks: int, devices: Sequence[int], used: Mapping[int, int]) -> list[dict[int, int]]:
    """Give each rank `need` thousandths of devices: whole ones free of others, a share on the fullest that fits.

    Returns {device: thousandths} for each rank. Raises `CannotStart` when the devices do not suffice, which the
    scheduler's own account should have prevented.
    """
    room = {device: MILLI - used.get(device, 0) for device in devices}
    out: list[dict[int, int]] = []
    for _ in range(ranks):
        mine: dict[int, int] = {}
        whole, part = divmod(need, MILLI)
        free = [device for device in devices if room[device] == MILLI]
        if len(free) < whole:
            raise CannotStart(
                msg(
                    "it needs {whole} whole GPUs for each of {ranks} ranks; {left} are left free",
                    whole=whole,
                    ranks=ranks,
                    left=len(free),
                )
            )
        for device in free[:whole]:
            mine[device] = MILLI
            room[device] = 0
        if part:
            fitting = [device for device in devices if room[device] >= part]
            if not fitting:
                raise CannotStart(msg("no GPU has a share of {part} left", part=part / MILLI))
            best = min(fitting, key=lambda device: room[device])
            mine[best] = part
            room[best] -= part
        out.append(mine)
    return out
