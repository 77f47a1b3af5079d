"""How a scenario is read: what is left out, what is expanded, and what is said of every fault."""

from __future__ import annotations

import dataclasses
import json
import re
from itertools import islice

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.dimensions import DIMENSIONS
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.runtime.runtime import BUILT_IN
from mlp_hub.scheduler.model.types import Node, SchedulingPolicy, TenantQueue
from mlp_hub.scheduler.nodes.placement import TOPOLOGIES
from mlp_hub.scheduler.policy import POLICIES
from mlp_hub.simulate import forms
from mlp_hub.simulate.errors import ScenarioError
from mlp_hub.simulate.scenario import Cancel, JobLine, NodeDown, NodeUp, QuotaChange
from mlp_hub.simulate.scenario_reader import read, read_value

AMOUNTS = ", ".join(("amounts from 0 on of cpu, ram, gpu, gpu:KIND", *DIMENSIONS[3:]))
"""What a limit takes; a new dimension changes no test."""
WHOLE = """
version: 1
policy: {name: fair, half_life_s: 3600, backfill: true, preemption: true, placement: fgd, min_run_s: 0, restart_cost_s: 0, seed: 0}
flavors: [{name: default}]                      # optional; a flavor is a label selector over nodes
nodes:
  - {name: n, count: 4, cpu: 8, ram: 32768, gpu: 8, gpu_kind: a100, labels: {zone: z1, rack: r1}, taints: []}
tenants:                                        # a tenant without quota has what the nodes have
  - {name: red, parent: null, cohort: main, weight: 1, quota: {cpu: 20, ram: 65536, gpu: 8}, borrowing_limit: {cpu: 100}, lending_limit: {cpu: 10}, reserved: {}}
priorities: {high: 200, normal: 100, low: 50}
jobs:
  - {name: a, tenant: red, user: ann, submit: 0.0, duration: 200, workers: 4, cpu: 1, ram: 100, gpu: 0, gpu_kind: null,
     priority: normal, time_limit: null, estimate: null, runtime: mpi, topology: null, preemptible: true, checkpoint_every: null, count: 1, every: 0}
events:
  - {at: 100, node_down: n-3}
  - {at: 300, node_up: n-3}
  - {at: 50, tenant: red, quota: {cpu: 10}}
  - {at: 60, cancel: a}
until: null
"""


def scenario(jobs: str = "[{name: a}]", **more: str):
    parts = {"version": "1", "nodes": "[{name: n}]", "tenants": "[{name: red}]", "jobs": jobs, **more}
    return read("".join(f"{key}: {value}\n" for key, value in parts.items()))


