"""Typed reasons have the same words in the hub, in notebooks and in the front end."""

from __future__ import annotations

import re
from pathlib import Path

from mlp import words
from mlp_hub.domain.errors import WORDS, Reason

SOURCE = Path(__file__).parents[3] / "widgets/src/core/reasons.ts"


def test_every_reason_has_the_same_words_everywhere() -> None:
    table = {reason.value: WORDS[reason] for reason in Reason}
    assert len(set(table.values())) == len(Reason)
    assert table == words.REASONS
    assert dict(re.findall(r'^  (\w+): "([^"]+)",$', SOURCE.read_text(), re.MULTILINE)) == table


def test_a_reason_that_is_newer_is_shown_as_it_is() -> None:
    assert [words.reason(r) for r in ("WaitingForQuota", "Other", None)] == ["Waits for quota", "Other", ""]
