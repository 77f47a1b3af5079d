"""A sentence that a page quotes is one that the hub prints: it contains a message of the catalogues."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

ROOT = Path(__file__).parents[3]
PAGES = [
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "reference"),
]
CATALOGUES = ROOT / "hub/mlp_language/locale/zh_CN/LC_MESSAGES"
HOLE = re.compile(r"\{\w+\}")
QUOTED = re.compile(r"`([^`]+)`|\"([^\"`]+)\"")
COMMAND = re.compile(
    r"[%$/.{]|--|(?:mlp|make|helm|kubectl|det|clearml-task|curl|apt|python|sudo|pip|pytest|sysctl|printf|GET|PUT|POST|PATCH|DELETE)\b"
)
LEAST_WORDS = 5
LEAST_FIXED = 3
"""Words of a message beside its holes; with fewer it is found everywhere."""
OF_OTHERS = (
    "Will not install to the user site",  # pip
    "No space left on device",  # the kernel
    "another operation (install/upgrade/rollback) is in progress",  # Helm
    "chart requires kubeVersion",
    "exists and cannot be imported into the current release",
    "no storage class is set",  # Kubernetes
    "cli, app, dav",  # layers
    "durable, gc_tuning, point_targets",
    "runs since 2030-03-18",  # comments of an exported scenario, which are English
    "submitted ..., waited",
    "[mlp] 320 lines of output lost here",  # lines that a shim writes into a job's log
    "the disk had 900 MiB left ...",  # cut short
)


def words(text: str) -> int:
    return len(re.findall(r"[A-Za-z]{2,}", text))


def messages() -> list[re.Pattern[str]]:
    found = []
    for path in sorted(CATALOGUES.glob("*.po")):
        with path.open("rb") as file:
            for message in read_po(file):
                for text in (message.id,) if isinstance(message.id, str) else message.id:
                    if words(HOLE.sub(" ", text)) >= LEAST_FIXED:
                        parts = map(re.escape, HOLE.split(text.rstrip(".")))
                        found.append(re.compile(".+?".join(parts), re.IGNORECASE | re.DOTALL))
    return found


def quotes(page: str) -> Iterator[str]:
    prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    prose = "\n".join(line for line in prose.splitlines() if not line.startswith("    "))
    for match in QUOTED.finditer(prose):
        text = " ".join((match[1] or match[2]).split())
        if text.count(" ") >= LEAST_WORDS - 1 and words(text) >= LEAST_WORDS and not COMMAND.match(text):
            yield text


@pytest.fixture(scope="module")
def known() -> list[re.Pattern[str]]:
    return messages()


def test_a_sentence_that_a_page_quotes_is_a_message(known: list[re.Pattern[str]]) -> None:
    found = {quote: page.name for page in PAGES for quote in quotes(page.read_text())}
    assert len(found) >= 15
    wrong = {
        quote: page
        for quote, page in found.items()
        if not quote.startswith(OF_OTHERS) and not any(one.search(quote) for one in known)
    }
    assert wrong == {}


def test_a_quote_that_is_out_of_date_is_noticed(known: list[re.Pattern[str]]) -> None:
    (quote,) = quotes(
        "`%mlp why` shows `would fit, but may still hold what blue booked, 3 cpu, when it opens`."
    )
    assert not any(one.search(quote) for one in known)
