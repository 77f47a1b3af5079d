"""Why jobs wait, as people are told: what is so now, what was written down of it, and what watchers saw last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlp_hub.scheduler.model import Wait
from mlp_hub.service.board import Board, WaitChanged
from mlp_hub.service.broker import job_topic
from mlp_hub.service.kept import KeptCore, Plan
from mlp_hub.service.tenant_words import Words


class Waits:
    """Says why jobs on the board wait, and remembers what was said, so that only what is new is said again."""

    def __init__(self, board: Board, words: Words, clock: Callable[[], float]) -> None:
        self._board = board
        self._clock = clock
        self._words = words
        self._said: dict[str, Wait] = {}  # what was last written down of those that wait
        self._shown: dict[str, Wait] = {}  # what watchers were last told

    @property
    def said(self) -> Mapping[str, Wait]:
        """What was last written down of those that wait, by uid."""
        return self._said

    def of(self, kept: KeptCore | None, uids: Sequence[str]) -> dict[str, Wait]:
        """Return why each of these jobs waits, of those that do; without a core, as it was last written down."""
        if kept is None:
            return {uid: self._said[uid] for uid in uids if uid in self._said}
        found: dict[str, Wait] = {}
        for uid in uids:
            promised = kept.promised.get(uid)
            if promised is not None:
                found[uid] = self._words.until_stopped(promised)
        told = kept.core.verdicts([u for u in uids if u not in found], self._clock())
        return found | {uid: self._words.discreet(wait) for uid, wait in told.items()}

    def news(self, kept: KeptCore, plan: Plan) -> list[Wait]:
        """Return the reasons that are to be written down: those that are new or not of the kind said before."""
        promised = [self._words.until_stopped(a) for a in plan.admits if a.uid in kept.promised]
        news = []
        for wait in (*map(self._words.discreet, plan.waits), *promised):
            said = self._said.get(wait.uid)
            if said is None or said.verdict.reason is not wait.verdict.reason:
                news.append(wait)
        return news

    def written(self, waits: Sequence[Wait]) -> None:
        """Note that these reasons are stored."""
        for wait in waits:
            if wait.uid in self._board.waiting:
                self._said[wait.uid] = wait

    def forget(self, uid: str) -> None:
        """Note that a job waits no more."""
        self._said.pop(uid, None)

    def show(self, kept: KeptCore | None) -> None:
        """Tell watchers whose reason or place has changed."""
        broker = self._board.broker
        watched = [uid for uid in broker.watched_jobs() if uid in self._board.waiting]
        if not watched and not self._shown:
            return
        now = self.of(kept, watched)
        for uid, wait in now.items():
            if self._shown.get(uid) != wait:
                broker.publish(job_topic(uid), WaitChanged())
        self._shown = now
