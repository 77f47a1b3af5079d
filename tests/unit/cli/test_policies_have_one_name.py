"""A policy has one name and one meaning: in the settings, in scenarios, on pages and in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from mlp_hub.cli.reference_scenarios import scenarios_page
from mlp_hub.scheduler.ordering import ONE_QUEUE, POLICY_WORDS
from mlp_hub.settings import table

ROOT = Path(__file__).parents[3]


def test_settings_and_scenarios_say_what_each_goes_by() -> None:
    (setting,) = [row.doc for row in table() if row.name == "scheduling_policy"]
    for name, words in POLICY_WORDS.items():
        assert f"{name} ({words})" in setting
        assert f"{name}: {words}" in scenarios_page()


def test_pages_have_the_same_table() -> None:
    source = (ROOT / "widgets/src/core/policy.ts").read_text()
    (words,) = re.findall(r"const WORDS.*?= \{\n(.*?)^\};", source, re.DOTALL | re.MULTILINE)
    assert dict(re.findall(r'^  (\w+): "(.+)",$', words, re.MULTILINE)) == POLICY_WORDS


def test_pages_know_under_which_each_tenant_has_a_line_of_its_own() -> None:
    source = (ROOT / "widgets/src/core/policy.ts").read_text()
    (named,) = re.findall(r"LINE_PER_TENANT = \[(.*)\];", source)
    assert set(re.findall(r'"(\w+)"', named)) == set(POLICY_WORDS) - ONE_QUEUE
