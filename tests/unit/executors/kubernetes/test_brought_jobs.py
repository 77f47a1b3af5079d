"""What is read of an object that somebody made with kubectl, what is changed of it, and how its attempt stands."""

from __future__ import annotations

from typing import Any

import pytest

from mlp_hub.domain.jobs.job import Cause, ExternalJob
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptPhase, LaunchSpec
from mlp_hub.executors.kubernetes.attempt_claims import End
from mlp_hub.executors.kubernetes.external import patches
from mlp_hub.executors.kubernetes.external.complaints import is_about
from mlp_hub.executors.kubernetes.external.forms import FORMS
from mlp_hub.executors.kubernetes.external.judging import judge
from mlp_hub.executors.kubernetes.external.views import ExternalView, view_of
from mlp_hub.executors.kubernetes.pod_problems import Complaint
from mlp_hub.executors.kubernetes.views import PodView
from mlp_hub.kubernetes.kinds import JOBS, MPI_JOBS, PYTORCH_JOBS, TF_JOBS, Kind
from support.cluster.pods import asked
from support.cluster.tenancy import installation
from support.executors.executors import simulated_attempt

AT = installation()
SPEC = simulated_attempt("job1.0", {}, placement=("n1", "n2"), workers=2, tenant="red")
A = AttemptPhase


