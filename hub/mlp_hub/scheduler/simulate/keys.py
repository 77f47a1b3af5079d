"""The keys of a scenario, each with its values, its default and its meaning: for the reader and for the reference page."""

from __future__ import annotations

from dataclasses import dataclass

from mlp_hub.domain.job import PRIORITIES as OF_HUB
from mlp_hub.scheduler.ordering import ORDERS, POLICY_WORDS
from mlp_hub.scheduler.placement import TOPOLOGIES

PLACEMENTS = ("fgd", "bestfit", "packing", "spread", "random")
RUNTIMES = ("mpi", "tf", "torch", "plain")
DIMENSIONS = ("cpu", "ram", "gpu", "rom")
PRIORITIES = dict(sorted(OF_HUB.items(), key=lambda named: -named[1]))
"""The classes that are there in any scenario, the hub's own, unless it gives them other values."""

MOST_JOBS = 250_000
"""So many end in minutes and within 2 GiB; the long public traces of a hundred thousand jobs fit."""
MOST_NODES = 200_000
MOST_WORKERS = 100_000
"""Of one job,"""
MOST_WORKERS_IN_ALL = 10_000_000
"""and of all jobs together: each costs a microsecond and a hundred bytes, even one that asks for nothing."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key: what may stand there, what holds when it is left out (None: it must be there), what it means."""

    name: str
    values: str
    default: str | None
    meaning: str


