"""What the start of a server was given; all that passes from the quota to what starts servers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grant:
    """Room in a tenant's quota and what goes with it: `cpu` in cores, `ram` in MiB, `network` none or outbound.

    `gpu` are whole devices of `gpu_kind`, of any where that is empty. `number` tells users apart where each needs a uid of its own.
    `environment` is the tenant's that was chosen, empty where it is the platform's: its `image`, or its `kernel` for new notebooks.
    `without_settings`: what its user has set for Jupyter is left out.
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
