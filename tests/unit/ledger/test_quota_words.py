from __future__ import annotations

from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.service.quota import accounting


def test_a_request_that_does_not_fit_now_is_refused_with_the_holders_and_the_way_out(bench) -> None:
    bench.held("ann", applier="sp", cpu=0.2, ram=1024, user="ann")
    bench.now += 1
    bench.held("d.0", cpu=1, ram=512, holder="job digits of bob")
    assert bench.refusal("x", cpu=1) == (
        "WaitingForQuota: red may use 2 cpu; 1.2 in use by the notebook server of ann and job digits of bob; this request asks for 1. Ask for at most 0.8 cpu, wait until used quota is given back, or have the quota of red raised"
    )
    bench.now += 1
    bench.held("y", cpu=0.8, holder="job x of ann")
    assert bench.refusal("x", cpu=1) == (
        "WaitingForQuota: red may use 2 cpu; 2 in use by the notebook server of ann, job digits of bob and job x of ann; this request asks for 1. Wait until used quota is given back, or have the quota of red raised"
    )


def test_a_request_that_can_never_fit_is_refused_with_the_limit(bench) -> None:
    assert bench.refusal("x", cpu=3, ram=8000) == (
        "ExceedsMaxQuota: red may use 2 cpu and 4096 MiB ram. This request asks for 3 cpu and 8000 MiB ram and can never start. Ask for at most 2 cpu and 4096 MiB ram, or have the quota of red raised"
    )


def test_storage_is_told_in_gib_and_by_its_name(bench) -> None:
    bench.tenant("green", rom=252 * 2**30)
    assert bench.refusal("x", tenant="green", rom=300 * 2**30) == (
        "ExceedsMaxQuota: green may use 252 GiB storage. This request asks for 300 GiB storage and can never start. Ask for at most 252 GiB storage, or have the quota of green raised"
    )


def test_a_tenant_without_quota_has_what_the_nodes_have(bench, make_node) -> None:
    bench.tenant("blue")
    bench.nodes = [make_node("n1"), make_node("n2", up=False)]
    bench.held("a", tenant="blue", cpu=8, rom=10**15)
    said = bench.refusal("b", tenant="blue", cpu=9)
    assert "blue may use 8 cpu, which is all that the nodes have" in said
    assert "no quota makes the nodes larger" in said
    assert "raised" not in said


def test_a_notebook_is_refused_where_no_node_has_the_room(bench, make_node) -> None:
    bench.tenant("red")
    bench.nodes = [make_node("n1", ram=4096), make_node("n2", ram=2048)]
    assert bench.refusal("a", applier="sp", ram=5000) == (
        "ExceedsMaxQuota: no node can hold 5000 MiB ram, which can never start: n1 has 4 cpu and 4096 MiB ram and "
        "n2 has 4 cpu and 2048 MiB ram. Ask for less"
    )
    bench.held("ann", applier="sp", ram=3000, user="ann")
    assert bench.refusal("bob", applier="sp", ram=2500) == (
        "WaitingForResources: no node has room for 2500 MiB ram now: n1 has 4 cpu and 1096 MiB ram free and "
        "n2 has 4 cpu and 2048 MiB ram free. Ask for less, or wait until something ends"
    )
    assert "node n9 does not exist" in bench.refusal("bob", applier="sp", ram=100, node="n9")


def test_a_notebook_goes_to_the_node_that_it_fills_best(bench, make_node) -> None:
    bench.tenant("red")
    bench.nodes = [make_node("n1"), make_node("n2", ram=2048), make_node("n3", ram=1024, up=False)]
    assert bench.try_("a", applier="sp", ram=1024).node == "n2"
    assert bench.try_("b", applier="sp", ram=2048).node == "n1"
    assert bench.try_("c", applier="sp", ram=512, node="n1").shares == (("n1", Resources(ram=512)),)
    bench.nodes = [make_node("n1", up=False)]
    assert "no node is up" in bench.refusal("d", applier="sp", ram=512)


def test_a_gpu_kind_that_is_not_here_is_told_with_those_that_are(bench, make_node) -> None:
    bench.nodes = [make_node(gpu=2000, gpu_kind="a100")]
    bench.tenant("red")
    assert bench.refusal("x", gpu=1, gpu_kind="h100") == (
        "ExceedsMaxQuota: no node has a h100 GPU; the kinds of GPU are: a100"
    )
    bench.held("y", gpu=2, gpu_kind="a100", holder="job y of ann")
    assert "2 in use by job y of ann" in bench.refusal("x", gpu=1, gpu_kind="a100")


def test_a_quota_below_its_use_stops_only_work_that_needs_that_resource(bench) -> None:
    bench.held("a", ram=4096)
    bench.tenant("red", cpu=2000, ram=1024)
    bench.held("b", cpu=1)
    assert "red may use 1024 MiB ram; 4096 in use by job manager request a" in bench.refusal("c", ram=512)


def test_limits_are_the_tenants_own_or_those_of_the_nodes(make_node) -> None:
    from mlp_hub.domain.tenants.tenant import Tenant

    nodes = [make_node(gpu=1000, gpu_kind="a"), make_node("n2", gpu=2000, gpu_kind="b")]
    tenant = Tenant("t", Quota(ram=5, kinds={"a": 500}))
    assert accounting.limits(tenant, nodes) == Quota(8000, 3000, 5, None, {"a": 500, "b": 2000})
