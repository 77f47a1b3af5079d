"""Orders, placement rules and topologies are known to the core and explained: each test names what was forgotten."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.fence import Fence
from mlp_hub.executors.shared_volume.workspace import SharedVolumeWorkspace
from mlp_hub.scheduler.nodes.placement import TOPOLOGIES, domain_label
from mlp_hub.scheduler.nodes.states import RULES
from mlp_hub.scheduler.policy import ORDERS, POLICIES
from mlp_hub.simulate.forms import PLACEMENTS
from support.rigs.requested import requested

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", POLICIES)
def test_every_order_is_explained(name: str) -> None:
    (text,) = re.findall(
        r"\*\*Who is next\.\*\*(.*?)\n2\. ",
        (ROOT / "docs/explanation/scheduling.md").read_text(),
        re.DOTALL,
    )
    assert f"`{name}`" in text


def test_every_order_of_a_queue_is_explained() -> None:
    for page in ("docs/how-to/sharing.md", "docs/explanation/scheduling.md"):
        text = (ROOT / page).read_text()
        assert all(f"`{order}`" in text for order in ORDERS), page


def test_every_placement_rule_that_is_offered_is_there() -> None:
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
    workspace = SharedVolumeWorkspace(Directories(homes=tmp_path, jobs=tmp_path), Fence())
    asked = JobCreate(name="a", code="1", topology=topology)
    spec = asyncio.run(requested(asked, workspace))
    assert spec.topology == topology
    assert f"`{topology}`" in (ROOT / "docs/explanation/scheduling.md").read_text()
