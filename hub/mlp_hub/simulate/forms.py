"""Forms of a scenario's parts: the allowed values, the defaults and the meaning of each key.

The reader checks by them (`parts.take`), and the reference page of scenarios is made of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from mlp_hub.domain.dimensions import COUNTED, DIMENSIONS
from mlp_hub.domain.jobs.job import PRIORITIES as OF_HUB
from mlp_hub.domain.runtime.runtime import BUILT_IN
from mlp_hub.scheduler.nodes.placement import TOPOLOGIES
from mlp_hub.scheduler.policy import DEFAULT_ORDER, ORDERS, POLICIES

PLACEMENTS = ("fgd", "bestfit", "packing", "spread", "random")
RUNTIMES = tuple(BUILT_IN)
PRIORITIES = dict(sorted(OF_HUB.items(), key=lambda named: -named[1]))
"""The classes that are there in any scenario, the hub's own, unless it gives them other values."""

MOST_JOBS = 250_000
"""Limit of scenarios: jobs of a scenario: this number ends in minutes and within 2 GiB."""
MOST_NODES = 200_000
"""Limit of scenarios: nodes of a scenario."""
MOST_WORKERS = 100_000
"""Limit of scenarios: workers of one job."""
MOST_WORKERS_IN_ALL = 10_000_000
"""Limit of scenarios: workers of all jobs together."""
LARGEST = 10**12
"""Limit of scenarios: any other number in a scenario."""


@dataclass(frozen=True, slots=True)
class Key:
    """Values and meaning of a key, and its default in words if the value itself does not show it."""

    takes: str
    meaning: str
    default: str = ""


def _one_of(words: Iterable[str]) -> Meta:
    return Meta(pattern=rf"^({'|'.join(words)})$(?!\n)")


def _words(words: Iterable[str]) -> str:
    return "one of " + ", ".join(f"`{word}`" for word in words)


Number = Annotated[float, Meta(ge=0, le=LARGEST)]
Positive = Annotated[float, Meta(gt=0, le=LARGEST)]
Whole = Annotated[int, Meta(ge=0, le=LARGEST)]
# neither control characters nor halves of a surrogate pair, which no output can hold
Text = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff]{1,200}$(?!\n)")]
Labels = dict[str, str | int | float]
Limits = dict[
    Annotated[str, Meta(pattern=rf"^({'|'.join(DIMENSIONS)}|gpu:.*\S.*)$")],
    Annotated[float, Meta(ge=0, le=10**18)] | None,
]
_QUOTA = "amounts from 0 on of `cpu`, `ram`, `gpu`, `gpu:KIND`" + "".join(f", `{d}`" for d in DIMENSIONS[3:])
_SWITCH = "`true` or `false`"