TOP = (
    Key("version", "`1`", None, "the version of this format"),
    Key("policy", "mapping", "fair, as below", "how the hub schedules"),
    Key("flavors", "list", "none", "label selectors that name kinds of nodes"),
    Key("nodes", "list", None, "what jobs run on"),
    Key("tenants", "list", None, "who owns quota"),
    Key(
        "priorities",
        "mapping of whole numbers",
        "high 200, normal 100, low 50",
        "classes of priority; what is given here is added to these three, or changes them",
    ),
    Key("jobs", "list", None, "what is submitted"),
    Key("events", "list", "none", "what happens besides"),
    Key("bookings", "list", "none", "windows of time for which tenants booked capacity"),
    Key("until", "seconds", "when nothing can happen any more", "when to stop"),
)
POLICY = (
    Key(
        "name",
        ", ".join(f"`{p}`" for p in POLICY_WORDS),
        "fair",
        "who is next: " + "; ".join(f"{name}: {words}" for name, words in POLICY_WORDS.items()),
    ),
    Key("half_life_s", "seconds above 0", "3600", "half-life of the usage that fair share remembers"),
    Key(
        "backfill",
        "`true`, `false`",
        "true",
        "whether small jobs may pass a blocked one that they do not delay",
    ),
    Key("preemption", "`true`, `false`", "true", "whether running jobs may be stopped for others"),
    Key("placement", ", ".join(f"`{p}`" for p in PLACEMENTS), "fgd", "which nodes a gang gets"),
    Key("min_run_s", "seconds", "0", "nobody is preempted before having run so long"),
    Key("restart_cost_s", "seconds", "0", "what each further start of a job costs before its work goes on"),
    Key("aging_s", "seconds", "600", "each such span of waiting is worth one point of priority; 0: none"),
    Key("seed", "whole number", "0", "of the random placement"),
    Key(
        "patience",
        "number above 0",
        "2.5",
        "under `finish`: a job is late when it took so many times its length",
    ),
)
FLAVOR = (
    Key("name", "text", None, "its name"),
    Key(
        "labels",
        "mapping of text",
        "none",
        "the labels that a node of this flavor has. A node with gpus but without `gpu_kind` has the name of the first "
        "flavor with labels that selects it as its kind",
    ),
)
NODE = (
    Key("name", "text", None, "its name; with `count`, its names begin so"),
    Key("count", "whole number above 0", "one node of just this name", "makes NAME-0, NAME-1 and so on"),
    Key("cpu", "cores", "8", "its cores"),
    Key("ram", "MiB", "32768", "its memory"),
    Key("gpu", "whole number", "0", "its GPUs"),
    Key("gpu_kind", "text", "null", "their kind"),
    Key("labels", "mapping of text", "none", "for `topology` and flavors: `zone`, `rack` or any other"),
    Key(
        "taints",
        "list of text",
        "none",
        "`tenant=NAME` leaves the node to that tenant; any other taint leaves it empty",
    ),
)
_QUOTA = "mapping: `cpu`, `ram`, `gpu`, `gpu:KIND`, `rom`"
TENANT = (
    Key("name", "text", None, "its name"),
    Key("parent", "tenant", "null", "the tenant whose quota its own is a part of"),
    Key("cohort", "text", "null", "those of one cohort lend each other what they do not use"),
    Key("weight", "number", "1", "its weight in fair share"),
    Key("quota", _QUOTA, "what the nodes have", "its nominal quota; what it does not name is not limited"),
    Key("borrowing_limit", _QUOTA, "no limit", "the most it may borrow beyond that"),
    Key("lending_limit", _QUOTA, "no limit", "the most it lends to others; not above its quota"),
    Key("reserved", _QUOTA, "none", "capacity that is kept for it, used or not; not above its quota"),
    Key(
        "queue_order",
        ", ".join(f"`{o}`" for o in ORDERS),
        ORDERS[0],
        "what its own jobs go by where tenants take turns (`fair`, `maxmin`): priority, then age; fifo: age alone; fair, maxmin: its users take turns by the share of the machines that each holds, now and lately or now alone",
    ),
)
JOB = (
    Key("name", "text", None, "its name; with `count` above 1, its names begin so"),
    Key("tenant", "tenant", "`default`, or the only one", "whose quota it uses"),
    Key("user", "text", "user", "who submits it"),
    Key("submit", "seconds", "0", "when it is submitted"),
    Key("duration", "seconds", "200", "how long it runs with all its workers; hidden from the policy"),
    Key(
        "workers",
        'whole number, or "MIN:MAX"',
        "1",
        "its ranks. Elastic with MIN:MAX: its work is duration x MAX, done at the rate of the workers it has. At most "
        f"{MOST_WORKERS:,}, and {MOST_WORKERS_IN_ALL:,} of all jobs together",
    ),
    Key("cpu", "cores", "1", "of each worker"),
    Key("ram", "MiB", "100", "of each worker"),
    Key("gpu", "number, also a fraction", "0", "of each worker"),
    Key("gpu_kind", "text", "null", "which kind it must be; null: any"),
    Key("priority", "class of `priorities`", "normal", "its class"),
    Key("time_limit", "seconds above 0", "null", "an attempt that runs so long fails"),
    Key("estimate", "seconds above 0", "null", "what the policy may believe of its duration"),
    Key("runtime", ", ".join(f"`{r}`" for r in RUNTIMES), "mpi", "noted only; it changes nothing here"),
    Key(
        "topology",
        ", ".join(f"`{t}`" for t in TOPOLOGIES) + ", `{required: LABEL}`, `{preferred: LABEL}`",
        "null",
        "where its workers must be, or should be",
    ),
    Key("preemptible", "`true`, `false`", "true", "whether it may be stopped for another job"),
    Key(
        "checkpoint_every",
        "seconds above 0",
        "null",
        "it saves its work each time it has run so long; null: a restart begins at nothing",
    ),
    Key("count", "whole number above 0", "1", "3 makes NAME-0, NAME-1 and NAME-2"),
    Key("every", "seconds", "0", "between the submissions of those"),
)
EVENT = (
    Key("at", "seconds", None, "when"),
    Key("node_down", "node", "", "the node is lost; jobs on it are torn down whole and queued again"),
    Key("node_up", "node", "", "it is back"),
    Key("tenant", "tenant", "", "whose quota changes, with `quota`"),
    Key(
        "quota",
        _QUOTA,
        "",
        "the limits that change; what is not named stays as it is, null takes a limit away",
    ),
    Key("cancel", "job", "", "the job ends now, or as soon as it is submitted"),
)
BOOKING = (
    Key("tenant", "tenant", None, "who booked"),
    Key("from", "seconds", None, "when the window opens"),
    Key("until", "seconds", None, "when it closes"),
    Key("amount", _QUOTA, None, "what is kept free for it, besides what it reserves"),
)

SECTIONS: dict[str, tuple[Key, ...]] = {
    "scenario": TOP,
    "policy": POLICY,
    "flavors": FLAVOR,
    "nodes": NODE,
    "tenants": TENANT,
    "jobs": JOB,
    "events": EVENT,
    "bookings": BOOKING,
}
"""Each part of a scenario with its keys."""
