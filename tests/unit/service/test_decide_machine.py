"""Any interleaving of users, the executor and crashes: legal moves only, quota exact, no attempt started twice."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mlp_hub.domain.jobs.job import FINAL, HOLDING, JOB_MACHINE, Cause, Failure, Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptPhase, Observation
from mlp_hub.service.lifecycle import next_action as d
from mlp_hub.service.lifecycle.actions import Action, Erase, Forget, Start, Stop
from mlp_hub.service.state.moves import Move

A, P, T = AttemptPhase, Phase, Target
ALIVE = (A.STARTING, A.RUNNING)
ENDED = (A.SUCCEEDED, A.FAILED, A.STOPPED, A.LOST)


class JobMachine(RuleBasedStateMachine):
    """One job, an executor and a ledger in memory; a crash loses what was not stored, nothing else."""

    @initialize(retries=st.integers(0, 2))
    def submit(self, retries: int) -> None:
        spec = JobSpec("j", "ann", "red", "plain", Resources(1000), code="x", retries=retries)
        self.job: Job | None = Job("u", spec, P.QUEUED, T.RUN, 0.0, queued_at=0.0)
        self.now = 0.0
        self.held: set[str] = set()
        self.world: dict[str, AttemptPhase] = {}  # what the executor knows
        self.failures: dict[str, Failure] = {}
        self.started: list[str] = []
        self.exits: dict[str, AttemptPhase] = {}  # how attempts ended by themselves
        self.stop_sent: tuple[str, float] | None = None
        self.stale = False
        self.todo: list[Action] = []

    # ------------------------------------------------------------ the service

    @rule()
    def admit(self) -> None:
        if (
            self.job
            and self.job.phase is P.QUEUED
            and self.job.target in (T.RUN, T.PREEMPT)
            and not self.todo
        ):
            assert self.job.attempt not in self.held
            self.store(
                replace(self.job, phase=P.ADMITTED, target=T.RUN, placement=("n1",), admitted_at=self.now)
            )

    @rule()
    def look(self) -> None:
        if self.job is None or self.todo:
            return
        sight = self.world.get(self.job.attempt, A.ABSENT)
        observed = Observation(self.job.attempt, sight, failure=self.failures.get(self.job.attempt))
        sent = self.stop_sent[1] if self.stop_sent and self.stop_sent[0] == self.job.attempt else None
        self.stale = False
        self.todo = d.decide(self.job, observed, self.now, 1.0, sent)

    @rule()
    def act(self) -> None:
        """Do the next action only; others may come between."""
        if self.job is None or not self.todo:
            return
        action = self.todo.pop(0)
        attempt = self.job.attempt
        match action:
            case Move():
                if self.stale:
                    self.todo = []
                else:
                    self.store(action.new)
            case Start():
                # executors start an attempt once
                if attempt not in self.world and attempt not in self.started:
                    self.started.append(attempt)
                    self.world[attempt] = A.STARTING
            case Stop():
                self.stop_sent = (attempt, self.now)
            case Forget():
                assert self.job.phase is not P.RUNNING
                self.world.pop(attempt, None)
            case Erase():
                self.job = None
                self.todo = []
            case _:
                pass

    @rule()
    def crash(self) -> None:
        self.todo = []
        self.stop_sent = None

    def store(self, new: Job) -> None:
        assert self.job is not None
        old = self.job
        assert new.phase in JOB_MACHINE.transitions[old.phase], f"{old.phase} to {new.phase}"
        if old.phase in HOLDING and new.phase not in HOLDING:
            assert self.world.get(old.attempt) not in ALIVE, "quota was given back while ranks were alive"
            self.held.discard(old.attempt)
        if old.phase in HOLDING and new.attempt != old.attempt:
            assert self.world.get(old.attempt) not in ALIVE, "the next attempt holds what a living one has"
            self.held.discard(old.attempt)
        if new.phase in HOLDING:
            self.held.add(new.attempt)
        if new.restarts != old.restarts:
            assert self.exits.get(old.attempt) is not A.SUCCEEDED, "a job that had succeeded was requeued"
        if new.phase is P.FINISHED:
            assert self.exits.get(old.attempt) is A.SUCCEEDED
        self.job = new

    # ------------------------------------------------------------- the world

    @rule(wish=st.sampled_from([T.RUN, T.SUSPEND, T.PREEMPT, T.RESIZE, T.CANCEL]))
    def aim(self, wish: Target) -> None:
        """A user or the scheduler; the next move that was decided before is refused by compare-and-set."""
        job = self.job
        if job is None or job.phase in FINAL or job.phase is P.DELETING or job.target in (T.CANCEL, T.DELETE):
            return
        if wish is T.RUN and job.target is not T.SUSPEND:
            return
        if wish is T.PREEMPT and (job.phase not in HOLDING or job.target not in (T.RUN, T.RESIZE)):
            return
        if wish is T.RESIZE:
            if job.phase not in HOLDING - {P.ADMITTED, P.FINISHING} or job.target is not T.RUN:
                return
            job = replace(job, resize_to=("n1", "n2"))
        self.job = replace(job, target=wish)
        self.stale = True

    @precondition(lambda self: self.job is not None and self.job.phase in FINAL)
    @rule()
    def delete(self) -> None:
        assert self.job is not None
        self.job = replace(self.job, target=T.DELETE)
        self.stale = True

    @rule()
    def ranks_run(self) -> None:
        self.change(A.STARTING, A.RUNNING)

    @rule(how=st.sampled_from([A.SUCCEEDED, A.FAILED, A.LOST]))
    def ranks_end(self, how: AttemptPhase) -> None:
        for attempt, phase in self.world.items():
            if phase in ALIVE:
                self.world[attempt] = self.exits[attempt] = how
                if how is A.FAILED:
                    self.failures[attempt] = Failure(Cause.PROGRAM_ERROR, rank=0, exit_code=1)

    @rule()
    def ranks_obey(self) -> None:
        if self.stop_sent is not None and self.world.get(self.stop_sent[0]) in ALIVE:
            self.world[self.stop_sent[0]] = A.STOPPED

    @rule(seconds=st.sampled_from([0.5, 20.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    def change(self, old: AttemptPhase, new: AttemptPhase) -> None:
        for attempt, phase in self.world.items():
            if phase is old:
                self.world[attempt] = new

    # ---------------------------------------------------------- what holds

    @invariant()
    def quota_is_exact(self) -> None:
        if hasattr(self, "job"):
            holding = self.job is not None and self.job.phase in HOLDING
            assert self.held == ({self.job.attempt} if holding and self.job else set())

    @invariant()
    def no_attempt_starts_twice(self) -> None:
        if hasattr(self, "job"):
            assert len(self.started) == len(set(self.started))

    @invariant()
    def at_most_one_attempt_is_alive(self) -> None:
        if hasattr(self, "job"):
            assert sum(phase in ALIVE for phase in self.world.values()) <= 1

    def teardown(self) -> None:
        """Left alone, with ranks that end, every job comes to rest."""
        if not hasattr(self, "job"):
            return
        self.todo = []
        for _ in range(60):
            self.admit()
            self.look()
            while self.todo:
                self.act()
            self.ranks_run()
            self.ranks_obey()
            self.ranks_end(A.SUCCEEDED)
            self.now += 1
        assert self.job is None or self.job.phase in FINAL | {P.SUSPENDED}
        assert not self.held


JobMachine.TestCase.settings = settings(max_examples=70, stateful_step_count=40, deadline=None)
TestJobMachine = JobMachine.TestCase
