"""Which parameters a trial gets, and whether one is ended early: Optuna's samplers and pruners, over what the hub has stored.

Nothing of Optuna's is stored. Its study is made of the trials' rows, in memory, and what it says becomes rows before it is acted on: there is
no second store that could differ from the first. It is imported when a sweep needs it, and blocks: one thread at a time is at a study.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from mlp_hub.domain.jobs.job import Param
from mlp_hub.domain.jobs.space import Range
from mlp_hub.domain.jobs.sweep import Sweep, SweepSpec, SweepTrial, TrialState, is_better

FACTOR = 3
"""Tuning: one of this number of trials passes a rung of ASHA; each rung is that factor beyond the last."""
RUNG = "completed_rung_"
Curve = Sequence[tuple[int, float]]


def needs_optuna(spec: SweepSpec) -> bool:
    """Whether a sweep asks for more than the points of a grid, one after the other."""
    return bool(spec.search) or spec.stop != "none"


class Adviser:
    """Tried parameters of one sweep, and the conclusions; `curves` are values by step of live trials."""

    def __init__(self, sweep: Sweep, trials: Sequence[SweepTrial], curves: Mapping[int, Curve]) -> None:
        self._spec, self._uid = sweep.spec, sweep.uid
        self._kinds = _distributions(sweep.spec)
        optuna = _optuna()
        self._study = optuna.create_study(
            direction="maximize" if sweep.spec.maximize else "minimize", pruner=_pruner(sweep.spec)
        )
        for trial in trials:
            self._study.add_trial(self._frozen(trial, curves.get(trial.number, trial.curve)))

    def propose(self, number: int) -> dict[str, Param]:
        """Choose the parameters of the next trial, whose number this is: the same ones for the same history."""
        if not self._spec.search:
            # nothing is left to choose: a sampler would only be asked for what is fixed
            trial = SweepTrial(number, self._spec.point(number))
            self._study.add_trial(self._frozen(trial, ()))
            return dict(trial.params)
        self._study.sampler = _sampler(
            self._spec, int(_digest(f"{self._uid}/{self._spec.seed}/{number}"), 16) % 2**32
        )
        fixed = self._spec.point(number)
        if fixed:
            self._study.enqueue_trial(fixed)
        asked = self._study.ask(self._kinds)
        if asked.number != number:
            raise RuntimeError(f"trial {number} of sweep {self._uid} would be number {asked.number}")
        return {name: asked.params[name] for name in self._kinds}

    def report(self, trial: SweepTrial, points: Curve) -> tuple[SweepTrial, bool]:
        """Add values of a trial; return it with the rule's data about it, and whether it should end early."""
        optuna = _optuna()
        of = optuna.trial.Trial(self._study, trial.number)
        for step, value in points:
            of.report(value, step)
            ends, before = self._spec.stop != "none" and of.should_prune(), trial
            trial = self._with_rungs(trial)
            if ends or self._only_equals(trial, before):
                return trial, True
        return trial, False

    def tell(self, trial: SweepTrial) -> None:
        """Take in how a trial ended."""
        state, value = self._end(trial)
        self._study.tell(trial.number, value, state=state, skip_if_finished=True)

    def _only_equals(self, trial: SweepTrial, before: SweepTrial) -> bool:
        """Return whether a trial came to a rung where enough others were as good before it.

        Optuna lets all equal ones continue, so a metric that no longer grows would stop none.
        """
        for rung in trial.rungs.keys() - before.rungs.keys():
            value = trial.rungs[rung]
            others = [
                each.system_attrs[f"{RUNG}{rung}"]
                for each in self._study.get_trials(deepcopy=False)
                if each.number != trial.number and f"{RUNG}{rung}" in each.system_attrs
            ]
            as_good = sum(not is_better(self._spec, value, other) for other in others)
            if as_good >= max((len(others) + 1) // FACTOR, 1):
                return True
        return False

    def _with_rungs(self, trial: SweepTrial) -> SweepTrial:
        # a copy would be one of all trials, with each report
        kept = self._study.get_trials(deepcopy=False)[trial.number].system_attrs
        rungs = {key.removeprefix(RUNG): value for key, value in kept.items() if key.startswith(RUNG)}
        rungs = {rung: value for rung, value in rungs.items() if math.isfinite(value)}
        return trial if rungs == dict(trial.rungs) else replace(trial, rungs=rungs)

    def _end(self, trial: SweepTrial) -> tuple[Any, float | None]:
        states = _optuna().trial.TrialState
        if trial.state is TrialState.FINISHED and trial.value is not None:
            return states.COMPLETE, trial.value
        if trial.state is TrialState.STOPPED:
            return states.PRUNED, None
        return states.FAIL, None

    def _frozen(self, trial: SweepTrial, curve: Curve) -> Any:
        optuna = _optuna()
        running = optuna.trial.TrialState.RUNNING
        state, value = (running, None) if trial.is_live else self._end(trial)
        if state is optuna.trial.TrialState.PRUNED:
            value = trial.value
        return optuna.trial.create_trial(
            state=state,
            value=value,
            params={name: trial.params[name] for name in self._kinds},
            distributions=self._kinds,
            intermediate_values=dict(curve),
            system_attrs={f"{RUNG}{rung}": value for rung, value in trial.rungs.items()},
        )


@cache
def _optuna() -> Any:
    import optuna  # noqa: PLC0415 - half a second and 46 MB, for those hubs only on which somebody searches

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _distributions(spec: SweepSpec) -> dict[str, Any]:
    kinds = _optuna().distributions
    found: dict[str, Any] = {name: kinds.CategoricalDistribution(values) for name, values in spec.grid}
    for name, space in spec.search:
        if not isinstance(space, Range):
            found[name] = kinds.CategoricalDistribution(space)
        elif space.whole:
            found[name] = kinds.IntDistribution(int(space.low), int(space.high), log=space.log)
        else:
            found[name] = kinds.FloatDistribution(space.low, space.high, log=space.log)
    return found


def _sampler(spec: SweepSpec, seed: int) -> Any:
    samplers = _optuna().samplers
    if spec.sampler == "random" or not spec.search:
        return samplers.RandomSampler(seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that what makes trials side by side differ may still change
        return samplers.TPESampler(seed=seed, constant_liar=True)


def _pruner(spec: SweepSpec) -> Any:
    pruners = _optuna().pruners
    if spec.stop == "asha":
        return pruners.SuccessiveHalvingPruner(min_resource=spec.warmup, reduction_factor=FACTOR)
    if spec.stop == "median":
        return pruners.MedianPruner(n_warmup_steps=spec.warmup)
    return pruners.NopPruner()
