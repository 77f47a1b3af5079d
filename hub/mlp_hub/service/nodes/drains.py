"""Nodes that an administrator takes out of service: they take nothing new, and can be emptied.

Only the wish is stored. After any crash, `start` and each sweep look at the work that still runs
there. A job is asked to end as one that gives way, so that it can save a checkpoint. It then waits
in the queue again. The hub ends a notebook server.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace

from mlp_api.platform import nodes as api
from mlp_hub.background import BackgroundTasks
from mlp_hub.domain.errors import MLPError, Reason, Refused, not_found
from mlp_hub.domain.jobs.job import HOLDING, Job, Phase, Target
from mlp_hub.domain.tenants.account_names import THE_HUB
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.drain import NodeDrain
from mlp_hub.domain.workload.ledger import ResourceRequest
from mlp_hub.domain.workload.workload import SERVER
from mlp_hub.executors.base import Executor
from mlp_hub.executors.nodes import Condition, ConditionKind, NodeInfo
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.state.moves import Step
from mlp_hub.service.support.units import when
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

log = logging.getLogger(__name__)
AGAIN_S = 600.0
"""Tuning: seconds until a server that the hub ended is ended again: its place in the ledger may stay for a while."""
_STOPS = frozenset({Target.RUN, Target.RESIZE})
End = Callable[[str, str], Awaitable[None]]


class Drains:
    """Drained nodes, in memory as stored; `changed` is called when a node takes new work again, or stops to.

    `settled` is awaited after a node was shut: after that, all decisions in progress know of it.
    `end_server` asks the hub to end a notebook server; it is set once the hub can be asked.
    """

    def __init__(
        self,
        board: Board,
        executor: Executor,
        clock: Callable[[], float],
        *,
        changed: Callable[[], None],
        settled: Callable[[], Awaitable[object]],
    ) -> None:
        self._board = board
        self._executor = executor
        self._clock = clock
        self._changed = changed
        self._settled = settled
        self._drains: dict[str, NodeDrain] = {}
        self._seen: tuple[Sequence[NodeInfo], Sequence[NodeInfo]] | None = None
        self._ended: dict[tuple[str, float], float] = {}  # servers that the hub was asked to end: when
        self._evicting = BackgroundTasks()
        self.end_server: End | None = None

    # --- what others look at

    def nodes(self) -> Sequence[NodeInfo]:
        """List the executor's nodes, those that are drained with that as a condition; the same object while nothing changes."""
        found = self._executor.nodes()
        if not self._drains:
            return found
        if self._seen is None or self._seen[0] is not found:
            self._seen = (found, tuple(self._as_drained(node) for node in found))
        return self._seen[1]

    def _as_drained(self, node: NodeInfo) -> NodeInfo:
        drain = self._drains.get(node.name)
        if drain is None:
            return node
        return replace(node, conditions=(*node.conditions, Condition(ConditionKind.DRAINED, drain.reason)))

    # --- the life of the service

    async def start(self) -> None:
        """Read the stored drains, and move the work that still runs there."""
        self._put(await self._board.db.read(lambda tx: tx.drains.all()))
        self._board.on_change(self._job_changed)
        await self._evict_jobs()

    async def stop(self) -> None:
        """Look no more."""
        await self._evicting.stop()

    async def review_drains(self) -> None:
        """Look again at work on nodes that must become empty."""
        await self._evict_jobs()
        await self._end_servers()

    # --- what administrators do

    async def preview(self, node: str) -> api.NodeDrainPreview:
        """Say what runs on a node, which a drain would stop where that is wanted, and how it is drained now. Raises `NotFound`."""
        others = [n for n in self.nodes() if n.name != node]
        if node not in self._drains and len(others) == len(self.nodes()):
            raise not_found("node", node)
        now = self._clock()
        servers = await self._board.db.read(lambda tx: _servers_on(tx, {node}, now))
        jobs = sorted(self._jobs_on({node}), key=lambda j: (j.spec.tenant, j.spec.user, j.spec.name, j.run))
        return api.NodeDrainPreview(
            node=node,
            drain=to_wire(self._drains.get(node)),
            others=sum(n.schedulable for n in others),
            stops=[*(_job_to(job, node) for job in jobs), *(_server_to(row) for row in servers)],
        )

    async def drain(self, node: str, asked: api.NodeDrainSet, actor: str) -> api.NodeDrainPreview:
        """Take a node out of service, or set a new reason and mode.

        Raises `NotFound`, `WrongState` if a cluster does that itself.
        """
        if not any(n.name == node for n in self.nodes()):
            raise not_found("node", node)
        if not self._executor.drains:
            raise Refused(
                Reason.WRONG_STATE,
                msg(
                    "nodes of a cluster are drained with kubectl drain {node}; the hub respects that",
                    node=node,
                ),
            )
        before = self._drains.get(node)
        since = self._clock() if before is None else before.since
        drain = NodeDrain(node, asked.reason, actor, since, asked.evict)

        def work(tx: Tx) -> None:
            tx.drains.put(drain)
            detail = {"reason": drain.reason, "evict": drain.evict}
            tx.audit.add(self._clock(), actor, "node.drain", node, detail=detail)

        await self._board.db.write(work)
        self._put([*(d for d in self._drains.values() if d.node != node), drain])
        self._changed()
        await self._settled()  # what was decided before knew the node as open, and may just be starting there
        await self._evict_jobs()
        await self._end_servers()
        return await self.preview(node)

    async def give_back(self, node: str, actor: str) -> api.NodeDrainPreview:
        """Put a node into service again; one that is, is left alone. Raises `NotFound`."""
        await self.preview(node)

        def work(tx: Tx) -> None:
            if tx.drains.remove(node):
                tx.audit.add(self._clock(), actor, "node.return", node, detail={})

        await self._board.db.write(work)
        self._put([d for d in self._drains.values() if d.node != node])
        self._changed()
        if all(n.name != node for n in self.nodes()):  # it is not even there any more
            return api.NodeDrainPreview(node=node, drain=None, others=0, stops=[])
        return await self.preview(node)

    def _put(self, drains: Sequence[NodeDrain]) -> None:
        self._drains = {d.node: d for d in drains}
        self._seen = None

    # --- what runs there

    def _to_empty(self) -> set[str]:
        return {d.node for d in self._drains.values() if d.evict}

    def _jobs_on(self, nodes: set[str]) -> list[Job]:
        return [job for job in self._board.holding.values() if _is_on(job, nodes)]

    def _job_changed(self, job: Job, before: Job | None) -> None:
        """Evict a job that has just come to a node that must become empty, for example by a resize."""
        if before is not None and before.placement == job.placement and before.resize_to == job.resize_to:
            return
        nodes = self._to_empty()
        if _is_on(job, nodes) and _keeps_running(job):
            self._evicting.start(self._evict_quietly())

    async def _evict_quietly(self) -> None:
        try:
            await self._evict_jobs()
        except MLPError as error:  # the next sweep tries again
            log.warning("a drained node is not emptied yet: %s", error)

    async def _evict_jobs(self) -> None:
        """Ask all jobs to give way that have ranks where none shall be."""
        nodes = self._to_empty()
        uids = [job.uid for job in self._jobs_on(nodes) if _keeps_running(job)] if nodes else []
        if not uids:
            return

        def work(tx: Tx, changes: Changes) -> None:
            why = {d.node: d.reason for d in tx.drains.all() if d.evict}
            for uid in uids:
                job = tx.jobs.get(SYSTEM, uid)
                if job is None or not _keeps_running(job) or not _is_on(job, why):
                    continue  # it went on meanwhile, perhaps to another node, or the node was given back
                changes.update(tx, replace(job, target=Target.PREEMPT))
                changes.add_event(tx, uid, self._clock(), Step("preempted", _why(job, why)))

        await self._board.commit(work)

    async def _end_servers(self) -> None:
        """Have the hub end the notebook servers that hold room where none shall be held."""
        nodes, end = self._to_empty(), self.end_server
        if not nodes or end is None:
            return
        now = self._clock()
        rows = await self._board.db.read(lambda tx: _servers_on(tx, nodes, now))
        self._ended = {key: at for row in rows if (at := self._ended.get(key := _key(row))) is not None}
        for row in rows:
            if now - self._ended.get(_key(row), float("-inf")) < AGAIN_S:
                continue
            if not await self._is_to_end(row):
                continue
            try:
                await end(row.user, row.id.removeprefix(f"{row.user}/"))
            except MLPError as error:
                log.warning("the server %s on a drained node is not ended yet: %s", row.id, error)
                continue
            if _key(row) not in self._ended:
                await self._board.db.write(lambda tx, row=row: self._note(tx, row, nodes))  # type: ignore[misc]
            self._ended[_key(row)] = now

    async def _is_to_end(self, row: ResourceRequest) -> bool:
        """Look again right before a server's end: the ends of others take time, and another can have its name by now."""
        nodes, now = self._to_empty(), self._clock()
        return _key(row) in await self._board.db.read(lambda tx: set(map(_key, _servers_on(tx, nodes, now))))

    def _note(self, tx: Tx, row: ResourceRequest, nodes: set[str]) -> None:
        node = next(name for name, _ in row.shares if name in nodes)
        detail = {"message": msg("node {node} is taken out of service", node=node)}
        tx.audit.add(
            self._clock(), THE_HUB, "server.stop", row.holder or row.id, tenant=row.tenant, detail=detail
        )


