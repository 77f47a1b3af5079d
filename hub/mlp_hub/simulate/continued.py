"""Run that continues from a hub's state: running jobs keep their places, waiting jobs keep their age."""

from __future__ import annotations

from dataclasses import replace

from mlp_hub.domain.workload.workload import JOB, kind_of
from mlp_hub.scheduler.model.types import AdmittedWorkload, PendingWorkload
from mlp_hub.simulate.engine import Recorder, Simulation
from mlp_hub.simulate.progress import Attempt, Run
from mlp_hub.simulate.recorded import RecordedJob, Recording, scenario_of


class Continued(Simulation):
    """One run of a recording. Lines are as those of any run; forecasts are left out, since the run itself tells."""

    def __init__(self, recording: Recording, recorder: Recorder | None = None) -> None:
        super().__init__(scenario_of(recording), recorder=recorder)
        lines = {line.name: line for line in self.scenario.jobs}
        self._recorded = {j.full_name: j for j in recording.jobs if j.full_name in lines}
        runs = {name for name, j in self._recorded.items() if j.started is not None}
        self._submissions = (s for s in self.scenario.submissions() if s.name not in runs)
        self._next_submission = next(self._submissions, None)
        for name in sorted(runs, key=lambda n: (self._recorded[n].started or 0.0, n)):
            self._serial += 1
            self._go_on(Run(f"{self._serial:08d}", name, lines[name], 0.0, 0.0), self._recorded[name])

    def _go_on(self, run: Run, job: RecordedJob) -> None:
        """Let a job run on that ran before."""
        started = job.started or 0.0
        self.tally.submitted(run, self.now)
        self._emit("submitted", run)
        self._runs[run.uid] = self._by_name[run.name] = run
        run.starts = 1
        self._running += 1
        run.attempt = Attempt.start(run.line, started, len(job.placement), 0.0, 0.0)
        end = None if job.time_limit is None else started + job.time_limit
        self._core.start(AdmittedWorkload(self._waiting(run), job.placement, started, end))
        self._place(run, job.placement)
        self._emit("started", run, placement={str(rank): node for rank, node in enumerate(job.placement)})
        self._schedule_end(run)

    def _waiting(self, run: Run) -> PendingWorkload:
        job = super()._waiting(run)
        recorded = self._recorded[run.name]
        if recorded.kind != JOB:
            kind = kind_of(recorded.kind)
            job = replace(job, kind=kind.name, gives_way=kind.gives_way, goes_first=kind.goes_first)
        return replace(job, queued_at=recorded.submitted) if recorded.submitted < 0 else job

    def _forecast(self, uids: list[str]) -> dict[str, float | None]:
        return dict.fromkeys(uids)