def faults(jobs: str = "[{name: a}]", **more: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        scenario(jobs, **more)
    return [re.sub(r"^line \d+, (?!column)", "", fault) for fault in caught.value.faults]


def found_in(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        read(text)
    return list(caught.value.faults)


def job(text: str) -> JobLine:
    return scenario(f"[{{name: a, {text}}}]").jobs[0]


def test_the_whole_format_is_read() -> None:
    s = read(WHOLE)
    assert s.policy == SchedulingPolicy()
    assert s.nodes == tuple(
        Node(f"n-{i}", Resources(8000, 8000, 32768), gpu_kind="a100", labels={"zone": "z1", "rack": "r1"})
        for i in range(4)
    )
    assert s.tenants == (
        TenantQueue(
            "red",
            Quota(cpu=20_000, ram=65_536, gpu=8000),
            cohort="main",
            borrowing_limit=Quota(cpu=100_000),
            lending_limit=Quota(cpu=10_000),
        ),
    )
    assert s.jobs == (JobLine("a", "red", "ann", workers_min=4, workers_max=4),)
    assert s.events == (
        QuotaChange(50, "red", {"cpu": 10_000}),
        Cancel(60, "a"),
        NodeDown(100, "n-3"),
        NodeUp(300, "n-3"),
    )
    assert s.until is None


def test_json_and_yaml_read_alike() -> None:
    value = {
        "version": 1,
        "nodes": [{"name": "n", "cpu": 1.5}],
        "tenants": [{"name": "red", "quota": {"gpu:a100": 4}}],
        "jobs": [{"name": "a", "workers": "2:4", "topology": {"required": "rack"}}],
    }
    assert read(json.dumps(value)) == read_value(value)
    assert read(json.dumps(value, indent="\t")) == read_value(value)
    s = read_value(value)
    assert s.nodes[0].capacity.cpu == 1500
    assert s.tenants[0].quota.kinds == {"a100": 4000}
    assert (s.jobs[0].workers_min, s.jobs[0].workers_max, s.jobs[0].topology) == (2, 4, "required:rack")


def test_omitted_fields_have_defaults() -> None:
    s = scenario()
    assert s.nodes == (Node("n", Resources(8000, 0, 32768)),)
    assert s.tenants == (TenantQueue("red"),)
    assert s.jobs == (JobLine("a", "red"),)
    assert (s.policy, s.events, s.until) == (SchedulingPolicy(), (), None)
    assert s.priorities == {"high": 200, "normal": 100, "low": 50}


def test_an_unquoted_range_of_workers_is_a_range_and_no_number_of_base_60() -> None:
    line = job("workers: 2:4")
    assert (line.workers_min, line.workers_max) == (2, 4)


def test_words_that_older_yaml_takes_for_truth_values_are_names() -> None:
    s = scenario("[{name: on, tenant: no}]", tenants="[{name: no}]")
    assert (s.jobs[0].name, s.jobs[0].tenant) == ("on", "no")


def test_a_count_of_nodes_numbers_them_and_none_leaves_the_name() -> None:
    s = scenario(nodes="[{name: n, count: 2}, {name: m}, {name: k, count: 1}]")
    assert [n.name for n in s.nodes] == ["n-0", "n-1", "m", "k-0"]


def test_a_count_of_jobs_numbers_them_and_every_sets_them_apart() -> None:
    s = scenario("[{name: a, count: 3, every: 2, submit: 1}, {name: b, submit: 3, count: 1}]")
    assert [(j.at, j.name) for j in s.submissions()] == [(1, "a-0"), (3, "a-1"), (3, "b"), (5, "a-2")]
    assert s.number_of_jobs == 4


def test_jobs_submitted_together_come_in_the_order_of_the_file() -> None:
    s = scenario("[{name: z, count: 12}, {name: a, count: 2}]")
    assert [j.name for j in s.submissions()] == [f"z-{i}" for i in range(12)] + ["a-0", "a-1"]


def test_many_jobs_are_made_as_they_are_needed_and_a_million_are_refused() -> None:
    s = scenario("[{name: a, count: 250000, every: 0.1}]")
    assert [j.name for j in islice(s.submissions(), 2)] == ["a-0", "a-1"]
    assert faults("[{name: a, count: 249999}, {name: b, count: 750001}]") == [
        "jobs: these lines make 1000000 jobs; the most is 250000, so simulate a part of them"
    ]


def test_priorities_are_added_to_the_three_that_are_there() -> None:
    s = scenario("[{name: a, priority: urgent}]", priorities="{urgent: 500, low: 1}")
    assert s.priorities == {"high": 200, "normal": 100, "low": 1, "urgent": 500}


def test_a_job_without_tenant_belongs_to_default_or_the_only_one() -> None:
    assert scenario().jobs[0].tenant == "red"
    assert scenario(tenants="[{name: red}, {name: default}]").jobs[0].tenant == "default"
    assert faults(tenants="[{name: red}, {name: blue}]") == [
        "jobs[0].tenant: is missing, and there is none called default; choose one of blue, red"
    ]


def test_a_flavor_names_the_gpus_of_the_nodes_that_it_selects() -> None:
    s = scenario(
        flavors="[{name: all}, {name: fast, labels: {disk: ssd}}]",
        nodes="[{name: n, gpu: 1, labels: {disk: ssd}}, {name: m, labels: {disk: ssd}}, {name: k, gpu: 1, gpu_kind: x, labels: {disk: ssd}}]",
    )
    assert [n.gpu_kind for n in s.nodes] == ["fast", None, "x"]


def test_an_event_changes_the_limits_that_it_names_and_null_takes_one_away() -> None:
    s = scenario(events='[{at: 1, tenant: red, quota: {cpu: 2.5, "gpu:a100": 1, ram: null}}]')
    assert s.events == (QuotaChange(1, "red", {"cpu": 2500, "gpu:a100": 1000, "ram": None}),)


def test_another_policy_may_be_tried() -> None:
    assert scenario().with_policy("fifo").policy == SchedulingPolicy(name="fifo")


@pytest.mark.parametrize("topology", [*TOPOLOGIES, "required:zone", "preferred:rack"])
def test_every_topology_is_read(topology: str) -> None:
    assert job(f"topology: {topology}").topology == topology


def test_runtimes_are_those_of_the_platform() -> None:
    assert set(forms.RUNTIMES) == set(BUILT_IN)


def test_every_default_of_a_policy_is_that_of_the_hub() -> None:
    defaults = SchedulingPolicy()
    assert msgspec.structs.asdict(forms.PolicyForm()) == dataclasses.asdict(defaults)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("cpuu: 1", "jobs[0].cpuu: there is no such key here; did you mean cpu?"),
        ("cpu: -1", "jobs[0].cpu: -1 is wrong here; it takes cores from 0 on"),
        ("cpu: .nan", "jobs[0].cpu: nan is wrong here; it takes cores from 0 on"),
        ("duration: .inf", "jobs[0].duration: inf is too much; the most is 1000000000000"),
        ("duration: -.inf", "jobs[0].duration: -inf is wrong here; it takes seconds from 0 on"),
        ("duration: '5'", 'jobs[0].duration: "5" is wrong here; it takes seconds from 0 on'),
        ("duration: null", "jobs[0].duration: null is wrong here; it takes seconds from 0 on"),
        ("submit: true", "jobs[0].submit: true is wrong here; it takes seconds from 0 on"),
        ("submit: 1e15", "jobs[0].submit: 1000000000000000 is too much; the most is 1000000000000"),
        ("ram: 0.5", "jobs[0].ram: 0.5 is wrong here; it takes MiB, a whole number from 0 on"),
        ("gpu: 0.0001", "jobs[0].gpu: 0.0001 is below a thousandth, the least amount there is"),
        ("time_limit: 0", "jobs[0].time_limit: 0 is wrong here; it takes seconds above 0"),
        ("count: 0", "jobs[0].count: 0 is wrong here; it takes a whole number above 0"),
        (
            "workers: 0",
            'jobs[0].workers: 0 is wrong here; it takes a whole number above 0, as 4, or a range, as "2:4"',
        ),
        ("workers: '4:2'", 'jobs[0].workers: "4:2" has its least above its most; write "2:4"'),
        ("workers: '0:2'", 'jobs[0].workers: "0:2" begins below 1; a job has at least one worker'),
        (
            "workers: '2-4'",
            'jobs[0].workers: "2-4" is wrong here; it takes a whole number above 0, as 4, or a range, as "2:4"',
        ),
        (
            "workers: 1.5",
            'jobs[0].workers: 1.5 is wrong here; it takes a whole number above 0, as 4, or a range, as "2:4"',
        ),
        ("tenant: rad", "jobs[0].tenant: there is no tenant rad; did you mean red?"),
        ("priority: hig", 'jobs[0].priority: "hig" is unknown; choose one of high, normal, low'),
        ("runtime: spark", 'jobs[0].runtime: "spark" is wrong here; it takes one of mpi, tf, torch, plain'),
        ("preemptible: 1", "jobs[0].preemptible: 1 is wrong here; it takes true or false"),
        ("user: 5", 'jobs[0].user: 5 is wrong here; it takes text, in quotes as "5"'),
        (
            "topology: {require: rack}",
            "jobs[0].topology: a mapping is unknown; write same-node, same-rack, same-zone, spread, "
            "{required: LABEL} or {preferred: LABEL}",
        ),
    ],
)
def test_an_invalid_value_of_a_job_is_named_with_a_valid_one(line: str, fault: str) -> None:
    assert faults(f"[{{name: a, {line}}}]") == [fault]


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        ({"version": "2"}, "version: 2 is wrong here; it takes 1"),
        ({"version": "true"}, "version: true is wrong here; it takes 1"),
        ({"polcy": "{}"}, "polcy: there is no such key here; did you mean policy?"),
        (
            {"policy": "{name: fare}"},
            f'policy.name: "fare" is wrong here; it takes one of {", ".join(POLICIES)}',
        ),
        ({"policy": "fair"}, 'policy: "fair" is no mapping; write its keys as in {name: ...}'),
        ({"until": "-1"}, "until: -1 is wrong here; it takes seconds from 0 on"),
        ({"nodes": "{}"}, "nodes: a mapping is wrong here; it takes a list, [] for none"),
        ({"nodes": ""}, "nodes: null is wrong here; it takes a list, [] for none"),
        ({"nodes": "[5]"}, "nodes[0]: 5 is no mapping; write its keys as in {name: ...}"),
        ({"nodes": "[{cpu: 1}]"}, "nodes[0].name: is missing: its name; with `count`, its names begin so"),
        (
            {"nodes": "[{name: n, count: 2}, {name: n-1}]"},
            "nodes[1].name: there is a node n-1 already; give this one another name",
        ),
        (
            {"nodes": "[{name: n, gpu: 0.5}]"},
            "nodes[0].gpu: 0.5 is wrong here; it takes a whole number from 0 on",
        ),
        (
            {"nodes": "[{name: n, count: 300000}]"},
            "nodes[0].count: 300000 is too much; the most is 200000",
        ),
        (
            {"nodes": "[{name: n, taints: [1]}]"},
            "nodes[0].taints: a list is wrong here; it takes a list of text",
        ),
        (
            {"nodes": "[{name: n, labels: {rack: [1]}}]"},
            "nodes[0].labels.rack: a list is wrong here; it takes a mapping of text",
        ),
        (
            {"tenants": "[{name: red}, {name: red}]"},
            "tenants[1].name: there is a tenant red already, at tenants[0]; give it another name",
        ),
        (
            {"tenants": "[{name: red, parent: bleu}, {name: blue}]"},
            "tenants[0].parent: there is no tenant bleu; did you mean blue?",
        ),
        (
            {"tenants": "[{name: red, parent: blue}, {name: blue, parent: red}]"},
            "tenants[0].parent: the tree goes round in a circle: red > blue > red",
        ),
        (
            {"tenants": "[{name: red, quota: {cpus: 1}}]"},
            f"tenants[0].quota.cpus: 1 is wrong here; it takes {AMOUNTS}",
        ),
        (
            {"tenants": "[{name: red, lending_limit: {gpu:a100: -1}}]"},
            f"tenants[0].lending_limit.gpu:a100: -1 is wrong here; it takes {AMOUNTS}",
        ),
        (
            {"priorities": "{high: x}"},
            'priorities.high: "x" is wrong here; it takes a mapping of whole numbers from 0 on',
        ),
        (
            {"events": "[{at: 1}]"},
            "events[0]: says nothing that happens; write one of node_down, node_up, cancel, or tenant with quota",
        ),
        (
            {"events": "[{at: 1, node_up: n, cancel: a}]"},
            "events[0]: says node_up and cancel; write one of node_down, node_up, cancel, or tenant with quota",
        ),
        ({"events": "[{node_up: n}]"}, "events[0].at: is missing: when"),
        ({"events": "[{at: 1, node_down: m}]"}, "events[0].node_down: there is no node m; there is n"),
        ({"events": "[{at: 1, cancel: b}]"}, "events[0].cancel: there is no job b; there is a"),
        ({"events": "[{at: 1, tenant: red}]"}, "events[0].quota: is missing"),
        ({"events": "[{at: 1, cancel: a, quota: {}}]"}, "events[0].quota: goes with tenant only"),
        ({"events": "[{at: 1, cancel: null}]"}, "events[0].cancel: is null; write a name"),
    ],
)
def test_a_fault_anywhere_else_is_named_with_its_place(parts: dict[str, str], fault: str) -> None:
    assert faults(**({"jobs": "[]"} if "tenants" in parts else {}), **parts)[0] == fault