def given(kind: Kind = JOBS, status: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Return an object as the API has it."""
    found = asked(kind, "red", **fields)
    found["metadata"] |= {"uid": "u1", "namespace": "mlp-red", "resourceVersion": "1"}
    return {**found, "status": status or {}}


def view(found: dict[str, Any]) -> ExternalView:
    made = view_of(FORMS[found["kind"]], AT, found)
    assert made is not None
    return made


def let_run(found: dict[str, Any], spec: LaunchSpec = SPEC) -> dict[str, Any]:
    """Return an object after the patch by which it is let run."""
    return merged(found, patches.lets_run(AT, view(found), spec, "1", None))


def merged(into: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    made = dict(into)
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        elif isinstance(value, dict):
            made[key] = merged(made.get(key) or {}, value)
        else:
            made[key] = value
    return made


def pod(rank: int | None = 0, phase: str = "Running", **more: Any) -> PodView:
    fields: dict[str, Any] = {"started_at": 5.0, "node": "n1", **more}
    return PodView("p", "job1.0", rank, phase=phase, made_at=1.0, **fields)


def sized(cpu: str = "1", memory: str = "1Gi", **limits: str) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"memory": memory, **limits}}}


def test_each_pod_counts_as_the_largest_and_with_all_memory_that_it_may_have() -> None:
    found = given(MPI_JOBS, container=sized("100m"))
    specs = found["spec"]["mpiReplicaSpecs"]
    specs["Worker"] = {"replicas": 3, "template": given(container=sized("2", "2Gi"))["spec"]["template"]}
    job = view(found).job_of("red")
    assert (job.workers, job.ps, job.per_worker) == (4, 0, Resources(cpu=2000, ram=2048))
    assert (job.user, job.tenant, job.runtime) == ("ann", "red", "mpi")


@pytest.mark.parametrize("kind", [MPI_JOBS, TF_JOBS, PYTORCH_JOBS], ids=lambda kind: kind.kind)
def test_pods_that_are_less_than_none_do_not_let_others_go_uncounted(kind: Kind) -> None:
    """What an operator's object asks for is any number, of roles of any name."""
    for role in ("Worker", "Mirror"):
        found = given(kind)
        specs = found["spec"][FORMS[kind.kind].replicas]
        template = specs["Worker"]["template"] if "Worker" in specs else specs["Master"]["template"]
        specs["Master" if kind != MPI_JOBS else "Launcher"] = {"replicas": 9, "template": template}
        specs[role] = {"replicas": -8, "template": template}
        assert str(view(found).job_of("red").fault) == "it asks for less than 0 pods; ask for one or more"


def test_a_role_of_which_its_operator_makes_no_pods_is_a_fault() -> None:
    found = given(TF_JOBS)
    found["spec"]["tfReplicaSpecs"]["Mirror"] = found["spec"]["tfReplicaSpecs"]["Worker"]
    fault = "a TFJob has no role Mirror; write one of Chief, Evaluator, Master, PS, Worker"
    assert str(view(found).job_of("red").fault) == fault


@pytest.mark.parametrize(
    "memory", ["1e999999999", "1e99999999999999999999999", "9e-99999999999999999999", "1e24", "1..2"]
)
def test_an_amount_that_nothing_has_is_a_fault_and_takes_no_memory(memory: str) -> None:
    """Operators' objects take any text with an exponent; whoever makes a number of it never comes back."""
    fault = view(given(TF_JOBS, container=sized(memory=memory))).job_of("red").fault
    assert "the resources of its pods cannot be read" in str(fault)


def test_an_object_from_a_namespace_without_policies_is_read_whatever_it_lacks() -> None:
    """All that have the label are watched: one that cannot be read would hide all others."""
    for spec in ({}, {"tfReplicaSpecs": {"Worker": {}}}, {"tfReplicaSpecs": {"Worker": {"template": {}}}}):
        found = given(TF_JOBS)
        found["spec"] = spec
        assert view(found).job_of("red").fault is not None


def test_parameter_servers_gpus_and_limits_of_time_are_read() -> None:
    found = given(TF_JOBS, container=sized(**{"nvidia.com/gpu": "2"}))
    specs = found["spec"]["tfReplicaSpecs"]
    specs["PS"] = {**specs["Worker"], "replicas": 2}
    found["spec"]["runPolicy"]["activeDeadlineSeconds"] = 60
    job = view(found).job_of("red")
    assert (job.workers, job.ps, job.per_worker.gpu, job.time_limit) == (1, 2, 2000, 60)


@pytest.mark.parametrize(
    ("fields", "pods"),
    [({}, 1), ({"parallelism": 3}, 3), ({"parallelism": 3, "completions": 2}, 2), ({"completions": 9}, 1)],
)
def test_a_job_counts_the_pods_that_it_has_at_a_time(fields: dict[str, int], pods: int) -> None:
    found = given()
    found["spec"] |= fields
    assert view(found).ranks == pods


def test_resources_that_cannot_be_counted_are_a_fault() -> None:
    none = given()
    none["spec"]["parallelism"] = 0
    assert "it has no pods" in str(view(none).fault)
    several = given(container=sized(**{"nvidia.com/gpu": "1", "amd.com/gpu": "1"}))
    assert "gpus of several kinds" in str(view(several).fault)
    whole = given()
    whole["spec"]["template"]["spec"]["resources"] = {"requests": {"cpu": "9"}}
    assert "the resources of each container" in str(view(whole).fault)
    assert "cannot be read" in str(view(given(container=sized(cpu="much"))).fault)


@pytest.mark.parametrize("kind", [JOBS, MPI_JOBS, TF_JOBS], ids=lambda kind: kind.kind)
def test_it_is_let_run_on_its_nodes_held_again_and_forgotten(kind: Kind) -> None:
    found = given(kind)
    assert view(found).suspended
    runs = let_run(found)
    seen = view(runs)
    assert (seen.suspended, seen.attempt, seen.nodes) == (False, "job1.0", ("n1", "n2"))
    for part in FORMS[kind.kind].parts(runs["spec"]):
        labels = part.template["metadata"]["labels"]
        assert (labels["mlp-hub/tenant"], labels["mlp-hub/attempt"]) == ("red", "job1.0")
        affinity = part.template["spec"]["affinity"]["nodeAffinity"]
        terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        fields = [field for term in terms for field in term["matchFields"]]
        assert [(field["key"], field["values"]) for field in fields] == [
            ("metadata.name", ["n1"]),
            ("metadata.name", ["n2"]),
        ]
        assert part.template["spec"]["containers"]  # what else it has stays
    held = merged(runs, patches.holds(seen, End(A.STOPPED, 9.0, 3.0)))
    assert view(held).suspended
    assert view(held).end == End(A.STOPPED, 9.0, 3.0)
    forgotten = view(merged(held, patches.forgets(view(held))))
    assert (forgotten.attempt, forgotten.end, forgotten.suspended) == (None, None, True)


def test_a_job_released_by_another_hub_is_not_an_attempt_here() -> None:
    runs = let_run(given())
    runs["metadata"]["labels"]["app.kubernetes.io/instance"] = "other"
    assert view(runs).attempt is None


def test_it_starts_runs_and_ends_as_its_controller_says() -> None:
    seen = view(let_run(given()))
    assert judge(seen, "job1.0", [], 10.0).seen.phase is A.STARTING
    assert judge(seen, "job1.0", [pod()], 10.0).seen.phase is A.RUNNING
    failed_once = [pod(phase="Failed", exit_code=1, finished_at=6.0), pod(None)]
    assert judge(seen, "job1.0", failed_once, 10.0).seen.phase is A.RUNNING  # its controller tries again
    done = {
        "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    }
    over = view({**let_run(given()), "status": done})
    assert judge(over, "job1.0", [pod()], 10.0).seen.phase is A.RUNNING  # something of it is left
    ended = judge(over, "job1.0", [pod(phase="Succeeded")], 10.0).seen
    assert (ended.phase, [r.state for r in ended.ranks]) == (A.SUCCEEDED, ["finished"])


def test_its_failure_is_that_of_the_pod_that_failed() -> None:
    status = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}
    over = view({**let_run(given()), "status": status})
    seen = judge(over, "job1.0", [pod(phase="Failed", exit_code=3, finished_at=6.0)], 10.0).seen
    assert seen.failure is not None
    assert (seen.phase, seen.failure.cause, seen.failure.exit_code) == (A.FAILED, Cause.PROGRAM_ERROR, 3)


def test_it_ends_where_a_node_goes_or_the_cluster_refuses_its_pods() -> None:
    seen = view(let_run(given()))
    end = judge(seen, "job1.0", [], 10.0, lost_nodes=frozenset({"n1"})).end
    assert end is not None
    assert end.phase is A.LOST
    end = judge(seen, "job1.0", [], 10.0, complaint=Complaint("violates PodSecurity", final=True)).end
    assert end is not None
    assert end.phase is A.FAILED
    assert judge(seen, "job1.0", [pod()], 10.0).end is None


def test_a_pod_without_an_image_fails_it_and_one_that_is_started_again_does_not() -> None:
    seen = view(let_run(given()))
    lacks = pod(phase="Pending", started_at=None, waits="InvalidImageName", message="no!")
    end = judge(seen, "job1.0", [lacks], 1000.0).end
    assert end is not None
    assert end.failure is not None
    assert end.failure.cause is Cause.START_FAILED
    again = pod(waits="CrashLoopBackOff")
    assert judge(seen, "job1.0", [again], 1000.0).end is None


def test_a_held_one_has_stopped_once_its_pods_have() -> None:
    held = view(merged(let_run(given()), patches.holds(view(given()), End(A.STOPPED, 9.0))))
    assert judge(held, "job1.0", [pod()], 10.0).seen.phase is A.RUNNING
    assert judge(held, "job1.0", [pod(phase="Failed")], 10.0).seen.phase is A.STOPPED
    assert judge(held, "job1.0", [], 10.0).seen.phase is A.STOPPED


def test_events_of_others_are_not_believed() -> None:
    seen = view(given(MPI_JOBS, name="train"))
    mine = {
        "involvedObject": {"kind": "MPIJob", "name": "train", "uid": "u1"},
        "message": "violates PodSecurity",
    }
    launcher = {"involvedObject": {"kind": "Job", "name": "train-launcher", "uid": "u2"}, "message": "quota"}
    other = {
        "involvedObject": {"kind": "Job", "name": "train-2", "uid": "u3"},
        "message": "violates PodSecurity",
    }
    stale = {**mine, "message": "pod p carries no label mlp-hub/tenant of this namespace"}
    assert [is_about(seen, each) for each in (mine, launcher, other, stale)] == [True, True, False, False]


def test_it_has_a_title_that_people_find_it_by() -> None:
    assert ExternalJob("MPIJob", "mlp-red", "train", "u1").title == "MPIJob mlp-red/train"
