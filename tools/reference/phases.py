"""Reference page of phases, from the tables of transitions; a phase is described in its class."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Any

from mlp_hub.domain.apps.app import APP_MACHINE, AppPhase
from mlp_hub.domain.jobs.job import HOLDING, JOB_MACHINE, Phase
from mlp_hub.domain.jobs.sweep import SWEEP_MACHINE, SweepPhase
from mlp_hub.domain.machine import Machine
from mlp_hub.domain.notices.alert import ALERT_MACHINE, AlertState
from mlp_hub.domain.runtime.environment import ENVIRONMENT_MACHINE, HOLDING_ENVIRONMENTS, EnvironmentPhase
from mlp_hub.domain.stored.dataset import DATASET_MACHINE, HOLDING_DATASETS, DatasetPhase
from mlp_hub.domain.stored.model import HOLDING_MODELS, MODEL_MACHINE, ModelPhase
from mlp_hub.domain.tenants.departure import DEPARTURE_MACHINE, DeparturePhase
from mlp_hub.domain.tenants.relocation import RELOCATION_MACHINE, RelocationPhase
from mlp_hub.domain.tenants.requests import ASK_MACHINE, AskPhase
from mlp_hub.domain.workload.ledger import HELD, RELEASE_MACHINE, REQUEST_MACHINE, RequestPhase
from reference.rest import markdown_table

_PHASES = """# Phases

What has a life goes from phase to phase, by one table for each kind of object. A move that is not in the table is refused
as `WrongState`. A phase that holds takes from its tenant's quota.
"""
_LIVES: tuple[tuple[str, Machine[Any], type[StrEnum], Collection[str]], ...] = (
    ("Jobs", JOB_MACHINE, Phase, HOLDING),
    ("Datasets", DATASET_MACHINE, DatasetPhase, HOLDING_DATASETS),
    ("Models", MODEL_MACHINE, ModelPhase, HOLDING_MODELS),
    ("Environments", ENVIRONMENT_MACHINE, EnvironmentPhase, HOLDING_ENVIRONMENTS),
    ("Apps", APP_MACHINE, AppPhase, ()),
    ("Relocations of tenants' files", RELOCATION_MACHINE, RelocationPhase, ()),
    ("Sweeps", SWEEP_MACHINE, SweepPhase, ()),
    ("Resource requests", REQUEST_MACHINE, RequestPhase, HELD),
    ("Releases that name an amount, not a request", RELEASE_MACHINE, RequestPhase, ()),
    ("Requests for more quota", ASK_MACHINE, AskPhase, ()),
    ("Alerts", ALERT_MACHINE, AlertState, ()),
    ("Departures of users", DEPARTURE_MACHINE, DeparturePhase, ()),
)
_MEANING = re.compile(r'^ +\w+ = "([\w-]+)"  # (.+)$', re.MULTILINE)


def phases_page() -> str:
    """Return the page of phases."""
    page = _PHASES
    for title, machine, kind, holding in _LIVES:
        meanings = dict(_MEANING.findall(inspect.getsource(kind)))
        rows = (
            (
                f"`{old}`",
                meanings[old],
                "yes" if old in holding else "",
                _listed(n for n in kind if n in following),
            )
            for old, following in machine.transitions.items()
        )
        page += f"\n## {title}\n\n" + markdown_table(("phase", "meaning", "holds", "may become"), rows)
    return page


def _listed(phases: Iterable[StrEnum]) -> str:
    return ", ".join(f"`{phase}`" for phase in phases)
