"""A policy has one name and one meaning, in the settings and in scenarios; pages are made from the same table."""

from __future__ import annotations

from mlp_hub.scheduler.policy import POLICIES
from mlp_hub.settings import table
from reference.scenarios import scenarios_page


def test_settings_and_scenarios_say_what_each_goes_by() -> None:
    (setting,) = [row.doc for row in table() if row.name == "scheduling_policy"]
    for name, policy in POLICIES.items():
        assert f"{name} ({policy.words})" in setting
        assert f"{name}: {policy.words}" in scenarios_page()