def test_a_fault_of_yaml_has_its_line_and_one_of_json_its_place_alone() -> None:
    block = "version: 1\nnodes: []\ntenants:\n- name: red\n  quota:\n    cpu: -1\n  wieght: 1\njobs: []\n"
    assert found_in(block) == [
        "line 7, tenants[0].wieght: there is no such key here; did you mean weight?",
        f"line 5, tenants[0].quota.cpu: -1 is wrong here; it takes {AMOUNTS}",
    ]
    assert found_in('{"version": 2, "nodes": [], "tenants": [], "jobs": []}') == [
        "version: 2 is wrong here; it takes 1"
    ]


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert job("ram: 256.0, workers: 2.0").per_worker.ram == 256


@pytest.mark.parametrize(
    ("tenant", "fault"),
    [
        (
            "quota: {cpu: 4}, reserved: {cpu: 5}",
            "reserved.cpu: is 5, and the quota of tenant red is 4; it cannot reserve more than it has, so give 4 at most",
        ),
        (
            "cohort: main, quota: {cpu: 4, ram: 100}, lending_limit: {cpu: 4, ram: 101}",
            "lending_limit.ram: is 101, and the quota of tenant red is 100; it cannot lend more than it has, so give 100 "
            "at most",
        ),
        (
            "quota: {gpu: 2}, reserved: {gpu:a100: 2.5}",
            "reserved.gpu:a100: is 2.5, and the quota of tenant red is 2; it cannot reserve more than it has, so give 2 at most",
        ),
    ],
)
def test_a_tenant_neither_lends_nor_reserves_more_than_it_has(tenant: str, fault: str) -> None:
    assert faults("[]", tenants=f"[{{name: red, {tenant}}}]") == [f"tenants[0].{fault}"]


