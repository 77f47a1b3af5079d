"""The agent of tenants' own clusters (`layers/`): formatted, vetted, and its own tests in Go pass."""

from __future__ import annotations

from mlp_cluster import layer


def test_its_sources_are_clean_and_its_own_tests_pass() -> None:
    said = layer.check()
    assert said.startswith("ok"), said
