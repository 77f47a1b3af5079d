"""Kinds of programs that metric points of jobs are handed on to: the one table of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TargetKind:
    """Properties of a kind of target.

    `title` is its name in sentences, `address` the setting with its address, `sends` the module with `prepare` and `send`, and
    `extra` the extra of the package that it needs. A request has `jobs` jobs at most, and about `values` values. `abreast` requests
    are sent at a time. `ends`: the end of a job is sent too. `compression` is the setting with how requests are packed, if any.
    """

    name: str
    title: str
    address: str
    sends: str
    extra: str
    jobs: int
    values: int
    abreast: int
    ends: bool
    compression: str = ""

    @property
    def secrets(self) -> str:
        """Setting with the file of its secrets."""
        return f"metrics_{self.name}_secrets"

    @property
    def authorities(self) -> str:
        """Setting with the certificates that sign the target's."""
        return f"metrics_{self.name}_ca"

    @property
    def tenants(self) -> str:
        """Setting with the tenants whose jobs' points it gets."""
        return f"metrics_{self.name}_tenants"


_OTLP = TargetKind(
    "otlp",
    "OTLP",
    address="metrics_otlp_endpoint",
    sends="mlp_hub.outbound.otlp_points",
    extra="otlp",
    jobs=50,
    values=5000,
    abreast=1,
    ends=False,
    compression="metrics_otlp_compression",
)
_MLFLOW = TargetKind(
    "mlflow",
    "MLflow",
    address="metrics_mlflow_url",
    sends="mlp_hub.outbound.mlflow_points",
    extra="",
    jobs=1,
    values=1000,
    abreast=4,
    ends=True,
)
KINDS: Mapping[str, TargetKind] = {kind.name: kind for kind in (_OTLP, _MLFLOW)}
"""All kinds of targets, by the names of `ExportPolicy`."""
