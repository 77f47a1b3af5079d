"""Table of the dimensions: cpu, gpu and ram, which placement knows, and all that is only counted.

A dimension that is only counted is a row of `TABLE`. Its amounts are in `amounts`, by name: of `Resources` and `Quota`, in
the database and on the wire. Storage has its own field there, because the contract has it.
"""

from __future__ import annotations

from dataclasses import dataclass

MILLI = 1000


@dataclass(frozen=True, slots=True)
class Dimension:
    """Row of the table.

    `scale` is how many of its own units make one `unit`, in which people read it: 1 for whole units. `unit` follows
    the number: "1 fpga". Amounts in MiB are bytes in the metrics. Options read and show memory for a part of ram, and
    whole numbers for all other counted dimensions. With `within`, the amount of a rank is a
    part of its amount of that dimension: it may not be more, and nodes do not count it again. `least` is the smallest amount
    that a rank can ask for, in its own units. `help` and `usual` are what the option of a job says of it, and of its absence.
    """

    name: str
    scale: int
    unit: str
    within: str | None = None
    least: int = 1
    help: str = ""
    usual: str = "none"


TABLE = (
    Dimension("cpu", MILLI, "cpu", least=100),
    Dimension("gpu", MILLI, "gpu"),
    Dimension("ram", 1, "MiB ram", least=100),
    Dimension("rom", 2**30, "GiB storage"),
    Dimension(
        "shm",  # /dev/shm: its files are memory of the rank that wrote them
        1,
        "MiB shm",
        within="ram",
        help="size of /dev/shm of each rank, a part of its memory",
        usual="half of the memory",
    ),
)
BY_NAME = {row.name: row for row in TABLE}
DIMENSIONS = tuple(BY_NAME)
FLAT = ("cpu", "gpu", "ram", "rom")
"""Contract: dimensions that are fields of objects; the amounts of all others are in `amounts`."""
COUNTED = tuple(name for name in DIMENSIONS if name not in FLAT)
WITHIN = frozenset(name for name in COUNTED if BY_NAME[name].within)
"""Dimensions that are a part of another one."""
ON_NODES = tuple(name for name in DIMENSIONS if name != "rom" and name not in WITHIN)
"""Dimensions of which nodes have an amount that the ledger counts: storage does not belong to nodes."""
PLACED = ("rom", *(name for name in ON_NODES if name in COUNTED))
"""Dimensions besides cpu, ram and gpu that the core counts on nodes."""
WHOLE = tuple(name for name in DIMENSIONS if BY_NAME[name].scale != MILLI)
"""Dimensions with whole numbers on the wire; the others have thousandths."""
NAMES = ("cpu", "gpu", "gpu:KIND", *DIMENSIONS[2:])
"""Names that limits can have."""
