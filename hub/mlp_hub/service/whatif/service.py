"""What-if: a scenario, the present or recorded history, run in virtual time beside the hub. Changes nothing."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET

from mlp_api.localized import Text
from mlp_api.platform import whatif as api
from mlp_hub import helpers
from mlp_hub.domain.dimensions import DIMENSIONS, FLAT, MILLI, NAMES, WHOLE
from mlp_hub.domain.errors import Reason, Refused, Unavailable
from mlp_hub.domain.jobs import names
from mlp_hub.domain.jobs.job import Phase
from mlp_hub.domain.resources import Quota, Resources, milli, quota_of
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.pools import WorkKind, run_in
from mlp_hub.scheduler.model.types import Node, SchedulingPolicy, TenantQueue
from mlp_hub.service.admission.loop import Admission
from mlp_hub.service.jobs.history import ATTEMPT_STEPS, at_full_width
from mlp_hub.service.state.board import Board
from mlp_hub.service.support import limits
from mlp_hub.service.support.costly import CostlyTurns
from mlp_hub.service.support.limits import DEFAULTS, ServiceLimits
from mlp_hub.service.support.units import check_kinds, counted_from, thousandths, when
from mlp_hub.service.tenants.validation import check_limits, check_one_place, no_cohort_like_a_tenant
from mlp_hub.service.whatif.task import Task, WhatIfOutcome
from mlp_hub.simulate.forms import ScenarioForm
from mlp_hub.simulate.recorded import (
    Lengths,
    RecordedJob,
    Recording,
    changed_recording,
    past_of,
    present_of,
    recorded_job,
    remarks,
)
from mlp_hub.simulate.recorded_file import document_of, from_its_first_job, notes_of, shown_as
from mlp_hub.simulate.report import percentile
from mlp_hub.store.records import EndedJob
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, from_data, msg, msgs

LIKE_DAYS = 30
"""Tuning: days back from which ended jobs are taken to guess the length of others: time of an answer, for how far it looks."""
MOST_LIKE = 5_000
"""Safety: ended jobs from which the length of others is guessed, at most: bounds memory."""
_SCENARIO = ScenarioForm.__struct_encode_fields__
_DIMENSION = re.compile(rf"^({'|'.join(DIMENSIONS)}|gpu:[^\s]{{1,64}})$")


class WhatIf:
    """Answers `POST /simulate`, and exports the present and the past as scenarios."""

    def __init__(
        self,
        board: Board,
        admission: Admission,
        clock: Callable[[], float],
        *,
        most: ServiceLimits = DEFAULTS,
        first_uid: int | None = None,
    ) -> None:
        """`first_uid` is as the policy of runs has it."""
        self._board = board
        self._admission = admission
        self._clock = clock
        self._most = most
        uid = helpers.helper_uid(first_uid, helpers.SIMULATING)
        self._within = helpers.Confinement(uid, most.what_if_ram << 20, 2 * math.ceil(most.what_if_s))
        runs = msg(
            "{count} other users each have a run in progress, which is the limit; try again in a minute"
        )
        exports = msg(
            "{count} other users each have an export in progress, which is the limit; try again in a minute"
        )
        self._runs = CostlyTurns(most.what_if_runs, full=runs)
        self._exports = CostlyTurns(limits.WHAT_IF_EXPORTS, full=exports)

    async def simulate(
        self, who: str, asked: api.SimulateRequest, *, lines: bool = False, chart: bool = False
    ) -> api.Simulated:
        """Run it. One run at a time for each of those who ask; a run too large is refused."""
        _check(asked)
        async with self._runs.turn(who, 1, msg("a run of yours is in progress; wait until it is done")):
            return await self._simulate(asked, lines=lines, chart=chart)

    async def _simulate(self, asked: api.SimulateRequest, *, lines: bool, chart: bool) -> api.Simulated:
        if asked.from_ is UNSET:
            scenario = {k: v for k, v in msgspec.to_builtins(asked).items() if k not in ("from", "changes")}
            task = Task(
                scenario=scenario,
                lines=lines,
                chart=chart,
                most_jobs=self._most.what_if_jobs,
                most_nodes=self._most.what_if_nodes,
            )
            return _answer(await self._run(task), None, None, [])
        begin, before = await self.recording(asked.from_)
        changes = api.WhatIfChanges() if asked.changes is UNSET else asked.changes
        after = changed_by(before, changes, self._most.what_if_nodes)
        for n, most, what in (
            (len(before.jobs), self._most.what_if_jobs, msg("jobs")),
            (len(after.nodes), self._most.what_if_nodes, msg("nodes")),
        ):
            if n > most:
                raise Refused(
                    Reason.INVALID,
                    msg(
                        "this would be a run of {n} {what}; the limit here is {most}",
                        n=n,
                        what=what,
                        most=most,
                    ),
                )
        said = remarks(before)
        again = sum(
            a.started is None and b.started is not None for a, b in zip(after.jobs, before.jobs, strict=True)
        )
        if again:
            said.append(
                msgs(
                    "With the changes 1 running job loses its nodes and waits again.",
                    "With the changes {n} running jobs lose their nodes and wait again.",
                    n=again,
                )
            )
        answer = await self._run(Task(before=before, after=after, lines=lines, chart=chart))
        return _answer(answer, begin, _waits_of(before), said)

    async def export(self, who: str, days: float | None) -> dict[str, Any]:
        """Return the present (None), or the jobs of the last days, as a scenario file has it.

        One at a time for each of those who ask.
        """
        async with self._exports.turn(
            who, 1, msg("an export of yours is in progress; wait until it is done")
        ):
            if days is None:
                begin, recording = await self.recording("now")
            else:
                since = datetime.fromtimestamp(self._clock() - days * 86_400, UTC)
                wanted = api.WhatIfHistory(history=api.WhatIfWindow(since=since))
                begin, recording = await self.recording(wanted)
            return await run_in(WorkKind.RECORDING, _exported, begin, recording)

    # ---------------------------------------------------------------- inputs

    async def recording(self, source: str | api.WhatIfHistory) -> tuple[float, Recording]:
        """Return the instant that seconds count from, and the recording."""
        now = self._clock()
        snapshot = await self._admission.snapshot()
        if isinstance(source, api.WhatIfHistory):
            return await self._past(source.history, now, snapshot)
        ended, _, full = await self._board.db.read(
            lambda tx: _ended(tx, now - LIKE_DAYS * 86_400, now, MOST_LIKE)
        )
        likes = Lengths(
            (e.user, e.name, full.get(e.uid) or e.ran) for e in ended if e.phase == Phase.FINISHED
        )
        suspended = sum(j.phase is Phase.SUSPENDED for j in self._board.jobs.values())
        left_out = {"suspended": suspended}
        recording = present_of(snapshot, now, likes, left_out)
        runtimes = {(j.spec.user, j.title): j.spec.runtime for j in self._board.jobs.values()}
        jobs = (replace(j, runtime=runtimes.get((j.user, j.name), j.runtime)) for j in recording.jobs)
        return now, replace(recording, jobs=tuple(jobs))

    async def _past(self, window: api.WhatIfWindow, now: float, snapshot: Any) -> tuple[float, Recording]:
        since = window.since.timestamp()
        until = now if window.until is None else window.until.timestamp()
        if since < 0:  # no hub is as old, and not every such time can be written
            raise Refused(Reason.INVALID, msg("history.since is before 1970; choose a later one"))
        if until <= since:
            raise Refused(Reason.INVALID, msg("history.until is not after history.since; choose a later one"))
        ended, more, full = await self._board.db.read(
            lambda tx: _ended(tx, since, until, self._most.what_if_jobs)
        )
        begin = min((e.submitted_at for e in ended), default=since) if more else since
        jobs = [_recorded(e, begin, full.get(e.uid)) for e in reversed(ended) if e.has_run]
        open_ = sum(since <= j.submitted_at < until for j in self._board.jobs.values())
        left_out = {
            "unstarted": len(ended) - len(jobs),
            "open": open_,
        }
        if more:
            left_out["older"] = self._most.what_if_jobs
        return begin, past_of(snapshot, jobs, left_out)

    # ------------------------------------------------------------------ runs

    async def _run(self, task: Task) -> dict[str, Any]:
        process = await asyncio.create_subprocess_exec(
            *helpers.command("mlp_hub.service.whatif.worker", self._within),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=helpers.environment(),
            cwd="/",
            start_new_session=True,
        )
        data = await run_in(WorkKind.RECORDING, msgspec.json.encode, task, enc_hook=_plain)
        try:
            async with asyncio.timeout(self._most.what_if_s):
                out, err = await process.communicate(data)
        except TimeoutError:
            text = msg(
                "this run takes longer than {time_s} s, which is the limit of a what-if here; ask for fewer jobs, or export a scenario with `mlp-hub simulate --export` and run it on your own machine",
                time_s=self._most.what_if_s,
            )
            raise Refused(Reason.INVALID, text) from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            last = err.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
            raise Unavailable(msg("the run ended before its time ({why})", why=last or process.returncode))
        outcome = await run_in(WorkKind.RECORDING, msgspec.json.decode, out, type=WhatIfOutcome)
        if outcome.refused is not None:
            raise Refused(Reason.INVALID, from_data(outcome.refused))
        return outcome.answer


def _exported(begin: float, recording: Recording) -> dict[str, Any]:
    recording, later = from_its_first_job(recording)
    begin += later
    return document_of(recording) | {
        "remarks": [Text(said) for said in (*shown_as(recording), *remarks(recording))],
        "begin": when(begin).isoformat(),
        "notes": notes_of(recording, begin),
    }


def _check(asked: api.SimulateRequest) -> None:
    """Refuse what is neither a scenario nor a what-if, or both."""
    given = [k for k in _SCENARIO if getattr(asked, k) is not UNSET]
    if asked.from_ is not UNSET and given:
        text = msg(
            "`from` is given, so {key} has no effect here; put the differences into `changes`",
            key=given[0],
        )
        raise Refused(Reason.INVALID, text)
    if asked.from_ is UNSET and asked.changes is not UNSET:
        raise Refused(Reason.INVALID, msg("changes need `from`; change a scenario in its own keys"))
    if asked.from_ is UNSET and not given:
        text = msg(
            "the body has nothing to run; send a scenario (version, nodes, tenants, jobs), or {example}, with `changes`",
            example='{"from": "now"}',
        )
        raise Refused(Reason.INVALID, text)


def _answer(
    found: Mapping[str, Any], begin: float | None, waits: api.RecordedWaits | None, said: list[Message]
) -> api.Simulated:
    whole = {
        **found,
        "begin": None if begin is None else when(begin),
        "recorded": None if waits is None else msgspec.to_builtins(waits),
        "remarks": [],
    }
    return msgspec.structs.replace(msgspec.convert(whole, api.Simulated), remarks=[Text(m) for m in said])


def _waits_of(recording: Recording) -> api.RecordedWaits | None:
    if recording.now:
        return None
    waits = sorted(j.waited for j in recording.jobs if j.waited is not None)
    return api.RecordedWaits(
        jobs=len(waits),
        avg_wait_s=round(sum(waits) / len(waits), 3) if waits else 0.0,
        p50_wait_s=round(percentile(waits, 0.5), 3),
        p99_wait_s=round(percentile(waits, 0.99), 3),
    )


def _ended(
    tx: Tx, since: float, until: float, limit: int
) -> tuple[list[EndedJob], bool, dict[str, float | None]]:
    """Return what `Jobs.ended` does, and of elastic ones how long they would have run with all their workers, if told."""
    ended, more = tx.jobs.ended(SYSTEM, since, until, limit)
    elastic = {e.uid: e for e in ended if e.shape.workers_min < e.shape.workers_max and e.has_run}
    return (
        ended,
        more,
        {
            uid: at_full_width(elastic[uid], steps)
            for uid, steps in tx.events.of_kinds(elastic, ATTEMPT_STEPS)
        },
    )


def _recorded(ended: EndedJob, begin: float, full: float | None) -> RecordedJob:
    shape = ended.shape
    ran = max(ended.ran, 0.001)
    fixed = shape.workers_min == shape.workers_max
    return recorded_job(
        shape,
        name=names.title(ended.name, ended.run),
        user=ended.user,
        tenant=ended.tenant,
        submitted=max(ended.submitted_at - begin, 0.0),
        length=ran if full is None else max(full, 0.001),
        told_by="record" if fixed else "widest" if full is None else "workers",
        ran=ran,
        priority=shape.priority,
        # an attempt that ended at its limit was a little longer than that, and would fail here
        time_limit=None if shape.time_limit is None else max(float(shape.time_limit), ran),
        runtime=shape.runtime,
        waited=ended.waited,
        attempts=ended.restarts + (ended.started_at is not None),
    )


# -------------------------------------------------------------------- changes


def changed_by(
    recording: Recording, changes: api.WhatIfChanges, most_nodes: int = DEFAULTS.what_if_nodes
) -> Recording:
    """Return the recording with the changes; refuse names that are not there, or there already, and too many nodes."""
    known = {t.name: t for t in recording.tenants}
    names = {n.name for n in recording.nodes}
    for name in changes.tenants:
        if name not in known:
            _wrong("changes.tenants", f"there is no tenant {name}; one that is new goes to new_tenants")
    for name in changes.new_tenants:
        if name in known:
            _wrong("changes.new_tenants", f"there is a tenant {name} already; what is there goes to tenants")
    for name in (*changes.remove_nodes, *changes.nodes_down):
        if name not in names:
            _wrong("changes", f"there is no node {name[:60]}")
    tenants = [_tenant(known[name], change) for name, change in changes.tenants.items()]
    tenants += [_tenant(TenantQueue(name), change) for name, change in changes.new_tenants.items()]
    then = known | {t.name: t for t in tenants}
    _check_tree(then)
    for tenant in tenants:
        check_one_place(tenant)
        if tenant.cohort in then:
            no_cohort_like_a_tenant(tenant)
        check_limits(tenant)
    added = _added(changes.new_nodes, names.difference(changes.remove_nodes), most_nodes)
    return changed_recording(
        recording,
        tenants=tenants,
        added=added,
        removed=set(changes.remove_nodes),
        down=set(changes.nodes_down),
        policy=_policy(recording.policy, changes.policy),
    )


def _wrong(where: str, what: str) -> None:
    raise Refused(Reason.INVALID, msg("{where}: {what}", where=where, what=what))


def _check_tree(tenants: Mapping[str, TenantQueue]) -> None:
    for name, tenant in tenants.items():
        seen = {name}
        at = tenant.parent
        while at is not None:
            if at not in tenants:
                _wrong(f"changes, tenant {name}", f"there is no tenant {at} to be its parent")
            if at in seen:
                _wrong(f"changes, tenant {name}", "its parents go round in a circle")
            seen.add(at)
            at = tenants[at].parent


def _tenant(tenant: TenantQueue, change: api.WhatIfTenant) -> TenantQueue:
    limits: dict[str, Any] = {}
    for d in FLAT:
        value = getattr(change, d)
        if value is not UNSET:
            limits[d] = value if value is None or d in WHOLE else thousandths(d, value)
    if change.amounts is not UNSET:
        limits["amounts"] = counted_from("amounts", change.amounts)
    if change.gpu_kinds is not UNSET:
        check_kinds("gpu_kinds", len(change.gpu_kinds))
        limits["kinds"] = {k: thousandths(f"gpu_kinds.{k}", v) for k, v in change.gpu_kinds.items()}
    others: dict[str, Any] = {}
    for key in change.__struct_fields__:
        value = getattr(change, key)
        if value is not UNSET and key not in {*FLAT, "gpu_kinds", "amounts"}:
            others[key] = _limits(key, value) if isinstance(value, dict) else value
    return replace(tenant, quota=replace(tenant.quota, **limits), **others)


def _limits(key: str, given: Mapping[str, float | None]) -> Quota:
    found: dict[str, int | None] = {}
    check_kinds(key, sum(":" in d for d in given))
    for d, value in given.items():
        if not _DIMENSION.fullmatch(d):
            _wrong(key, f"there is no dimension {d[:60]}; there are {', '.join(NAMES[:-1])} and {NAMES[-1]}")
        if value is not None and not 0 <= value <= 1e15:
            _wrong(key, f"{d} is {value:g}; it must be from 0 to 1e15")
        if value is not None:
            found[d] = round(value) if d in WHOLE else thousandths(f"{key}.{d}", value)
    return quota_of(found)


def _added(asked: Sequence[api.WhatIfNodes], left: set[str], most: int) -> list[Node]:
    many = sum(nodes.count for nodes in asked)
    if many > most:  # said before they are made
        _wrong("changes.new_nodes", f"these are {many} nodes; at most {most} are run here")
    for nodes in asked:
        said = (nodes.name, nodes.gpu_kind or "", *nodes.labels, *nodes.labels.values())
        if not all(text.isprintable() for text in said):
            _wrong("changes.new_nodes", "a name, kind or label holds what cannot be printed; leave it out")
    added = [node for nodes in asked for node in _nodes(nodes)]
    for node in added:
        if node.name in left:
            _wrong("changes.new_nodes", f"there is a node {node.name} already; choose another name")
        left.add(node.name)
    return added


def _nodes(nodes: api.WhatIfNodes) -> list[Node]:
    capacity = Resources(cpu=milli(nodes.cpu), gpu=nodes.gpu * MILLI, ram=nodes.ram)
    names = [nodes.name] if nodes.count == 1 else [f"{nodes.name}-{i}" for i in range(nodes.count)]
    kind = nodes.gpu_kind if nodes.gpu else None
    return [Node(name, capacity, gpu_kind=kind, labels=dict(nodes.labels)) for name in names]


def _policy(policy: SchedulingPolicy, change: api.WhatIfPolicy | None) -> SchedulingPolicy:
    if change is None:
        return policy
    given = {f: getattr(change, f) for f in change.__struct_fields__}
    return replace(policy, **{k: v for k, v in given.items() if v is not UNSET})


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"cannot send a {type(value).__name__}")
