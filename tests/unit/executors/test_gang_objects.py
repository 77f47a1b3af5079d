"""Objects of a cluster for each way and runtime, as the API gets them (`golden/*.yaml`), and what is refused.

A changed object changes its file: `pytest --golden` writes them anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlp_hub.domain.dimensions import ON_NODES
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.runtime import BUILT_IN, RankRole, Runtime
from mlp_hub.executors.base import CannotStart, Code, DataMount, EntryPoint, LaunchSpec, Mount
from mlp_hub.executors.kubernetes.gang import LONGEST_NAME, Gang, describe, rank_of
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.operators import OperatorWays
from mlp_hub.executors.kubernetes.rbac import OF_OPERATORS, RIGHTS
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.workspace import StoredPlace
from mlp_hub.kubernetes.kinds import (
    JOBS,
    MPI_JOBS,
    NETWORK_POLICIES,
    POD_GROUPS,
    PYTORCH_JOBS,
    SERVICES,
    TF_JOBS,
    VOLCANO_JOBS,
    Kind,
)
from support.cluster.gangs import pods_in

GOLDEN = Path(__file__).parent / "golden"
ALL = frozenset({JOBS, MPI_JOBS, TF_JOBS, PYTORCH_JOBS, VOLCANO_JOBS, POD_GROUPS})
OWN = Runtime(
    "exchange",
    "",
    "",
    program=("{python}", "{entry}", "{role}", "{hosts.worker}"),
    roles=(RankRole("desk", 1), RankRole("worker")),
    ends_with="desk",
    tenant="red",
)
LAUNCHED = Runtime("own", "", "", launcher=("{bin}/start", "{start_rank}"), rank_env="MINE", tenant="red")


def at(root: Path, **more: Any) -> Installation:
    given = {
        "root": root,
        "directories": Directories(root / "homes", root / "jobs"),
        "volume": {"nfs": {"server": "files", "path": "/"}},
        "image": "images.example/notebook:1",
        "service": ("mlp.example", 80),
    }
    return Installation(**(given | more))


def launch(runtime: str | Runtime, workers: int = 1, ps: int = 0, **more: Any) -> LaunchSpec:
    given: dict[str, Any] = {
        "attempt": "a-1",
        "job": "digits",
        "run": 2,
        "user": "ann",
        "uid": 300_001,
        "tenant": "red",
        "runtime": BUILT_IN[runtime] if isinstance(runtime, str) else runtime,
        "workers": workers,
        "ps": ps,
        "per_worker": Resources(cpu=1500, ram=2048, gpu=1000),
        "placement": (),
        "program": Code("print('hello')"),
        "args": ("--fast",),
        "env": {"MLP_JOB": "digits"},
    }
    return LaunchSpec(**(given | more))


CASES: Mapping[str, tuple[LaunchSpec, frozenset[Kind]]] = {
    "plain-alone": (launch("plain"), ALL),
    "plain": (launch("plain", 3, placement=("n1", "n2", "n1"), time_limit=600.0), ALL),
    "plain-without-volcano": (launch("plain", 3), frozenset({JOBS})),
    "mpi": (launch("mpi", 3, time_limit=600.0), ALL),
    "mpi-without-volcano": (launch("mpi", 3), frozenset({JOBS, MPI_JOBS})),
    "mpi-alone": (launch("mpi"), frozenset({JOBS})),
    "tf": (launch("tf", 3, 1), ALL),
    "tf-by-volcano": (launch("tf", 3, 1), ALL - {TF_JOBS}),
    "tf-by-jobs": (launch("tf", 3, 1), frozenset({JOBS})),
    "torch": (launch("torch", 2), ALL),
    "torch-by-jobs": (launch("torch", 2), frozenset({JOBS})),
    "own": (launch(OWN, 3), ALL),
    "own-launcher": (launch(LAUNCHED, 2), ALL),
}


def described(spec: LaunchSpec, served: frozenset[Kind], root: Path, **more: Any) -> Gang:
    return describe(spec, at(root, **more), OperatorWays(served), "digits-a-1")


@pytest.mark.parametrize("case", CASES)
def test_a_jobs_own_image_is_that_of_all_its_pods_whatever_its_runtime_names(
    case: str, tmp_path: Path
) -> None:
    spec, kinds = CASES[case]
    of_runtime = replace(spec, runtime=replace(spec.runtime, image="images.example/runtime:1"))
    for given, image in (
        (of_runtime, "runtime:1"),
        (replace(of_runtime, image="images.example/env:1"), "env:1"),
    ):
        pods = pods_in(described(given, kinds, tmp_path).main[1])
        assert {c["image"] for pod in pods for c in pod["spec"]["containers"]} == {f"images.example/{image}"}


def test_shared_memory_has_the_size_that_was_asked_for_or_half_of_the_memory(tmp_path: Path) -> None:
    for amounts, size in (((), "1024Mi"), ((("shm", 1500),), "1500Mi")):
        spec = launch("plain", per_worker=Resources(cpu=1500, ram=2048, amounts=amounts))
        (pod,) = pods_in(described(spec, ALL, tmp_path).main[1])
        (shm,) = [each for each in pod["spec"]["volumes"] if each["name"] == "shm"]
        assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": size}
        assert pod["spec"]["containers"][0]["resources"]["limits"]["memory"] == "2048Mi", "it is a part of it"


@pytest.mark.parametrize("dimension", ON_NODES)
def test_a_pod_requests_each_dimension_of_nodes_that_its_rank_asks_for(
    dimension: str, tmp_path: Path
) -> None:
    each = Resources(cpu=1500, ram=2048, gpu=1000)
    found = []
    for asked in (each, each.with_part(dimension, 3000)):
        (pod,) = pods_in(described(launch("plain", per_worker=asked), ALL, tmp_path).main[1])
        found.append(pod["spec"]["containers"][0]["resources"])
    assert all(found[0][part] != found[1][part] for part in ("requests", "limits")), "see amounts of pods.py"


def test_a_rank_without_gpus_gets_none_by_its_images_variable(tmp_path: Path) -> None:
    for gpu, seen in ((0, ["void"]), (1000, [])):
        spec = launch("plain", per_worker=Resources(cpu=1500, ram=2048, gpu=gpu))
        (pod,) = pods_in(described(spec, ALL, tmp_path).main[1])
        env = pod["spec"]["containers"][0]["env"]
        assert [each["value"] for each in env if each["name"] == "NVIDIA_VISIBLE_DEVICES"] == seen


@pytest.mark.parametrize("case", CASES)
def test_objects_are_as_written_down(case: str, tmp_path: Path, golden: Callable[[Path, str], None]) -> None:
    gang = described(*CASES[case], tmp_path)
    plan = json.loads(gang.files["plan.json"])
    text = yaml.safe_dump_all(
        [*(each for _, each in gang.beside), gang.main[1], {"plan": plan}], sort_keys=True, width=120
    )
    golden(GOLDEN / f"{case}.yaml", text)


@pytest.mark.parametrize(("case", "kind"), [
    ("mpi", MPI_JOBS), ("mpi-alone", JOBS), ("tf", TF_JOBS), ("tf-by-volcano", VOLCANO_JOBS), ("tf-by-jobs", JOBS),
    ("torch", PYTORCH_JOBS), ("torch-by-jobs", JOBS), ("plain", JOBS), ("own", JOBS),
])  # fmt: skip
def test_the_best_way_that_the_cluster_has_is_taken(case: str, kind: Kind, tmp_path: Path) -> None:
    assert described(*CASES[case], tmp_path).main[0] == kind


@pytest.mark.parametrize("case", CASES)
def test_every_pod_is_fit_for_restricted_and_a_quota(case: str, tmp_path: Path) -> None:
    for pod in pods_in(described(*CASES[case], tmp_path).main[1]):
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is spec["enableServiceLinks"] is False
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["runAsUser"] == 300_001
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert {next(iter(set(volume) - {"name"})) for volume in spec["volumes"]} <= {
            "emptyDir", "persistentVolumeClaim", "secret",
        }  # fmt: skip
        [container] = spec["containers"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["requests"] == container["resources"]["limits"] == {
            "cpu": "1500m", "memory": "2048Mi", "nvidia.com/gpu": "1",
        }  # fmt: skip
        files = {
            mount["mountPath"]: mount.get("subPath")
            for mount in container["volumeMounts"]
            if mount["name"] == "files"
        }
        assert files == {"/home/ann": "homes/ann", "/workspace": "jobs/ann/digits@2"}
        assert all(mount.get("subPath") for mount in container["volumeMounts"] if mount["name"] == "files")


def test_a_gang_of_a_cluster_with_volcano_is_bound_whole(tmp_path: Path) -> None:
    for case in ("plain", "mpi", "tf", "torch"):
        gang = described(*CASES[case], tmp_path)
        [group] = [each for kind, each in gang.beside if kind == POD_GROUPS]
        assert group["spec"] == {"minMember": CASES[case][0].ranks, "queue": "mlp-red"}
        for pod in pods_in(gang.main[1]):
            assert pod["spec"]["schedulerName"] == "volcano"
            assert pod["metadata"]["annotations"] == {
                "hub.jupyter.org/username": "ann",
                "scheduling.k8s.io/group-name": "digits-a-1-gang",
            }
    gang = described(*CASES["tf-by-volcano"], tmp_path)
    assert [kind for kind, _ in gang.beside] == [NETWORK_POLICIES]
    assert gang.main[1]["spec"]["minAvailable"] == 4
    assert described(*CASES["plain-alone"], tmp_path).beside == ()  # nothing to hold together


def test_only_jobs_need_names_from_us(tmp_path: Path) -> None:
    kinds = {case: [kind for kind, _ in described(*CASES[case], tmp_path).beside] for case in CASES}
    assert [case for case in CASES if SERVICES in kinds[case]] == [
        "plain", "plain-without-volcano", "tf-by-jobs", "torch-by-jobs", "own", "own-launcher",
    ]  # fmt: skip


@pytest.mark.parametrize(("labels", "rank"), [
    ({"mlp-hub/first-rank": "0", "batch.kubernetes.io/job-completion-index": "2"}, 2),
    ({"mlp-hub/first-rank": "3", "training.kubeflow.org/replica-index": "1"}, 4),
    ({"mlp-hub/first-rank": "1", "volcano.sh/task-index": "0"}, 1),
    ({"mlp-hub/first-rank": "0"}, 0),
    ({"app": "other"}, None),
])  # fmt: skip
def test_a_pod_tells_which_rank_it_is(labels: dict[str, str], rank: int | None) -> None:
    assert rank_of({"metadata": {"name": "x", "labels": labels}}) == rank


def test_the_tenants_own_nodes_and_the_installations_are_tolerated(tmp_path: Path) -> None:
    more = {"tolerations": ({"key": "gpu", "operator": "Exists"},), "pull_secrets": ("key",)}
    [pod] = pods_in(described(launch("plain", placement=("n1",)), ALL, tmp_path, **more).main[1])
    assert pod["spec"]["tolerations"] == [
        {"key": "tenant", "operator": "Equal", "value": "red", "effect": "NoSchedule"},
        *(
            {
                "key": f"node.kubernetes.io/{why}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 60,
            }
            for why in ("not-ready", "unreachable")
        ),
        {"key": "gpu", "operator": "Exists"},
    ]
    assert pod["spec"]["imagePullSecrets"] == [{"name": "key"}]
    [terms] = pod["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ].values()
    assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]


def test_nodes_are_selected_by_name_each_in_a_separate_term(tmp_path: Path) -> None:
    # the label kubernetes.io/hostname need not be a node's name, and a term over metadata.name takes one value
    [pod] = pods_in(described(launch("plain", placement=("n2", "n1", "n2")), ALL, tmp_path).main[1])
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"] == [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
        for name in ("n1", "n2")
    ]
    many = described(launch("plain", placement=[f"n{i}" for i in range(101)]), ALL, tmp_path)
    [pod] = pods_in(many.main[1])
    assert "affinity" not in pod["spec"]


@pytest.mark.parametrize("case", CASES)
def test_variables_are_in_a_secret_and_in_nothing_else(case: str, tmp_path: Path) -> None:
    spec, kinds = CASES[case]
    gang = described(replace(spec, env={**spec.env, "WANDB_API_KEY": "opensesame"}), kinds, tmp_path)
    kind, secret = gang.secret
    assert (kind.kind, secret["metadata"]["name"]) == ("Secret", gang.main[1]["metadata"]["name"])
    assert "opensesame" in secret["stringData"]["plan.json"]
    assert "opensesame" not in json.dumps([gang.main[1], *(each for _, each in gang.beside)])


def test_datasets_are_directories_of_the_shared_volume_that_can_only_be_read(tmp_path: Path) -> None:
    data = (
        DataMount(StoredPlace("dataset", "bob", "pets"), "/data/pets"),
        DataMount(StoredPlace("dataset", "bob", "pets"), "/mnt/pets"),
    )
    [pod] = pods_in(described(launch("plain", data=data), ALL, tmp_path).main[1])
    mounts = pod["spec"]["containers"][0]["volumeMounts"]
    for path in ("/data/pets", "/mnt/pets"):
        assert [m for m in mounts if m["mountPath"] == path] == [
            {"name": "files", "mountPath": path, "subPath": "datasets/bob/pets", "readOnly": True}
        ]


def test_a_replica_of_an_app_carries_its_name_and_can_only_read_its_model(tmp_path: Path) -> None:
    spec = launch("plain", listens=True, model="clf@3", env={"MLP_APP": "shop"})
    made = described(spec, ALL, tmp_path).main[1]
    [pod] = pods_in(made)
    assert made["spec"]["template"]["metadata"]["labels"]["mlp-hub/app"] == "shop"
    assert [m for m in pod["spec"]["containers"][0]["volumeMounts"] if m["mountPath"] == "/model"] == [
        {"name": "files", "mountPath": "/model", "subPath": "models/ann/clf@3", "readOnly": True}
    ]
    assert pod["spec"]["automountServiceAccountToken"] is False


def test_mounts_are_claims_by_name(tmp_path: Path) -> None:
    mounts = (Mount("data", "/data"), Mount("data", "/again", read_only=False))
    [pod] = pods_in(described(launch("plain", mounts=mounts), ALL, tmp_path).main[1])
    assert pod["spec"]["volumes"][-1] == {"name": "claim-0", "persistentVolumeClaim": {"claimName": "data"}}
    assert pod["spec"]["containers"][0]["volumeMounts"][-2:] == [
        {"name": "claim-0", "mountPath": "/data", "readOnly": True},
        {"name": "claim-0", "mountPath": "/again"},
    ]


@pytest.mark.parametrize(("spec", "served", "said"), [
    (launch("mpi", 2), frozenset({JOBS}), "this cluster cannot run runtime mpi on several ranks: install the MPI Operator"),
    (launch("plain", per_worker=Resources(cpu=1, ram=1, gpu=500)), ALL, "a cluster gives whole GPUs to a rank, not 0.5"),
    (launch("plain", mounts=(Mount("mlp-files", "/all"),)), ALL, "mlp-files holds everybody's files"),
    (launch("plain", args=("x" * 90_000,) * 12), ALL, "put long ones into a file in the home directory"),
    (launch("plain", program=EntryPoint("missing.py")), ALL, "the home directory has no file missing.py"),
    (launch("plain", workdir="missing"), ALL, "start in missing, and the home directory has no such directory any more"),
    (launch("plain", workdir="../bob"), ALL, "is not in the home directory; submit the job again with another --workdir"),
    (launch("plain", 1, 1), ALL, "parameter servers (ps 1) need runtime tf, not plain"),
])  # fmt: skip
def test_an_attempt_that_can_never_run_is_refused_with_the_way_out(
    spec: LaunchSpec, served: frozenset[Kind], said: str, tmp_path: Path
) -> None:
    (tmp_path / "homes" / "ann").mkdir(parents=True)
    with pytest.raises(CannotStart) as refused:
        described(spec, served, tmp_path)
    assert said in str(refused.value)


def test_a_long_program_is_harmless_since_pods_read_it_from_the_jobs_directory(tmp_path: Path) -> None:
    gang = described(launch("plain", program=Code("x" * 1_100_000)), ALL, tmp_path)
    assert not any("xxx" in text for text in gang.files.values())
    assert json.loads(gang.files["plan.json"])["program"][-2] == "/workspace/code/main.py"


@pytest.mark.parametrize("case", CASES)
def test_every_rank_of_a_gang_is_told_in_which_directory_it_starts(case: str, tmp_path: Path) -> None:
    (tmp_path / "homes/ann/project/src").mkdir(parents=True)
    spec, kinds = CASES[case]
    plan = json.loads(described(replace(spec, workdir="project/src"), kinds, tmp_path).files["plan.json"])
    assert plan["workdir"] == plan["env"]["MLP_WORKDIR"] == "/home/ann/project/src"


def test_a_name_that_operators_could_not_add_to_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="longer than"):
        describe(launch("plain"), at(tmp_path), OperatorWays(ALL), "x" * (LONGEST_NAME + 1))


def test_gpus_are_asked_for_as_the_nodes_that_were_chosen_give_them_out(tmp_path: Path) -> None:
    def asked(devices: set[str], gpu: int = 1000) -> dict[str, str]:
        spec = launch("plain", 2, per_worker=Resources(cpu=1500, ram=2048, gpu=gpu))
        gang = describe(spec, at(tmp_path), OperatorWays(ALL), "digits-a-1", devices)
        [pod] = pods_in(gang.main[1])
        return dict(pod["spec"]["containers"][0]["resources"]["limits"])

    rest = {"cpu": "1500m", "memory": "2048Mi"}
    assert asked({"amd.com/gpu"}) == rest | {"amd.com/gpu": "1"}
    assert asked({"nvidia.com/mig-1g.10gb"}) == rest | {"nvidia.com/mig-1g.10gb": "1"}
    assert asked(set()) == rest | {"nvidia.com/gpu": "1"}
    assert asked({"amd.com/gpu", "nvidia.com/gpu"}, gpu=0) == rest
    with pytest.raises(CannotStart, match="nodes with different GPUs"):
        asked({"amd.com/gpu", "nvidia.com/gpu"})


def test_cpu_limits_equal_the_grant_and_requests_are_lower_with_overcommitment(
    tmp_path: Path,
) -> None:
    [pod] = pods_in(described(launch("plain"), ALL, tmp_path, cpu_overcommit=3.0).main[1])
    asked = pod["spec"]["containers"][0]["resources"]
    assert (asked["requests"]["cpu"], asked["limits"]["cpu"]) == ("500m", "1500m")
    assert asked["requests"]["memory"] == asked["limits"]["memory"] == "2048Mi"


def test_the_hub_asks_for_rights_on_all_that_a_gang_consists_of(tmp_path: Path) -> None:
    asked = {need.kind for need in (*RIGHTS, *OF_OPERATORS) if "create" in need.verbs}
    for case in CASES:
        gang = described(*CASES[case], tmp_path)
        assert {kind for kind, _ in (gang.secret, *gang.beside, gang.main)} <= asked


def test_doctor_reads_which_way_is_taken_and_why() -> None:
    assert [str(line) for line in OperatorWays(ALL).explain()] == [
        "mpi: MPIJob of MPI Operator",
        "tf: TFJob of Training Operator",
        "torch: PyTorchJob of Training Operator",
        "plain: Job of Kubernetes",
        "gangs: Volcano binds all pods of a job, or none",
    ]
    assert [str(line) for line in OperatorWays(frozenset({JOBS})).explain()][:3] == [
        "mpi: one rank only; for more, install the MPI Operator, with its kind mpijobs.kubeflow.org/v2beta1",
        "tf: Job of Kubernetes, because the cluster has no TFJob of Training Operator and Job of Volcano",
        "torch: Job of Kubernetes, because the cluster has no PyTorchJob of Training Operator",
    ]
