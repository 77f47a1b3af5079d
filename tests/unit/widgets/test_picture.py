"""The still picture of a job, for where no JavaScript runs."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlp_widgets.picture import picture_html, picture_text

EVIL = '<script>alert(1)</script><img src=x onerror="alert(2)">\x1b]0;owned\x07'


def snapshot(**job: Any) -> dict[str, Any]:
    return {
        "job": {
            "name": "digits",
            "user": "ann",
            "tenant": "red",
            "runtime": "mpi",
            "workers": 2,
            "phase": "running",
            "progress": 42,
            "message": "",
            "failure": None,
        }
        | job,
        "curves": {"loss": {"x": [0, 1, 2], "y": [0.9, None, 0.25]}},
        "log": [{"rank": 0, "time": "2026-01-01T00:00:00Z", "stream": "stdout", "text": "epoch 2"}],
        "saved_at": "2026-01-01T00:00:05Z",
    }


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_text_has_state_progress_last_values_and_log() -> None:
    assert picture_text(snapshot()).splitlines() == [
        "Job digits: Running",
        "tenant red, mpi, 2 workers",
        "[##########..............] 42 %",
        "loss: 0.25",
        "0| epoch 2",
    ]


def test_a_failure_is_named_once_with_its_rank() -> None:
    failure = {"cause": "out-of-memory", "rank": 3, "message": "512 MiB were not enough"}
    text = picture_text(snapshot(phase="failed", failure=failure, message="failed"))
    assert "out-of-memory (rank 3): 512 MiB were not enough" in text.splitlines()


def test_a_waiting_job_says_why() -> None:
    still = snapshot(phase="queued") | {
        "why": {
            "reasons": [{"message": "red may use 2 cpu; 2 in use"}],
            "expected_start": "2026-01-01T14:20:00Z",
        }
    }
    assert "red may use 2 cpu; 2 in use" in picture_text(still)
    assert "Expected start 2026-01-01T14:20:00Z" in picture_html(still)


def test_what_a_job_says_stays_text() -> None:
    still = snapshot(name=EVIL, tenant=EVIL, message=EVIL, phase=EVIL)
    still["curves"] = {EVIL: {"x": [0], "y": [1.0]}}
    still["log"] = [{"rank": EVIL, "text": EVIL}]
    still["saved_at"] = EVIL
    parser = Tags()
    parser.feed(picture_html(still))
    assert parser.tags <= {"div", "b", "span", "br", "svg", "polyline", "pre"}
    assert not {name for name in parser.attributes if name.startswith("on")}
    assert "\x1b" not in picture_text(still)


def test_curves_become_points_inside_the_picture() -> None:
    found = re.search(r'points="([^"]+)"', picture_html(snapshot()))
    assert found is not None
    assert found[1] == "0.0,4.0 220.0,56.0"


KEYS = ["job", "why", "curves", "log", "saved_at"]
FIELDS = [
    "name",
    "phase",
    "progress",
    "message",
    "failure",
    "workers",
    "cause",
    "rank",
    "reasons",
    "loss",
    "x",
    "y",
    "text",
]

values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.sampled_from(["queued", "failed"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(KEYS), values))
def test_any_snapshot_gives_a_picture(still: dict[str, Any]) -> None:
    assert picture_text(still).startswith("Job ")
    assert picture_html(still).endswith("</div>")
