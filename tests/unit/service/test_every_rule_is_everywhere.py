"""Orders, placement rules, topologies and priorities are named in several places: each test names the one that was forgotten."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from mlp.options import SUBMIT
from mlp.tables import ORDERS as WORDS_OF_ORDERS
from mlp_api.jobs import JobCreate
from mlp_api.types import QueueOrder
from mlp_api.whatif import PlacementRule, PolicyName
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.job import PRIORITIES
from mlp_hub.scheduler.node_states import RULES
from mlp_hub.scheduler.ordering import ONE_QUEUE, ORDERS, POLICIES, WITHOUT_PRIORITY
from mlp_hub.scheduler.placement import TOPOLOGIES, domain_label
from mlp_hub.scheduler.simulate.keys import PLACEMENTS
from mlp_hub.service.config import Paths
from mlp_hub.service.preview_words import WAITS_FOR
from mlp_hub.service.submit import checked_spec
from mlp_hub.settings import Settings

ROOT = Path(__file__).parents[3]
ANSWERS = {
    *(Reason.INVALID, Reason.NOT_FOUND, Reason.CONFLICT, Reason.WRONG_STATE, Reason.FORBIDDEN),
    Reason.EXCEEDS_MAX_QUOTA,
}
"""Why a request is refused: for these no job waits."""


def choices_of(setting: str) -> tuple[str, ...]:
    (found,) = (f.metadata["choices"] for f in fields(Settings) if f.name == setting)
    return tuple(found)


def offered(option: str) -> list[str]:
    (found,) = (o.choices for o in SUBMIT if o.name == option)
    return found.split()


def test_every_order_can_be_set_and_asked_about() -> None:
    assert choices_of("scheduling_policy") == POLICIES
    assert get_args(PolicyName) == POLICIES
    assert set(POLICIES) > ONE_QUEUE
    assert set(POLICIES) | set(ORDERS) > WITHOUT_PRIORITY


@pytest.mark.parametrize("name", POLICIES)
def test_every_order_is_explained(name: str) -> None:
    (text,) = re.findall(
        r"\*\*Who is next\.\*\*(.*?)\n2\. ",
        (ROOT / "docs/explanation/scheduling.md").read_text(),
        re.DOTALL,
    )
    assert f"`{name}`" in text


def test_every_order_of_a_queue_can_be_chosen_and_is_explained() -> None:
    assert get_args(QueueOrder) == ORDERS
    words = re.search(
        r"ORDER_WORDS.*?= \{\n(.*?)\n\};", (ROOT / "widgets/src/core/policy.ts").read_text(), re.DOTALL
    )
    assert words is not None
    assert re.findall(r"^  (\w+):", words[1], re.MULTILINE) == list(ORDERS) == list(WORDS_OF_ORDERS)
    for page in ("docs/how-to/sharing.md", "docs/explanation/scheduling.md"):
        text = (ROOT / page).read_text()
        assert all(f"`{order}`" in text for order in ORDERS), page


def test_every_placement_rule_that_is_offered_can_be_set_and_asked_about() -> None:
    assert choices_of("scheduling_placement") == PLACEMENTS
    assert get_args(PlacementRule) == PLACEMENTS
    assert set(PLACEMENTS) < set(RULES)  # one is there for comparisons only


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_topology_is_known_to_the_core_and_may_be_asked_for(topology: str, tmp_path: Path) -> None:
    assert (
        domain_label(topology)
        == {
            "same-node": ("", True),
            "same-rack": ("rack", True),
            "same-zone": ("zone", True),
            "spread": (None, False),
        }[topology]
    )
    paths = Paths(homes=tmp_path, jobs=tmp_path)
    asked = JobCreate(name="a", code="1", topology=topology)
    assert checked_spec(asked, "ann", {"red"}, "red", paths).topology == topology
    assert f"`{topology}`" in (ROOT / "docs/explanation/scheduling.md").read_text()


def test_the_extension_offers_every_topology_and_priority() -> None:
    assert offered("topology") == list(TOPOLOGIES)
    assert set(offered("priority")) == set(PRIORITIES)


def test_a_preview_has_words_for_every_reason_of_waiting() -> None:
    assert set(Reason) - set(WAITS_FOR) == ANSWERS
