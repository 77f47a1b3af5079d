"""A tenant's line goes on as one that is kept sorted would; what a cell asks for is no more than any request in it."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.scheduler.fairness.lines import Line
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.nodes.index import NodeIndex
from mlp_hub.scheduler.policy import JobKey
from mlp_hub.scheduler.workloads.pending import Awaits, Head, JobClass
from mlp_hub.scheduler.workloads.size_classes import cell_of
from support.scheduler.scheduler_builders import node

# --- lines

PROMISED = "j1"


class PlainLine:
    """The same by sorting all that stand in line, and by looking at each of them."""

    def __init__(self, heads: list[Head]) -> None:
        self._heads = heads[:]

    def push(self, cls: JobClass) -> None:
        self._heads = sorted([*self._heads, (cls.jobs[0], cls.serial, cls)])

    def pop(self) -> JobClass | None:
        return self._heads.pop(0)[2] if self._heads else None

    def pass_inadmissible(self, promised: str | None) -> tuple[JobKey, float] | None:
        latest = -math.inf
        while self._heads and self._heads[0][2].awaits is not Awaits.NOTHING:
            (key, uid), _, _ = self._heads.pop(0)
            if uid != promised:
                latest = max(latest, key[1])
        return (self._heads[0][0][0], latest) if self._heads else None

    def next(self) -> JobKey | None:
        return self._heads[0][0][0] if self._heads else None

    def leave_inadmissible(self) -> None:
        self._heads = [head for head in self._heads if head[2].awaits is Awaits.NOTHING]


def classes_of(spec: list[tuple[list[int], bool]]) -> list[JobClass]:
    """Return one class for each entry: the times at which its jobs were queued, and whether it is inadmissible."""
    classes, serial = [], 0
    for n, (ats, inadmissible) in enumerate(spec):
        cls = JobClass("red", Demand(cpu=n), 1, 1, 0, None, 0, "", n)
        for at in ats:
            uid = f"j{serial}"
            serial += 1
            cls.add((float(at % 3), float(at), uid), uid)
        cls.awaits = Awaits.NODES if inadmissible else Awaits.NOTHING
        classes.append(cls)
    return classes


lists_of_jobs = st.lists(
    st.tuples(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.booleans()), max_size=8
)
doings = st.lists(st.sampled_from(("served", "is set aside", "stays active", "pass", "narrow")), max_size=30)


@given(lists_of_jobs, doings)
def test_a_line_behaves_as_one_that_is_kept_sorted(
    spec: list[tuple[list[int], bool]], todo: list[str]
) -> None:
    classes = classes_of(spec)
    active = {cls.serial: cls for cls in classes if cls.awaits is Awaits.NOTHING}
    heads = sorted((cls.jobs[0], cls.serial, cls) for cls in classes)
    line, plain = Line(heads), PlainLine(heads)
    for doing in todo:
        if doing == "pass":
            assert line.pass_inadmissible(PROMISED) == plain.pass_inadmissible(PROMISED)
        elif doing == "narrow":
            line.narrow(active.values())
            plain.leave_inadmissible()
        else:
            cls = line.pop()
            assert cls is plain.pop()
            if cls is None or cls.awaits is not Awaits.NOTHING:
                continue
            if doing == "served":
                cls.remove(*cls.jobs[0])
            elif doing == "is set aside":
                cls.awaits = Awaits.QUOTA
            if doing == "served" and cls.jobs:
                line.push(cls)
                plain.push(cls)
            elif doing != "stays active":
                del active[cls.serial]
        assert line.next() == plain.next()


def test_jobs_behind_inadmissible_ones_wait_for_the_youngest_of_them_except_a_promised_one() -> None:
    classes = classes_of([([3], True), ([6], True), ([9], False)])  # all of one priority; the second is j1
    heads = sorted((cls.jobs[0], cls.serial, cls) for cls in classes)
    assert Line(heads).pass_inadmissible(None) == ((0.0, 9.0, "j2"), 6.0)
    assert Line(heads).pass_inadmissible(PROMISED) == ((0.0, 9.0, "j2"), 3.0)


# --- cells

amounts = st.one_of(st.just(0), st.integers(1, 5000))
demands = st.builds(
    Demand,
    cpu=amounts,
    ram=amounts,
    rom=st.just(0),
    whole=st.integers(0, 3),
    part=st.one_of(st.just(0), st.integers(1, 999)),
    gpu_kind=st.just(None),
)
sized = ("cpu", "ram", "rom", "part")


@given(demands, demands)
def test_requests_are_of_one_cell_if_no_amount_of_one_is_twice_that_of_the_other(
    a: Demand, b: Demand
) -> None:
    def bits(demand: Demand) -> list[int]:
        return [getattr(demand, name).bit_length() for name in sized]

    alike = a.whole == b.whole and bits(a) == bits(b)
    assert (cell_of(a, None) is cell_of(b, None)) == alike
    assert cell_of(a, "same-rack") is not cell_of(a, None)
    for name in sized:
        least, asked = getattr(cell_of(a, None).demand, name), getattr(a, name)
        assert least <= asked < 2 * least or asked == least == 0


@given(demands, st.lists(demands, max_size=6))
def test_where_the_least_of_a_cell_does_not_fit_nothing_of_it_does(asked: Demand, held: list[Demand]) -> None:
    index = NodeIndex([node(name, cpu=8, ram=9000, gpu=3, labels={"rack": name}) for name in ("n", "m")])
    for demand in held:
        place = next((name for name in ("n", "m") if index.slots(name, demand)), None)
        if place is not None:
            index.reserve_ranks(demand, (place,))
    least = cell_of(asked, None).demand
    for name in ("n", "m"):
        assert index.slots(name, asked) <= index.slots(name, least)
    assert index.total_slots(asked) <= index.total_slots(least)
    assert index.total_slots(asked, "same-rack") <= index.total_slots(least, "same-rack")
