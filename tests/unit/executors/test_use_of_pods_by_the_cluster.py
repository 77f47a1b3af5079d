"""A job's own report of its use is a hint: where the cluster measures its pods, that counts, and nothing else is believed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mlp_hub.domain.jobs.idle_gpus import claims_work, works
from mlp_hub.executors.base import AttemptWork
from mlp_hub.executors.kubernetes.metering import gpu_metrics
from mlp_hub.executors.kubernetes.metering.attempt_work import AttemptWorkMeter
from mlp_hub.executors.kubernetes.metering.believed import BelievedUse, PodUse, believed
from mlp_hub.executors.kubernetes.metering.gpu_metrics import GpuMetrics
from mlp_hub.executors.kubernetes.metering.pod_meter import ABSENT_S, EVERY_S, FRESH_S, PodMeter
from mlp_hub.executors.kubernetes.rbac import served
from mlp_hub.executors.kubernetes.records import RankUse
from mlp_hub.kubernetes.errors import ClusterError, ClusterUnreachable, ForbiddenError
from mlp_hub.kubernetes.kinds import MPI_JOBS, Kind
from mlp_hub.settings import Settings, SettingsError

IDLE = PodUse(0.01, 500, 0.02, 0.03, 450, 600)
LIE = RankUse(cpu=8.0, ram=64_000, cpu_mean=7.9, cpu_peak=8.0, ram_mean=63_000, ram_peak=64_000, gpu=1.0)


def test_a_report_of_much_use_changes_nothing_that_the_cluster_measures() -> None:
    known = believed(LIE, IDLE)
    assert (known.use.cpu, known.use.cpu_mean, known.use.cpu_peak) == (0.01, 0.02, 0.03)
    assert (known.use.ram, known.use.ram_mean) == (500, 450)
    assert known.reported, "the most memory is more than any look saw"
    assert not known.cores_reported
    assert not known.memory_reported, "the mean is as the cluster measured it"


def test_a_report_of_less_memory_counts_for_the_cluster_measures_cached_files_too() -> None:
    known = believed(RankUse(cpu=0.5, ram=300, ram_mean=250, ram_peak=400), IDLE)
    assert (known.use.ram, known.use.ram_mean, known.use.ram_peak) == (300, 250, 400)
    assert not known.reported
    assert known.memory_reported, "its mean is the report, and is marked as that"
    assert not known.cores_reported


def test_a_rank_that_deleted_its_report_is_measured_all_the_same() -> None:
    known = believed(RankUse(), IDLE)
    assert (known.use.cpu, known.use.ram, known.use.ram_peak) == (0.01, 500, 600)
    assert (known.reported, known.cores_reported, known.memory_reported) == (False, False, False)


def test_without_a_measure_it_is_said_that_the_report_is_the_jobs_own() -> None:
    assert believed(LIE, None) == BelievedUse(LIE, True, True, True)
    nothing = BelievedUse(RankUse(), False, False, False)
    assert believed(RankUse(), None) == nothing, "there is nothing that anybody could believe"


@pytest.mark.parametrize(
    ("gpu", "cores", "gpu_reported", "cores_reported", "works_", "claims"),
    [
        (1.0, 8.0, True, True, True, False),  # nobody else measures
        (1.0, 0.01, True, False, None, True),  # a report of GPUs, and processors that do nothing
        (0.0, 8.0, False, True, None, True),
        (0.0, 0.01, False, False, False, False),
        (0.0, 0.01, True, False, False, False),
        (1.0, 0.01, False, False, True, False),
        (1.0, 0.06, True, False, True, False),  # the processors are seen to work
        (None, 8.0, True, True, True, False),
        (None, 0.01, True, False, None, False),
        (None, None, True, True, None, False),
    ],
)
def test_a_report_of_work_resets_no_countdown_beside_a_measure_that_shows_none(
    gpu: float | None,
    cores: float | None,
    gpu_reported: bool,
    cores_reported: bool,
    works_: bool | None,
    claims: bool,
) -> None:
    told = {"gpu_reported": gpu_reported, "cores_reported": cores_reported}
    assert works(gpu, cores, **told) is works_
    assert claims_work(gpu, cores, **told) is claims


class Api:
    """Cluster's API with answers by path; an exception is raised."""

    def __init__(self) -> None:
        self.now, self.asked = 100.0, list[tuple[str, Mapping[str, str] | None]]()
        self.answers: dict[str, Any] = {}

    async def read(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        self.asked.append((path, query))
        answer = self.answers[path]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()


PODS = "/apis/metrics.k8s.io/v1beta1/pods"
OURS = {("mlp-red", "train-0"): ("u.0", 0), ("mlp-red", "train-1"): ("u.0", 1)}


def pod(name: str, cpu: str, memory: str, stamp: str = "1", namespace: str = "mlp-red") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "timestamp": stamp,
        "containers": [{"name": "rank", "usage": {"cpu": cpu, "memory": memory}}],
    }