def _keeps_running(job: Job) -> bool:
    """Whether nobody asked it to end yet."""
    return job.phase in HOLDING and job.phase is not Phase.FINISHING and job.target in _STOPS


def _is_on(job: Job, nodes: Collection[str]) -> bool:
    """Whether a job has ranks on one of these nodes, or is about to."""
    return any(node in nodes for node in (*job.placement, *job.resize_to))


def _why(job: Job, reasons: Mapping[str, str]) -> Message:
    """Say by which of these nodes a job must end, and why that is."""
    node = next((n for n in (*job.placement, *job.resize_to) if n in reasons), "")
    return msg("node {node} is taken out of service: {reason}", node=node, reason=reasons.get(node, ""))


def _servers_on(tx: Tx, nodes: set[str], now: float) -> list[ResourceRequest]:
    return [
        row
        for row in tx.ledger.held(now, applier=SERVER.applier)
        if any(name in nodes for name, _ in row.shares)
    ]


def _key(row: ResourceRequest) -> tuple[str, float]:
    """Return what tells a server from a later one of the same name."""
    return row.id, row.created_at


def to_wire(drain: NodeDrain | None) -> api.NodeDrained | None:
    """Return how a node is drained."""
    if drain is None:
        return None
    return api.NodeDrained(reason=drain.reason, actor=drain.actor, since=when(drain.since), evict=drain.evict)


def _job_to(job: Job, node: str) -> api.NodeUser:
    replica = job.spec.replica
    return api.NodeUser(
        kind="job" if replica is None else "app",
        user=job.spec.user,
        name=job.title if replica is None else replica.name,
        tenant=job.spec.tenant,
        ranks=job.placement.count(node),
        of=len(job.placement),
        checkpoint_every=job.spec.checkpoint_every,
        ending=not _keeps_running(job),
    )


def _server_to(row: ResourceRequest) -> api.NodeUser:
    return api.NodeUser(
        kind="server",
        user=row.user,
        name=row.id.removeprefix(f"{row.user}/"),
        tenant=row.tenant,
        ranks=1,
        of=1,
        checkpoint_every=None,
        ending=False,
    )
