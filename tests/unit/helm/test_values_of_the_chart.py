"""Values of the Helm chart, without helm: described, used, and with defaults that the schema knows."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from mlp_hub.settings import Settings
from reference import chart

NOT_READ = {"global", "enabled"}
"""Values that helm or a parent chart reads."""
MOVED = {"singleuser", "cull", "scheduling", "prePuller", "imagePullSecrets", "custom"}
TEMPLATES = "".join(path.read_text() for path in sorted((chart.CHART / "templates").iterdir()))
DEFAULTS: dict[str, Any] = yaml.safe_load((chart.CHART / "values.yaml").read_text())


def test_files_that_are_made_of_tables_are_up_to_date() -> None:
    for name, content in chart.files().items():
        assert (chart.CHART / name).read_text() == content, (
            f"helm/mlp-hub/{name} is out of date: run `make docs`"
        )


def test_each_value_has_a_description_that_is_a_sentence() -> None:
    lacking = [path for path, found in chart.values() if not str(found.get("description", "")).strip()]
    assert lacking == []


def test_no_object_of_known_values_takes_unknown_ones() -> None:
    loose = [
        path
        for path, found in chart.values()
        if found.get("properties") and found.get("additionalProperties") is not False
    ]
    assert loose == []


def test_no_value_is_a_list_where_it_could_be_a_dict() -> None:
    """Several files of values cannot merge lists."""
    lists = [path for path, found in chart.values() if "array" in str(found.get("type"))]
    assert set(lists) == {
        f"{part}.resources.claims" for part in ("proxy", "hub", "service", "data", "postgresql")
    }


@pytest.mark.parametrize("path", [path for path, found in chart.values() if not found.get("properties")])
def test_each_value_is_used(path: str) -> None:
    if path.partition(".")[0] in NOT_READ | MOVED or path.startswith("settings."):
        assert "range $name, $value := .Values.settings" in TEMPLATES
        return
    part, _, rest = path.partition(".")
    of_workload = part in ("proxy", "hub", "service", "data", "postgresql")
    spelled = [f".Values.{path}", f"$root.Values.{path}", f".root.Values.{path}"]
    if of_workload:
        spelled.append(f".values.{rest.partition('.')[0]}")
    if path.startswith("images.names."):
        spelled.append("index .root.Values.images.names .part")
    assert any(re.search(re.escape(one) + r"(?![A-Za-z0-9])", TEMPLATES) for one in spelled), (
        f"{path} is used nowhere"
    )


def test_each_default_is_a_known_value_and_each_known_value_has_a_default() -> None:
    known = {path for path, found in chart.values() if not found.get("properties")}
    mine = set(_leaves(DEFAULTS, known, ""))
    assert mine <= known, "values.yaml has values that the schema does not know"
    free = {path for path in known if path.partition(".")[0] in {"settings", *NOT_READ, *MOVED}}
    optional = {path for path in known if re.search(r"\.resources\.(requests|limits|claims)$", path)}
    assert known - free - optional <= mine


def _leaves(found: Mapping[str, Any], known: set[str], before: str) -> Iterator[str]:
    for name, value in found.items():
        path = f"{before}{name}"
        if path in known or not isinstance(value, dict) or not value:
            if path not in {"settings", "global"}:
                yield path
        else:
            yield from _leaves(value, known, f"{path}.")


def test_a_setting_is_a_value_or_the_chart_sets_it_or_it_means_nothing_in_pods() -> None:
    fields = {spec.name: spec for spec in dataclasses.fields(Settings)}
    values = set(chart.schema()["properties"]["settings"]["properties"])
    secret = {name for name, spec in fields.items() if spec.metadata["secret"]}
    assert values | chart.SET_BY_CHART | chart.OF_ONE_MACHINE | secret == set(fields)
    assert not values & (chart.SET_BY_CHART | chart.OF_ONE_MACHINE)


def test_each_setting_that_the_chart_sets_is_one_of_the_hub() -> None:
    set_here = {name.lower() for name in re.findall(r"\bMLP_([A-Z_]+)\b", TEMPLATES)}
    fields = {spec.name for spec in dataclasses.fields(Settings)}
    assert set_here <= fields, set_here - fields
