"""Magic, Python, command, and the schemas of REST say the same."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

import msgspec
import pytest

import mlp
from mlp.cli import main
from mlp.commands.actions import SIMPLE
from mlp.commands.completion import SCRIPTS, complete
from mlp.errors import UsageError
from mlp.grammar.help_text import overview, usage
from mlp.grammar.job_options import BY_NAME, OFFER, SHAPE, SUBMIT, WITH, default_runtime
from mlp.grammar.parsing import parse
from mlp.grammar.query_options import STATES
from mlp.grammar.verbs import COMMAND, MAGIC, VERBS, find, options_of
from mlp_api.jobs.jobs import JobCreate, JobShape, OfferQuery
from mlp_hub.domain.dimensions import COUNTED as DIMENSIONS_COUNTED
from mlp_hub.domain.jobs.job import Phase, State
from mlp_hub.domain.runtime import runtime as service_runtimes

HERE_ONLY = {"wait", "detach", "dry_run", "array"}
SAMPLES = Path(mlp.__file__).parent / "samples"
VALUES = {
    "runtime": "tf", "workers": "2:4", "cpu": "0.5", "gpu": "1", "gpu_kind": "a100", "ram": "2G", "ps": "1",
    "tenant": "red", "priority": "high", "time_limit": "1h30m", "retries": "2", "checkpoint_every": "10m",
    "topology": "spread", "tensorboard": "off", "env": "A=b", "params": "lr=0.1", "data": "digits:train", "workdir": "src", "name": "digits",
}  # fmt: skip


def test_the_table_holds_exactly_what_the_service_takes():
    fields = {f.name for f in msgspec.structs.fields(JobCreate)}
    counted = set(DIMENSIONS_COUNTED)
    assert {o.name for o in SUBMIT if o.amount} == counted
    assert {o.name for o in SUBMIT if o.wire} == fields - {
        "entry",
        "code",
        "args",
        "provenance",
        "amounts",
    } | counted
    assert {o.name for o in SUBMIT if not o.wire} == HERE_ONLY


def test_defaults_are_those_of_the_schema():
    defaults = {f.name: f.default for f in msgspec.structs.fields(JobCreate)}
    for option in SUBMIT:
        if option.wire and not option.amount and option.name not in {"name", "env", "data", "params"}:
            assert option.default == defaults[option.name], option.name


def test_an_offer_takes_exactly_what_the_service_takes():
    fields = {f.name for f in msgspec.structs.fields(JobShape)}
    assert {o.name for o in SHAPE} == fields - {"amounts"} | set(DIMENSIONS_COUNTED)
    asked = {f.name for f in msgspec.structs.fields(OfferQuery)}
    assert {o.name for o in OFFER} == asked - {"amounts"} | set(DIMENSIONS_COUNTED)


def test_magic_command_and_python_take_the_same_options():
    magic = {o.name for o in options_of(find("submit", MAGIC), MAGIC)}
    command = {o.name for o in options_of(find("submit", COMMAND), COMMAND)}
    python = set(inspect.signature(mlp.submit).parameters) - {"entry", "code", "args", "variables"}
    assert magic - {WITH.name} == command - {"json"} == python == {o.name for o in SUBMIT}
    for key, parameter in inspect.signature(mlp.submit).parameters.items():
        if key in python:
            assert parameter.default == BY_NAME[key].default


def test_options_parsed_by_each_surface_pass_the_schema():
    words = ["submit"]
    for key, value in VALUES.items():
        words += [BY_NAME[key].flag, value]
    magic, command = parse(words, MAGIC).given, parse(words, COMMAND).given
    assert magic == command
    made = msgspec.convert({**magic, "code": "x"}, JobCreate)
    assert (made.ram, made.time_limit, made.workers, made.env) == (2048, 5400, "2:4", {"A": "b"})
    assert made.params == {"lr": 0.1}


def test_each_verb_has_its_action_or_is_implemented_by_the_surfaces():
    own = {"submit", "sweep", "watch", "login", "logout", "whoami", "completion"}
    assert {verb.name for verb in VERBS} - own == set(SIMPLE)


def test_options_whose_feature_is_not_there_are_not_offered():
    for flag in ("--image", "--out"):
        with pytest.raises(UsageError, match=f"no option {flag}"):
            parse(["submit", "a.py", flag, "x"], MAGIC)


@pytest.mark.parametrize(("workers", "ps"), [(1, 0), (2, 0), (1, 1), (4, 2)])
def test_the_runtime_chosen_here_is_the_one_the_service_chooses(workers, ps):
    assert default_runtime(workers, ps) == service_runtimes.default_runtime(workers, ps)


@pytest.mark.parametrize("surface", [MAGIC, COMMAND])
def test_help_names_every_verb_and_every_option(surface):
    for verb in VERBS:
        if surface in verb.surfaces:
            assert f"{surface} {verb.name}" in overview(surface)
            assert all(o.flag in usage(verb, surface) for o in options_of(verb, surface))
    assert overview(surface).count("\n  " + ("%" if surface == MAGIC else "mlp ")) >= 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["submt"], "Did you mean submit"),
        (["submit", "--nmae", "x"], "Did you mean --name"),
        (["submit", "a.py", "--epochs", "5"], "go after --"),
        (["submit", "a.py", "b"], "a.py -- b"),
        (["submit", "--workers"], "--workers needs a value"),
        (["submit", "--workers", "0"], "must be from 1 to 10,000, and"),
        (["submit", "--workers", "4:2"], "MIN must not be above MAX"),
        (
            ["submit", "--time-limit", "soon"],
            "^--time-limit soon: is not a length of time; write 90s, 30m, 2h, 1d or 1h30m$",
        ),
        (
            ["submit", "a.py", "--time-limit", "5", "minutes"],
            "^--time-limit 5 minutes: write it as one word: --time-limit 5m$",
        ),
        (["submit", "--ram", "6", "GB", "a.py"], "^--ram 6 GB: write it as one word: --ram 6G$"),
        (["submit", "--cpu", "0"], "^--cpu 0: must be from 0.1 to 1,000,000 cores$"),
        (["quota", "--rank", "1"], "^%mlp quota has no option --rank. It has no options.$"),
        (["logs", "a", "--name", "1"], "^%mlp logs has no option --name. It has: --rank, --tail, --follow.$"),
        (["submit", "--ram", "50"], "at least 100 MiB"),
        (["submit", "--cpu", "nan"], "must be from 0.1"),
        (["submit", "--name", "Digits!"], "letters, digits, -, _ and ., such as lr-0.001"),
        (["submit", "--name", ".."], "beginning with a letter, a digit or _"),
        (["submit", "--env", "A"], "NAME=VALUE"),
        (["submit", "--env", "MLP_RANK=3"], "names that begin with MLP_ belong to the platform"),
        (["submit", "--param", "lr"], "^--param lr: is not a parameter; write NAME=VALUE, such as lr=0.1$"),
        (["submit", "--param", "2=1"], "'2' is not a parameter's name"),
        (["submit", "--wait=yes"], "takes no value"),
        (["watch"], "one job is needed"),
        (["cancel"], "which jobs"),
        (["logs", "a", "--tail", "0"], "at least 1"),
        (["quota", "red"], "red is one argument too many"),
    ],
)
def test_a_wrong_line_is_told_what_is_wrong_and_what_is_right(words, said):
    with pytest.raises(UsageError, match=said):
        parse(words, MAGIC)


def test_both_ways_of_writing_a_value_and_repeated_variables_are_understood():
    call = parse(
        ["submit", "a.py", "-w", "2", "--env=A=1", "-e", "B=x=y", "--wait", "--", "--epochs", "5"], COMMAND
    )
    assert call.names == ["a.py"]
    assert call.rest == ["--epochs", "5"]
    assert call.given == {"workers": 2, "env": {"A": "1", "B": "x=y"}, "wait": True}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5 minutes", 300), ("1 hour 30 min", 5400), ("2 Days", 172_800), ("1h30m", 5400), (90, 90)],
)
def test_a_length_of_time_may_be_written_in_words(text, seconds):
    assert BY_NAME["time_limit"].value(text) == seconds


def test_states_to_filter_by_are_all_that_the_hub_has():
    assert set(STATES.split()) == {*State, *Phase}


def test_help_says_which_words_an_option_takes():
    text = usage(find("submit", MAGIC), MAGIC)
    assert "priority class: low, normal, high (default: normal)" in text
    assert (
        "placement of ranks: same-node, same-rack, same-zone, spread, required:LABEL (on nodes with one value of that label), preferred:LABEL (the same, if possible) (default: bin-pack)"
        in text
    )


NAMES = {
    "jobs": ["digits", "digits-2", "nap"],
    "datasets": ["pets"],
    "tenants": ["red"],
    "runtimes": ["mpi", "tf"],
}


@pytest.mark.parametrize(
    ("words", "current", "found"),
    [
        ([], "su", ["submit", "suspend"]),
        (["submit"], "--wo", ["--workdir", "--workers"]),
        (["submit", "--runtime"], "", ["mpi", "tf"]),
        (["submit"], "--runtime=m", ["--runtime=mpi"]),
        (["submit", "--tenant"], "", ["red"]),
        (["submit", "--workers", "2"], "--work", ["--workdir"]),
        (["submit", "--env", "A=b"], "--en", ["--env", "--env-name"]),
        (["watch"], "dig", ["digits", "digits-2"]),
        (["cancel", "nap"], "digits-", ["digits-2"]),
        (["submit", "a.py", "--"], "--wo", []),
        (["jobs", "--state"], "fini", ["finished", "finishing"]),
        (["nonsense"], "--", []),
        (["data"], "", ["add", "ls", "pull", "push", "rm", "sync"]),
        (["data", "sync"], "", ["pets"]),
        (["data", "add", "s3://bucket/pets"], "", ["pets"]),
        (["data", "add"], "", []),
        (["notify"], "q", ["quiet"]),
        (["models", "show"], "", []),
    ],
)
def test_completion_knows_verbs_options_and_names(words, current, found):
    assert complete(words, current, COMMAND, lambda kind: NAMES[kind]) == found


def test_there_is_a_completion_script_for_each_shell_that_help_names():
    assert set(SCRIPTS) == {"bash", "zsh", "fish"}


SMALLEST_TEAM, NOTEBOOK = 1.0, 0.2
"""Cores of a team of one, and what its notebook server holds of them."""


def test_jobs_of_the_samples_fit_beside_a_notebook_into_the_smallest_team():
    lines = [
        "".join(cell["source"]).partition("\n")[0]
        for path in SAMPLES.glob("*.ipynb")
        for cell in json.loads(path.read_text())["cells"]
        if "".join(cell["source"]).startswith("%%mlp ")
    ]
    assert len(lines) >= 6
    for line in lines:
        given = parse(line.removeprefix("%%mlp ").replace("$count", "1").split(), MAGIC).given
        ranks = int(given.get("workers") or 1) + int(given.get("ps") or 0)
        assert ranks * float(given.get("cpu") or 1) <= SMALLEST_TEAM - NOTEBOOK, line


def test_sample_notebooks_hold_lines_that_parse_and_programs_that_compile_and_no_outputs():
    found = sorted(SAMPLES.glob("*.ipynb"))
    assert len(found) == 5
    for path in found:
        for cell in json.loads(path.read_text())["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] != "code":
                continue
            assert cell["outputs"] == []
            first, _, rest = text.partition("\n")
            if first.startswith("%%mlp "):
                parse(first.removeprefix("%%mlp ").replace("$count", "1").split(), MAGIC)
                compile(rest, str(path), "exec")
            elif first.startswith("%mlp "):
                parse(first.removeprefix("%mlp ").split(), MAGIC)
            else:
                compile(text, str(path), "exec")


def test_an_object_store_that_is_not_amazons_is_named_in_one_line():
    words = [
        "data",
        "add",
        "s3://bucket/prefix",
        "pets",
        "--endpoint",
        "https://minio.example:9000",
        "--region",
        "eu-1",
        "--mode",
        "read-through",
    ]
    for surface in (MAGIC, COMMAND):
        given = parse(words, surface).given
        assert (given["endpoint"], given["region"]) == ("https://minio.example:9000", "eu-1")


def test_an_option_with_a_metavar_takes_a_value():
    for verb in VERBS:
        for option in options_of(verb, COMMAND):
            assert (option.parse is None) == (not option.metavar), (verb.name, option.name)


def test_a_closed_output_causes_no_traceback(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)  # what Python makes of `mlp help >&-`
    monkeypatch.setattr("sys.stderr", None)
    assert main(["--help"]) == 0
    assert main(["nothing-of-the-kind"]) == 2
    assert sys.stdout.write("a log that goes on for days") == 27
    assert not hasattr(sys.stdout, "getvalue"), "what is written is not kept"