class Form(Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of all forms."""


class ScenarioForm(Form, kw_only=True):
    """A whole scenario, its parts unread."""

    version: Annotated[int, Meta(ge=1, le=1), Key("`1`", "the version of this format")]
    policy: Annotated[Any, Key("a mapping", "how the hub schedules", "fair, as below")] = None
    flavors: Annotated[list[Any], Key("a list", "label selectors that name kinds of nodes", "none")] = field(
        default_factory=list
    )
    nodes: Annotated[list[Any], Key("a list, [] for none", "what jobs run on")]
    tenants: Annotated[list[Any], Key("a list, [] for none", "who owns quota")]
    priorities: Annotated[
        dict[str, Whole] | None,
        Key(
            "a mapping of whole numbers from 0 on",
            "classes of priority; what is given here is added to these three, or changes them",
            "high 200, normal 100, low 50",
        ),
    ] = None
    jobs: Annotated[list[Any], Key("a list, [] for none", "what is submitted")]
    events: Annotated[list[Any], Key("a list", "what happens besides", "none")] = field(default_factory=list)
    bookings: Annotated[
        list[Any], Key("a list", "windows of time for which tenants booked capacity", "none")
    ] = field(default_factory=list)
    until: Annotated[
        Number | None, Key("seconds from 0 on", "when to stop", "when nothing can happen any more")
    ] = None


class PolicyForm(Form, kw_only=True):
    """How the hub schedules."""

    name: Annotated[
        str,
        _one_of(POLICIES),
        Key(
            _words(POLICIES),
            "who is next: " + "; ".join(f"{name}: {policy.words}" for name, policy in POLICIES.items()),
        ),
    ] = "fair"
    half_life_s: Annotated[
        Positive, Key("seconds above 0", "half-life of the usage that fair share remembers")
    ] = 3600.0
    backfill: Annotated[
        bool, Key(_SWITCH, "whether small jobs may pass a blocked one that they do not delay")
    ] = True
    preemption: Annotated[bool, Key(_SWITCH, "whether running jobs may be stopped for others")] = True
    placement: Annotated[str, _one_of(PLACEMENTS), Key(_words(PLACEMENTS), "which nodes a gang gets")] = "fgd"
    min_run_s: Annotated[
        Number, Key("seconds from 0 on", "nobody is preempted before having run so long")
    ] = 0.0
    restart_cost_s: Annotated[
        Number,
        Key("seconds from 0 on", "what each further start of a job costs before its work goes on"),
    ] = 0.0
    aging_s: Annotated[
        Number,
        Key("seconds from 0 on", "each such span of waiting is worth one point of priority; 0: none"),
    ] = 600.0
    seed: Annotated[Whole, Key("a whole number from 0 on", "of the random placement")] = 0
    patience: Annotated[
        Positive,
        Key("a number above 0", "under `finish`: a job is late when it took so many times its length"),
    ] = 2.5


class FlavorForm(Form, kw_only=True):
    """A kind of node."""

    name: Annotated[Text, Key("text", "its name")]
    labels: Annotated[
        Labels | None,
        Key(
            "a mapping of text",
            "the labels that a node of this flavor has. A node with gpus but without `gpu_kind` has the name of the first "
            "flavor with labels that selects it as its kind",
            "none",
        ),
    ] = None


class NodeForm(Form, kw_only=True):
    """A node, or some that are alike."""

    name: Annotated[Text, Key("text", "its name; with `count`, its names begin so")]
    count: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_NODES)] | None,
        Key("a whole number above 0", "makes NAME-0, NAME-1 and so on", "one node of just this name"),
    ] = None
    cpu: Annotated[Number, Key("cores from 0 on", "its cores")] = 8.0
    ram: Annotated[Whole, Key("MiB, a whole number from 0 on", "its memory")] = 32768
    gpu: Annotated[int, Meta(ge=0, le=1_000_000), Key("a whole number from 0 on", "its GPUs")] = 0
    gpu_kind: Annotated[Text | None, Key("text", "their kind")] = None
    labels: Annotated[
        Labels | None,
        Key("a mapping of text", "for `topology` and flavors: `zone`, `rack` or any other", "none"),
    ] = None
    taints: Annotated[
        list[Text],
        Key(
            "a list of text",
            "`tenant=NAME` leaves the node to that tenant; any other taint leaves it empty",
            "none",
        ),
    ] = field(default_factory=list)


class TenantForm(Form, kw_only=True):
    """A tenant."""

    name: Annotated[Text, Key("text", "its name")]
    parent: Annotated[Text | None, Key("a tenant", "the tenant whose quota its own is a part of")] = None
    cohort: Annotated[
        Text | None, Key("text", "those of one cohort lend each other what they do not use")
    ] = None
    weight: Annotated[Number, Key("a number from 0 on", "its weight in fair share")] = 1.0
    quota: Annotated[
        Limits | None,
        Key(_QUOTA, "its nominal quota; what it does not name is not limited", "what the nodes have"),
    ] = None
    borrowing_limit: Annotated[
        Limits | None, Key(_QUOTA, "the most it may borrow beyond that", "no limit")
    ] = None
    lending_limit: Annotated[
        Limits | None, Key(_QUOTA, "the most it lends to others; not above its quota", "no limit")
    ] = None
    reserved: Annotated[
        Limits | None,
        Key(_QUOTA, "capacity that is kept for it, used or not; not above its quota", "none"),
    ] = None
    queue_order: Annotated[
        str,
        _one_of(ORDERS),
        Key(
            _words(ORDERS),
            "what its own jobs go by where tenants take turns (`fair`, `maxmin`): "
            + "; ".join(f"{name} ({order.words})" for name, order in ORDERS.items()),
        ),
    ] = DEFAULT_ORDER


class JobForm(Form, kw_only=True):
    """A job, or some that are alike."""

    name: Annotated[Text, Key("text", "its name; with `count` above 1, its names begin so")]
    tenant: Annotated[
        Text | None, Key("a tenant", "team whose quota it uses", "`default`, or the only one")
    ] = None
    user: Annotated[Text, Key("text", "who submits it")] = "user"
    submit: Annotated[Number, Key("seconds from 0 on", "when it is submitted")] = 0.0
    duration: Annotated[
        Number,
        Key("seconds from 0 on", "how long it runs with all its workers; hidden from the policy"),
    ] = 200.0
    workers: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_WORKERS)]
        | Annotated[str, Meta(pattern=r"^\d{1,9}(:\d{1,9})?$(?!\n)")],
        Key(
            'a whole number above 0, as 4, or a range, as "2:4"',
            "its ranks. Elastic with MIN:MAX: its work is duration x MAX, done at the rate of the workers it has. At most "
            f"{MOST_WORKERS:,}, and {MOST_WORKERS_IN_ALL:,} of all jobs together",
        ),
    ] = 1
    cpu: Annotated[Number, Key("cores from 0 on", "of each worker")] = 1.0
    ram: Annotated[Whole, Key("MiB, a whole number from 0 on", "of each worker")] = 100
    gpu: Annotated[Number, Key("a number from 0 on, also a fraction", "of each worker")] = 0.0
    gpu_kind: Annotated[Text | None, Key("text", "which kind it must be; null: any")] = None
    amounts: Annotated[
        dict[Annotated[str, Meta(pattern=rf"^({'|'.join(COUNTED)})$")], Whole] | None,
        Key("whole numbers from 0 on", "of each worker, of other dimensions by name"),
    ] = None
    priority: Annotated[Text, Key("a class of `priorities`", "its class")] = "normal"
    time_limit: Annotated[Positive | None, Key("seconds above 0", "an attempt that runs so long fails")] = (
        None
    )
    estimate: Annotated[
        Positive | None, Key("seconds above 0", "what the policy may believe of its duration")
    ] = None
    runtime: Annotated[
        str, _one_of(RUNTIMES), Key(_words(RUNTIMES), "noted only; it changes nothing here")
    ] = "mpi"
    topology: Annotated[
        Any,
        Key(
            _words(TOPOLOGIES) + ", `{required: LABEL}`, `{preferred: LABEL}`",
            "where its workers must be, or should be",
        ),
    ] = None
    preemptible: Annotated[bool, Key(_SWITCH, "whether it may be stopped for another job")] = True
    checkpoint_every: Annotated[
        Positive | None,
        Key(
            "seconds above 0",
            "it saves its work each time it has run so long; null: a restart begins at nothing",
        ),
    ] = None
    count: Annotated[
        int, Meta(ge=1, le=LARGEST), Key("a whole number above 0", "3 makes NAME-0, NAME-1 and NAME-2")
    ] = 1
    every: Annotated[Number, Key("seconds from 0 on", "between the submissions of those")] = 0.0


class EventForm(Form, kw_only=True):
    """Something that happens."""

    at: Annotated[Number, Key("seconds from 0 on", "when")]
    node_down: Annotated[
        Text | None,
        Key("a node", "the node is lost; jobs on it are torn down whole and queued again", " "),
    ] = None
    node_up: Annotated[Text | None, Key("a node", "it is back", " ")] = None
    tenant: Annotated[Text | None, Key("a tenant", "whose quota changes, with `quota`", " ")] = None
    quota: Annotated[
        Limits | None,
        Key(
            _QUOTA,
            "the limits that change; what is not named stays as it is, null takes a limit away",
            " ",
        ),
    ] = None
    cancel: Annotated[Text | None, Key("a job", "the job ends now, or as soon as it is submitted", " ")] = (
        None
    )


class BookingForm(Form, kw_only=True):
    """A booked window."""

    tenant: Annotated[Text, Key("a tenant", "who booked")]
    start: Annotated[Number, Key("seconds from 0 on", "when the window opens")] = field(name="from")
    until: Annotated[Number, Key("seconds from 0 on", "when it closes")]
    amount: Annotated[
        Limits,
        Meta(min_length=1),
        Key(_QUOTA + ", as `{gpu: 8}`", "what is kept free for it, besides what it reserves"),
    ]


SECTIONS: dict[str, type[Form]] = {
    "scenario": ScenarioForm,
    "policy": PolicyForm,
    "flavors": FlavorForm,
    "nodes": NodeForm,
    "tenants": TenantForm,
    "jobs": JobForm,
    "events": EventForm,
    "bookings": BookingForm,
}
"""Each part of a scenario with its form."""


def keys_of(form: type[Form]) -> Iterator[tuple[msgspec.structs.FieldInfo, Key]]:
    """Yield the keys of a part: how each is read, and its words."""
    for info in msgspec.structs.fields(form):
        yield info, next(note for note in info.type.__metadata__ if isinstance(note, Key))
