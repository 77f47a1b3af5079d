"""What may be a tenant's runtime: each refusal names the value and the way out."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from mlp_api.jobs.runtimes import RuntimeUpdate
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.runtime.runtime import BUILT_IN, Runtime, misfit, roles_of
from mlp_hub.executors.base import CannotStart
from mlp_hub.executors.rank_commands import Command, GangShape, build
from mlp_hub.service.tenants.runtime_rules import runtime_from, runtime_to
from mlp_hub.store.records import StoredRuntime
from mlp_hub.store.repos.tenants.runtimes import Runtimes
from mlp_language.catalogue import LANGUAGES
from mlp_language.render import Reader

CHIEF = [{"name": "chief", "count": 1}, {"name": "worker"}]


def described(**fields: Any) -> RuntimeUpdate:
    return msgspec.convert({"title": "Mine", **fields}, RuntimeUpdate)


def made(**fields: Any) -> Runtime:
    return runtime_from("red", "mine", described(**fields))


def shape(workers: int, ps: int = 0) -> GangShape:
    return GangShape(Command(("/py", "-u"), "/home/ann/x.py", ("--a", "{rank}")), workers, ps, "/py")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"program": ["{prog}"]}, r"\{prog\} does not exist; available are \{python\}, \{bin\}, \{entry\}"),
        ({"program": ["{program}", "{0}"]}, "has a { outside of a placeholder; write {{ for a brace"),
        ({"program": ["{program}", "{a.__class__}"]}, "has a { outside of a placeholder"),
        ({"program": ["{program}", "{rank!r:>99999999}"]}, "has a { outside of a placeholder"),
        ({"program": ["{program}", "x}"]}, "write }} for a brace"),
        ({"program": ["--all={program}"]}, "stands for several arguments, so it must be an argument alone"),
        ({"program": ["{program}", "{start_rank}"]}, "{start_rank} cannot be used here"),
        ({"program": ["{program}", "{rank.ps}"]}, "only hosts and count are known by role"),
        ({"program": ["{program}", "{hosts.ps}"]}, "role ps does not exist; roles are worker"),
        ({"program": ["sleep", "60"]}, "the job's program would never run"),
        ({"program": ["{program}", "a\0b"]}, "control character"),
        ({"program": ["{program}", "a\nb"]}, "control character"),
        ({"env": {"MLP_TENANT": "blue"}}, "names that begin with MLP_ belong to the platform"),
        ({"rank_env": "MLP_RANK"}, "names that begin with MLP_ belong to the platform"),
        ({"env": {"A": "{args}"}}, "env A: {args} cannot be used here"),
        ({"env": {"A": "{x}"}}, r"env A: \{x\} does not exist"),
        ({"launcher": ["torchrun"]}, "{start_rank} is missing; it starts each rank"),
        ({"launcher": ["{start_rank}", "{rank}"]}, "has a placeholder of a single rank"),
        ({"image": "evil:latest"}, "this hub starts no containers"),
        ({"roles": [{"name": "worker"}, {"name": "worker", "count": 1}]}, "names one twice"),
        ({"roles": [{"name": "worker"}, {"name": "other"}]}, "2 have no count"),
        ({"roles": [{"name": "worker", "count": 2}]}, "0 have no count"),
        ({"roles": [{"name": "ps"}, {"name": "worker"}]}, "ps must be last and without a count"),
        ({"roles": [{"name": "worker"}, {"name": "ps", "count": 2}]}, "ps must be last and without a count"),
        ({"ends_with": "boss"}, "name one of worker"),
    ],
)
def test_an_invalid_runtime_is_refused_with_a_valid_form(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(Refused) as caught:
        made(**fields)
    assert says.replace("\\", "") in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"program": "{program}; rm -rf /"},
        {"program": []},
        {"program": ["{program}"] * 65},
        {"program": ["x" * 1001]},
        {"env": {f"A{n}": "x" for n in range(65)}},
        {"env": {"A=B": "x"}},
        {"roles": [{"name": f"r{n}"} for n in range(9)]},
        {"roles": []},
        {"roles": [{"name": "worker", "count": 0}]},
        {"roles": [{"name": "worker", "count": 1001}]},
        {"roles": [{"name": "../x"}]},
        {"needs": "os.path"},
        {"needs": "../../evil"},
        {"needs": "*"},
        {"success": [999]},
        {"linger_s": 1e9},
        {"title": "a\nb"},
        {"title": "x" * 61},
        {"abort": "(a+)+$"},
        {"module": "mpi4py"},
        {"state": "approved"},
        {"tenant": None},
    ],
)
def test_a_description_of_the_wrong_form_or_size_is_rejected(fields: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        described(**fields)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("field", "name", "fields"),
    [
        ("name", "mpi", {}),
        ("program", "mine", {"program": ["{prog}"]}),
        ("program", "mine", {"roles": [{"name": "worker", "program": ["{prog}"]}]}),
        ("env", "mine", {"env": {"A": "{x}"}}),
        ("launcher", "mine", {"launcher": ["torchrun"]}),
        ("roles", "mine", {"roles": [{"name": "worker", "count": 2}]}),
        ("ends_with", "mine", {"ends_with": "boss"}),
    ],
)
def test_refusals_begin_with_the_field_in_every_language_as_the_form_wants_it(
    language: str, field: str, name: str, fields: dict[str, Any]
) -> None:
    with pytest.raises(Refused) as caught:
        runtime_from("red", name, described(**fields))
    assert re.match(rf"{field}\b", caught.value.text(Reader(language)), re.ASCII)


@pytest.mark.parametrize("name", BUILT_IN)
def test_names_of_the_platforms_runtimes_are_nobody_elses(name: str) -> None:
    with pytest.raises(Refused, match=f"{name} is a runtime of the platform"):
        runtime_from("red", name, described())


def test_each_rank_finds_its_own_place_and_all_roles_know_each_other() -> None:
    runtime = made(
        roles=[*CHIEF, {"name": "ps", "program": ["serve", "{entry}", "{port}"]}],
        program=["{python}", "{entry}", "{args}", "{role}:{role_rank}/{count.worker}", "{hosts.ps}"],
        env={"RANK_IS": "{rank} of {world_size}", "SAME": "{master}:{master_port}"},
    )
    started = build(runtime, shape(3, 1))
    assert started.ranks.roles == ("chief", "worker", "worker", "ps") == roles_of(runtime, 3, 1)
    python, args = ("/py", "/home/ann/x.py"), ("--a", "{rank}")  # what the user wrote is not looked at again
    assert started.ranks.programs == (
        (*python, *args, "chief:0/2", "127.0.0.1:20003"),
        (*python, *args, "worker:0/2", "127.0.0.1:20003"),
        (*python, *args, "worker:1/2", "127.0.0.1:20003"),
        ("serve", "/home/ann/x.py", "20003"),
    )
    assert [env["RANK_IS"] for env in started.ranks.envs] == [f"{rank} of 4" for rank in range(4)]
    assert started.env == {"SAME": "127.0.0.1:20000"}
    assert (started.ranks.leader, started.ranks.success) == (None, (0,))


def test_fixed_roles_are_part_of_the_workers_that_were_asked_for_and_never_more() -> None:
    runtime = made(roles=[{"name": "chief", "count": 5}, {"name": "worker"}])
    assert len(roles_of(runtime, 7, 0)) == 7
    assert str(misfit(runtime, 5, 0)) == (
        "runtime mine starts 5 chief and at least 1 worker: ask for --workers 6 or more, not 5"
    )
    assert misfit(runtime, 6, 0) is None
    with pytest.raises(CannotStart, match="--workers 6"):
        build(runtime, shape(3))


def test_a_list_of_all_hosts_in_each_of_very_many_ranks_is_refused_before_it_is_made() -> None:
    runtime = made(program=["{program}", *["{hosts}{rank}"] * 60])
    with pytest.raises(CannotStart, match="ask for fewer ranks"):
        build(runtime, shape(9000))


def test_a_stored_runtime_is_the_one_that_was_described() -> None:
    asked = described(
        roles=CHIEF,
        env={"A": "{rank}"},
        needs="dask",
        ends_with="chief",
        success=[3],
        launcher=["x", "{start_rank}"],
    )
    runtime = runtime_from("red", "mine", asked)
    stored = StoredRuntime(runtime, "rita", 5.0)
    row = type("Row", (), Runtimes.rows.row(stored))
    assert Runtimes.rows.of(row) == stored
    shown = runtime_to(runtime, stored)
    again = {f: getattr(shown, f) for f in RuntimeUpdate.__struct_fields__}
    assert msgspec.convert(msgspec.to_builtins(again), RuntimeUpdate) == msgspec.structs.replace(
        asked, success=[0, 3]
    )


IMAGES = [
    "busybox",
    "registry.example.org:5000/team/train-x:1.0",
    "ghcr.io/a/b_c/d.e@sha256:" + "0a" * 32,
]


@pytest.mark.parametrize("image", IMAGES)
def test_where_ranks_run_in_containers_a_runtime_names_their_image(image: str) -> None:
    assert runtime_from("red", "mine", described(image=image), images=True).image == image


@pytest.mark.parametrize(
    "image", ["", " x", "x y", "Train", "a//b", "a:", "-a", "x@sha256:12", "a:b:c", "x\ny", "$(id)", "../x"]
)
def test_an_invalid_image_of_a_runtime_is_refused_with_a_valid_form(image: str) -> None:
    with pytest.raises(Refused, match="HOST/NAME:TAG"):
        runtime_from("red", "mine", described(image=image), images=True)