@pytest.mark.parametrize(
    "tenant",
    [
        "reserved: {cpu: 5}",
        "quota: {cpu: null}, reserved: {cpu: 5}",
        "quota: {ram: 1}, reserved: {cpu: 5}, lending_limit: {cpu: 9}",
        "quota: {cpu: 5, gpu: 2, gpu:a100: 3}, reserved: {cpu: 5, gpu:a100: 3}, lending_limit: {cpu: 5}",
    ],
)
def test_where_it_has_no_quota_what_it_lends_or_reserves_has_no_limit(tenant: str) -> None:
    assert scenario("[]", tenants=f"[{{name: red, {tenant}}}]").tenants[0].name == "red"


def test_a_quota_that_later_falls_below_the_lending_limit_is_not_a_fault() -> None:
    tenants = "[{name: red, cohort: main, quota: {cpu: 4}, lending_limit: {cpu: 4}}]"
    assert scenario("[]", tenants=tenants, events="[{at: 1, tenant: red, quota: {cpu: 2}}]").events


def test_workers_are_bounded_of_one_job_and_of_all_together_whatever_they_ask_for() -> None:
    nothing = "cpu: 0, ram: 0"
    assert faults(f"[{{name: a, workers: 100001, {nothing}}}]") == [
        "jobs[0].workers: 100001 is too much; the most is 100000"
    ]
    assert faults(f'[{{name: a, workers: "1:100001", {nothing}}}]') == [
        "jobs[0].workers: 100001 is too much; the most is 100000"
    ]
    assert scenario(f"[{{name: a, workers: 100000, count: 100, {nothing}}}]").number_of_jobs == 100
    many = f'[{{name: a, workers: "2:100000", count: 100, {nothing}}}, {{name: b, workers: 3, {nothing}}}]'
    assert faults(many) == [
        "jobs: these lines make 10000003 workers, 10000000 of them the line a; the most of all jobs together is 10000000, "
        "so simulate a part of them"
    ]


