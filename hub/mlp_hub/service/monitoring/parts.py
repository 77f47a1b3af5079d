"""Parts of the platform whose figures are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlp_hub.executors.base import Executor
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.admission.loop import Admission
from mlp_hub.service.audit.shipping import ShippingDelay
from mlp_hub.service.health.problems import Problems
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.metrics.storing import PointStore
from mlp_hub.service.notices.service import NoticeService
from mlp_hub.service.state.board import Board
from mlp_hub.service.state.leadership import Leadership
from mlp_hub.store.database import Database


@dataclass(frozen=True, slots=True)
class MonitoredParts:
    """The parts. `leads` returns whether this platform decides, `nodes` the nodes as the scheduler sees them.

    `lag` returns the metric points' messages that a broker has and the service has not read; None without a broker.
    `shipping` returns how far each receiver of the audit log is behind, and `idle_gpus` the GPUs by node that jobs hold
    and that were not used for an hour.
    """

    db: Database
    executor: Executor
    lease: Leadership
    board: Board
    admission: Admission
    queue: WorkQueue
    points: PointStore
    notices: NoticeService
    problems: Problems
    nodes: Callable[[], Sequence[NodeInfo]]
    leads: Callable[[], bool]
    lag: Callable[[], int | None]
    shipping: Callable[[], Sequence[ShippingDelay]]
    idle_gpus: Callable[[], Mapping[str, float]]
