"""Grant of a server's start; all that passes from the quota to the spawner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grant:
    """Room in a tenant's quota and its terms: `cpu` in cores, `ram` in MiB, `network` none or outbound.

    `gpu` are whole devices of `gpu_kind`, of any kind if that is empty. `number` distinguishes users
    where each needs a separate uid. `environment` is the chosen one of the tenant, empty for the
    platform's: its `image`, or its `kernel` for new notebooks. `without_settings`: the user's Jupyter
    settings are left out.
    """

    tenant: str = ""
    cpu: float = 0.0
    ram: int = 0
    number: int = 0
    network: str = "none"
    gpu: int = 0
    gpu_kind: str = ""
    environment: str = ""
    image: str = ""
    kernel: str = ""
    without_settings: bool = False