def meter(api: Api, gpus: GpuMetrics | None = None) -> PodMeter:
    return PodMeter(cast("Any", api), "ours", lambda ns, name: OURS.get((ns, name)), gpus, lambda: api.now)


async def test_means_and_peaks_are_of_looks_and_one_measurement_counts_once() -> None:
    api = Api()
    made = meter(api)
    await made.look([])
    assert not api.asked, "without attempts nobody asks"
    for stamp, cpu, memory in (("1", "500m", "100Mi"), ("1", "500m", "100Mi"), ("2", "1500m", "300Mi")):
        api.answers[PODS] = {"items": [pod("train-0", cpu, memory, stamp), pod("theirs", "9", "9Gi")]}
        await made.look(["u.0"])
        api.now += EVERY_S
    assert api.asked[0] == (PODS, {"labelSelector": "ours"})
    assert made.use_of(("u.0", 0)) == PodUse(1.5, 300, 1.0, 1.5, 200, 300)
    assert made.use_of(("u.0", 1)) is None
    api.now += FRESH_S
    old = made.use_of(("u.0", 0))
    assert old is not None
    assert (old.cpu, old.ram, old.cpu_mean) == (None, None, 1.0)
    await made.look(["another"])
    assert made.use_of(("u.0", 0)) is None, "an attempt that is gone takes no memory"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[1]",
        b"\xff",
        {"items": None},
        {"items": [None, 7, {}, {"metadata": {"name": "train-0", "namespace": "mlp-red"}}]},
        {"items": [pod("train-0", "-1", "1Mi")]},
        {"items": [pod("train-0", "1e20", "1Mi")]},
        {"items": [pod("train-0", "much", "1Mi")]},
        {"items": [{**pod("train-0", "1", "1Mi"), "containers": []}]},
        {"items": [{**pod("train-0", "1", "1Mi"), "containers": "none"}]},
        ClusterUnreachable("host", "it is slow"),
        TimeoutError(),
    ],
)
async def test_an_answer_that_cannot_be_read_measures_nothing_and_ends_nothing(answer: object) -> None:
    api = Api()
    api.answers[PODS] = answer
    made = meter(api)
    await made.look(["u.0"])
    assert made.use_of(("u.0", 0)) is None
    api.answers[PODS] = {"items": [pod("train-0", "1", "1Mi")]}
    await made.look(["u.0"])
    assert made.use_of(("u.0", 0)) is not None


async def test_a_cluster_that_does_not_measure_is_asked_again_later() -> None:
    api = Api()
    api.answers[PODS] = ForbiddenError("list pods", 403, "Forbidden", "no", {})
    made = meter(api)
    await made.look(["u.0"])
    await made.look(["u.0"])
    assert len(api.asked) == 1
    api.now += ABSENT_S
    await made.look(["u.0"])
    assert len(api.asked) == 2


def series(percent: object, **labels: str) -> dict[str, Any]:
    return {"metric": labels, "value": [1.0, percent]}


def answer(*found: Any) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": found}}).encode()


def test_the_work_of_gpus_is_that_of_the_pod_which_has_them_in_both_ways_to_label_it() -> None:
    found = gpu_metrics.works(
        answer(
            series("40", namespace="mlp-red", pod="train-0"),
            series("55", namespace="gpu", pod="dcgm-x", exported_namespace="mlp-red", exported_pod="train-1"),
            series("70", namespace="mlp-red", pod="train-0"),
            series("90", namespace="gpu", pod="dcgm-x"),
        ),
        "mlp-",
    )
    assert found == {("mlp-red", "train-0"): 0.7, ("mlp-red", "train-1"): 0.55, ("gpu", "dcgm-x"): 0.9}


def test_series_that_a_tenants_pod_serves_in_the_exporters_name_are_not_believed() -> None:
    forged = series(
        "100", namespace="mlp-red", pod="liar", exported_namespace="mlp-red", exported_pod="train-0"
    )
    half = series("100", namespace="gpu", pod="dcgm-x", exported_pod="train-0")
    assert gpu_metrics.works(answer(forged, half), "mlp-") == {}


@pytest.mark.parametrize("percent", ["NaN", "+Inf", "-5", "101", "much", None, []])
def test_values_that_are_not_percent_are_left_out(percent: object) -> None:
    assert gpu_metrics.works(answer(series(percent, namespace="mlp-red", pod="train-0")), "mlp-") == {}


