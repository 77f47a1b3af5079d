"""Caps: how much one member of a tenant may hold there at once, with all jobs and notebook servers together."""

from __future__ import annotations

from dataclasses import dataclass

EVERYBODY = ""
"""User of the cap that holds for each member without an individual cap."""


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that one member may hold: thousandths of cores and of devices, and jobs that run, of which a notebook server is none.

    None: as much as the tenant may.
    """

    cpu: int | None = None
    gpu: int | None = None
    jobs: int | None = None

    @property
    def limits(self) -> dict[str, int]:
        """Limits by name."""
        found = {"cpu": self.cpu, "gpu": self.gpu, "jobs": self.jobs}
        return {name: most for name, most in found.items() if most is not None}


@dataclass(frozen=True, slots=True)
class CapOfMember:
    """The cap of one member of a tenant, or of `EVERYBODY`."""

    tenant: str
    user: str
    cap: Cap