def test_a_job_of_a_line_is_cancelled_by_its_own_name() -> None:
    line = "[{name: a, count: 3}]"
    assert scenario(line, events="[{at: 1, cancel: a-2}]").events == (Cancel(1, "a-2"),)
    assert faults(line, events="[{at: 1, cancel: a}]") == [
        "events[0].cancel: a makes 3 jobs; name one, as in a-0"
    ]
    assert len(faults(line, events="[{at: 1, cancel: a-3}]")) == 1
    assert len(faults(line, events="[{at: 1, cancel: a-02}]")) == 1


def test_a_name_that_a_counted_line_makes_too_is_a_fault() -> None:
    assert faults("[{name: a, count: 3}, {name: a-2}]") == [
        "jobs[1].name: the line a makes a job a-2 too; give this one another name"
    ]
    assert scenario("[{name: a, count: 3}, {name: a-3}]").number_of_jobs == 4


def test_all_faults_are_told_at_once_up_to_twenty() -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario("[" + ", ".join(f"{{name: a{i}, cpu: -1}}" for i in range(30)) + "]")
    assert len(caught.value.faults) == 20
    assert caught.value.more == 10
    assert str(caught.value).endswith("\nand 10 more")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "a scenario is a mapping that begins with `version: 1`; this is empty"),
        ("[]", "a scenario is a mapping that begins with `version: 1`; this is a list"),
        ("version: 1\nversion: 1\n", "line 2, column 1: the key version is given twice here; give it once"),
        ('{"version": 1, "version": 1}', "line 1, column 16: the key version is given twice here; give it once"),
        ("a: [1\nb: 2\n", "line 2, column 2: this is neither YAML nor JSON: while parsing a flow sequence did not find expected ',' or ']'"),
        ("--- 1\n--- 2\n", "line 2, column 1: this is neither YAML nor JSON: expected a single document in the stream but found another document"),
        ("a: !!python/name:os.system x\n", "line 1, column 4: tags like tag:yaml.org,2002:python/name:os.system are not known here; leave it out"),
        ("a: *b\n", "line 1, column 4: this is neither YAML nor JSON: found undefined alias"),
        ("? [1]\n: 2\n", "line 1, column 3: a list or a mapping cannot be a key"),
        ("[" * 100_000, "line 1, column 32: this is nested more than 32 deep, which no scenario is"),
        ("\x00", 'this is neither YAML nor JSON: unacceptable character #x0000: control characters are not allowed in "<unicode string>", position 0'),
    ],
)  # fmt: skip
def test_text_that_is_not_a_scenario_is_refused_with_the_line(text: str, fault: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(text)
    assert caught.value.faults == (fault,)


def test_a_value_that_grows_by_aliases_is_never_written_out() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{b}: &{b} [*{a}, *{a}]\n"
        for a, b in zip("abcdefghijklmnopqrst", "bcdefghijklmnopqrstu", strict=True)
    )
    with pytest.raises(ScenarioError) as caught:
        read(bomb + "version: *u\n")
    assert len(str(caught.value)) < 5000


def test_names_and_numbers_of_any_length_make_short_messages() -> None:
    for value in ("9" * 4000, "x" * 4000):
        assert all(len(fault) < 300 for fault in faults(f"[{{name: a, priority: {value}, cpu: {value}}}]"))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.sampled_from(["n", "red", "a", "2:4", "", "gpu:x", "fair"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(sorted({k.encode_name for form in forms.SECTIONS.values() for k, _ in forms.keys_of(form)})), inner, max_size=8
    ),
    max_leaves=30,
)  # fmt: skip


@given(
    st.fixed_dictionaries(dict.fromkeys(("version", "nodes", "tenants", "jobs", "events", "policy"), VALUES))
)
def test_whatever_is_given_it_is_read_or_every_fault_has_its_place(value: dict[str, object]) -> None:
    found: tuple[str, ...] | None = None
    try:
        read_value(value)
    except ScenarioError as error:
        found = error.faults
    assert found is None or (found and all(": " in fault for fault in found))