@pytest.mark.parametrize("text", [b"", b"[]", b'{"data": []}', b'{"data": {"result": {}}}', b"\xff"])
async def test_an_answer_of_another_program_measures_nothing(text: bytes) -> None:
    api = Api()
    source = GpuMetrics(cast("Any", api), "monitoring/prometheus:9090", "dcgm", "mlp-", lambda: api.now)
    api.answers[source.path] = text
    assert await source.read() == {}
    api.answers[source.path] = answer(series("7", namespace="mlp-red", pod="train-0"))
    assert await source.read() == {("mlp-red", "train-0"): 0.07}


async def test_prometheus_is_asked_through_the_api_server_for_series_of_the_exporter_alone() -> None:
    api = Api()
    source = GpuMetrics(cast("Any", api), "monitoring/prometheus:9090", 'a"}b\\d', "mlp-", lambda: api.now)
    assert source.path == ("/api/v1/namespaces/monitoring/services/prometheus:9090/proxy/api/v1/query")
    api.answers[source.path] = ClusterError("read", 500, "InternalError", "no endpoints", {})
    assert await source.read() == {}
    assert await source.read() == {}
    (path, query), *more = api.asked
    assert not more, "it is not asked again at once"
    assert path == source.path
    assert query is not None
    assert '{job=~"a\\"}b\\\\d"}' in query["query"]


async def test_a_measured_gpu_counts_until_the_look_is_old() -> None:
    api = Api()
    source = GpuMetrics(cast("Any", api), "monitoring/prometheus:9090", "dcgm", "mlp-", lambda: api.now)
    api.answers[PODS] = {"items": []}
    api.answers[source.path] = answer(series("30", namespace="mlp-red", pod="train-1"))
    made = meter(api, source)
    await made.look(["u.0"])
    assert (made.gpu_of(("u.0", 0)), made.gpu_of(("u.0", 1))) == (None, 0.3)
    assert made.use_of(("u.0", 1)) is None, "of its processors nothing is known"
    api.now += FRESH_S + 1
    assert made.gpu_of(("u.0", 1)) is None


def work(made: PodMeter, *ranks: int, over: tuple[int, ...] = ()) -> AttemptWorkMeter:
    pods = [SimpleNamespace(rank=rank, over=rank in over) for rank in ranks]
    cache = cast("Any", SimpleNamespace(pods=lambda _: pods))
    return AttemptWorkMeter(cache, cast("Any", None), made, cast("Any", None))


CLAIM = cast("Any", SimpleNamespace(attempt="u.0"))
TOLD = AttemptWork(1.0, 8.0, True, True)


async def test_a_gang_is_measured_where_each_of_its_pods_is() -> None:
    api = Api()
    made = meter(api)
    api.answers[PODS] = {"items": [pod("train-0", "10m", "1Mi")]}
    await made.look(["u.0"])
    assert work(made, 0).believed(CLAIM, TOLD) == AttemptWork(1.0, 0.01, True, False)
    assert work(made, 0, 1).believed(CLAIM, TOLD) == TOLD, "one of them is not measured"
    ended = work(made, 0, 1, over=(1,))
    assert ended.believed(CLAIM, TOLD) == AttemptWork(1.0, 0.01, True, False), (
        "a pod that ended hides nothing"
    )
    assert work(made).believed(CLAIM, TOLD) == TOLD


async def test_a_metrics_server_that_is_down_leaves_the_cluster_up() -> None:
    class Client:
        async def serves(self, kind: Kind) -> bool:
            if kind.group == "metrics.k8s.io" or kind == self.down:
                raise ClusterUnreachable("host", "the server is currently unable to handle the request")
            return True

        down: Kind | None = None

    client = Client()
    found = {need.kind.full_name for need in await served(cast("Any", client))}
    assert "mpijobs.kubeflow.org" in found
    assert not any("metrics" in name for name in found)
    client.down = MPI_JOBS
    with pytest.raises(ClusterUnreachable):
        await served(cast("Any", client))


@pytest.mark.parametrize(
    "service",
    ["monitoring", "monitoring/", "/prometheus", "a/b/c", "../secrets/x:1", "m/p:9090/proxy/..", "m/p?x=1", "M/P:1", "m/p:9 "],
)  # fmt: skip
def test_a_service_that_would_change_the_path_is_refused(service: str, tmp_path: Any) -> None:
    with pytest.raises(SettingsError, match="MLP_KUBERNETES_GPU_METRICS"):
        Settings.load({"MLP_STATE_DIR": str(tmp_path), "MLP_KUBERNETES_GPU_METRICS": service})
