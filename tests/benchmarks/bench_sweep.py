"""What early stopping saves: the sample of a sweep as a whole grid, with ASHA, by random search, and by Optuna alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mlp
from bench_common import Context, Figure, Stopwatch
from support.waiting import wait_for
from sweep_cost import seconds_of_jobs, seconds_of_trials

NAME = "sweep"
ABOUT = (
    "the program of the sample 04-digits-sweep with 80 passes over the data in each of its 27 epochs, on a grid of 12 points, all to their end; the "
    "same points with --stop asha; 12 random points to their end; and Optuna's TPE with its ASHA alone, 12 trials one after another in one process "
    "that imports once. As many trials run at a time as there are cores. Core-hours are what trials held of the quota, starts included; the share is that of ASHA in the grid's. What 200 trials cost "
    "the service is the processor time of its process, beside that of 200 jobs that are submitted one by one and report as much, all over REST; Optuna, which a hub loads once, is loaded before"
)
PASSES = 80
GRID: dict[str, list[float]] = {"hidden": [32, 128], "lr": [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1]}
SEARCH = {"hidden": "choice(32, 128)", "lr": "loguniform(3e-4, 0.1)"}
TRIALS = 12
MANY = 200
PATIENCE_S = 3000.0
ALONE = """
import json, sys, time
import optuna

code, trials = sys.stdin.read(), {trials}
optuna.logging.set_verbosity(optuna.logging.ERROR)


def objective(trial):
    class Told(dict):
        __getattr__ = dict.__getitem__

    import mlp
    mlp.params = Told(hidden=trial.suggest_categorical("hidden", [32, 128]), lr=trial.suggest_float("lr", 3e-4, 0.1, log=True))
    last = [0.0]

    def report(epoch, accuracy, **more):
        last[0] = accuracy
        trial.report(accuracy, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned

    mlp.report = report
    exec(compile(code, "sample", "exec"), {{"__name__": "__main__"}})
    return last[0]


began = time.perf_counter()
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=1), pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3))
study.optimize(objective, n_trials=trials)
print("RESULT", json.dumps([study.best_value, time.perf_counter() - began]))
"""


def program() -> str:
    """Return the sample's program, with more to do in each epoch."""
    path = Path(mlp.__file__).parent / "samples" / "04-digits-sweep.ipynb"
    cell = next(
        c for c in json.loads(path.read_text())["cells"] if "".join(c["source"]).startswith("%%mlp sweep")
    )
    text = "".join(cell["source"]).partition("\n")[2]
    step = "    model.partial_fit(x_train, y_train, classes=range(10))\n"
    if step not in text:
        raise RuntimeError(f"the sample {path.name} trains in another way than this benchmark knows")
    return text.replace(step, f"    for _ in range({PASSES}):\n    {step}")


def run(context: Context) -> list[Figure]:
    """Run all four, one after the other."""
    metric = {"metric": "accuracy", "goal": "max", "parallel": os.cpu_count()}
    grid = _sweep(context, "grid", grid=GRID, **metric)
    asha = _sweep(context, "asha", grid=GRID, stop="asha", **metric)
    random = _sweep(context, "random", search=SEARCH, sampler="random", trials=TRIALS, **metric)
    best, hours = _alone(context.tmp)
    told = [
        ("grid", *_told(grid)),
        ("ASHA", *_told(asha)),
        ("random", *_told(random)),
        ("Optuna alone", best, hours),
    ]
    note = "; ".join(
        f"{name}: accuracy {value:.4f} for {spent:.4f} core-hours" for name, value, spent in told
    )
    share = 100 * asha["core_hours"] / grid["core_hours"]
    command = "make bench ONLY=sweep"
    jobs, trials = seconds_of_jobs(context, MANY), seconds_of_trials(context, MANY)
    return [
        Figure(
            f"sweep: what {MANY} trials with ASHA cost the service",
            trials,
            "s cpu",
            jobs,
            f"{MANY} jobs",
            command=command,
        ),
        Figure("sweep: ASHA's share of the grid's core-hours", share, "%", 40.0, "aim", note, command),
        Figure("sweep: best accuracy with ASHA", _told(asha)[0], "", _told(grid)[0], "grid", command=command),
        Figure(
            "sweep: core-hours with ASHA",
            asha["core_hours"],
            "h",
            hours,
            "Optuna alone",
            "one process imports once",
            command,
        ),
    ]


def _told(sweep: dict[str, Any]) -> tuple[float, float]:
    return sweep["best"]["value"], sweep["core_hours"]


def _sweep(context: Context, name: str, **asked: Any) -> dict[str, Any]:
    hub, clock = context.hub, Stopwatch()
    body = {"name": f"bench-{name}", "code": program(), "ram": 512, "priority": "normal", **asked}
    hub.ok("POST", "/users/bench/sweeps", "bench", body)

    def over() -> dict[str, Any] | None:
        found: dict[str, Any] = hub.ok("GET", f"/users/bench/sweeps/bench-{name}", "bench")
        return found if found["state"] in {"finished", "failed", "cancelled"} else None

    found = wait_for(over, PATIENCE_S, message=f"for the sweep {name} to end")
    if found["state"] != "finished":
        raise RuntimeError(f"the sweep {name} ended as {found['state']}: {found['message']}")
    sys.stdout.write(
        f"  {name}: {found['core_hours']:.4f} core-hours, best {found['best']['value']:.4f}, {clock.seconds:.0f} s, {found['counts']}\n"
    )
    sys.stdout.flush()
    return found


def _alone(tmp: Path) -> tuple[float, float]:
    """Return the best value and the core-hours of Optuna alone, on one core."""
    where = tmp / "alone"
    where.mkdir(parents=True, exist_ok=True)
    # as in a job of one core, and with a checkpoint that is not there: each trial begins anew
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-c", ALONE.format(trials=TRIALS)],
        input=program().replace("joblib.dump(", "(lambda *_: None)("),
        env={**os.environ, **one},
        cwd=where,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    line = next(x for x in done.stdout.splitlines() if x.startswith("RESULT "))
    best, seconds = json.loads(line.removeprefix("RESULT "))
    return best, seconds / 3600
