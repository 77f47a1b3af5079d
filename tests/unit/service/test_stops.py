"""What a job that waits again is told of its last attempt."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mlp_hub.executors.shared_volume.checkpoints import MOST_FILES, newest_checkpoint
from mlp_hub.service.jobs.history import RecordedStop, kept_words, last_stop
from mlp_hub.store.records import JobEvent
from mlp_language.message import NOTHING, msg, verbatim


def told(*kinds: str) -> list[JobEvent]:
    return [JobEvent(i + 1, float(i), kind, verbatim(f"{kind} {i}")) for i, kind in enumerate(kinds)]


RAN = ("submitted", "admitted", "starting", "running")


@pytest.mark.parametrize(
    ("kinds", "stop"),
    [
        ((), None),
        (RAN, None),
        (("submitted", "waiting", "suspended"), None),
        (("submitted", "admitted", "preempted"), None),
        (
            (*RAN, "preempted", "preempting", "requeued"),
            RecordedStop("preempted", 6.0, verbatim("preempted 4"), 3.0),
        ),
        (
            (*RAN, "preempted", "preempting", "requeued", "suspended"),
            RecordedStop("preempted", 6.0, verbatim("preempted 4"), 3.0),
        ),
        (
            (*RAN, "asked", "suspending", "suspended"),
            RecordedStop("suspended", 6.0, msg("suspended by its user"), 3.0),
        ),
        (
            (*RAN, "preempted", "asked", "suspended"),
            RecordedStop("suspended", 6.0, msg("suspended by its user"), 3.0),
        ),
        ((*RAN, "attempt-failed", "requeued"), RecordedStop("requeued", 5.0, verbatim("requeued 5"), 3.0)),
        ((*RAN, "resized", "starting", "running"), None),
        (
            (*RAN, "preempted", "requeued", "admitted", "starting", "running", "attempt-failed", "requeued"),
            RecordedStop("requeued", 10.0, verbatim("requeued 10"), 8.0),
        ),
    ],
)
def test_the_last_attempt_that_was_stopped_is_found(
    kinds: tuple[str, ...], stop: RecordedStop | None
) -> None:
    assert last_stop(told(*kinds)) == stop


@pytest.mark.parametrize(
    ("checkpoint", "says"),
    [
        (None, "left no checkpoint in MLP_CHECKPOINT_DIR"),
        (999.0, "saved a checkpoint when it was stopped"),
        (1003.0, "saved a checkpoint when it was stopped"),
        (880.0, "was written 2 min before it was stopped"),
        (400.0, "is of an earlier attempt, 10 min before it was stopped"),
    ],
)
def test_the_kept_checkpoint_is_mentioned(checkpoint: float | None, says: str) -> None:
    assert says in str(kept_words(RecordedStop("preempted", 1000.0, NOTHING, 500.0), checkpoint))


def test_the_newest_file_counts_and_links_are_not_followed(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path) is None
    assert newest_checkpoint(tmp_path / "none") is None
    (tmp_path / "ckpt" / "step-2").mkdir(parents=True)
    assert newest_checkpoint(tmp_path) is None
    for name, at in (("a", 100), ("step-2/b", 300), ("c", 200)):
        path = tmp_path / "ckpt" / name
        path.write_text("")
        os.utime(path, (at, at))
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "x").write_text("")
    (tmp_path / "ckpt" / "link").symlink_to(secret / "x")
    (tmp_path / "ckpt" / "dir").symlink_to(secret)
    assert newest_checkpoint(tmp_path) == 300.0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ckpt").symlink_to(tmp_path / "ckpt")
    assert newest_checkpoint(tmp_path / "other") is None


def test_a_directory_with_very_many_files_is_looked_at_in_part(tmp_path: Path) -> None:
    (tmp_path / "ckpt").mkdir()
    for i in range(MOST_FILES + 1):
        path = tmp_path / "ckpt" / f"{i}"
        path.write_text("")
        os.utime(path, (i + 1, i + 1))
    assert MOST_FILES <= (newest_checkpoint(tmp_path) or 0) <= MOST_FILES + 1
