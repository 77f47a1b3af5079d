"""Notices: the choices of people about news of jobs, requests and alerts, its channels, and quiet hours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from mlp_hub.domain.jobs import names
from mlp_hub.domain.jobs.job import Phase
from mlp_language.message import Message, msg

DAY_MIN = 24 * 60
"""Given: minutes of a day."""


class NoticeKind(StrEnum):
    """Kind of a notice about a job, a request, an alert or a budget."""

    STARTED = "started"  # its ranks run, also after it was preempted
    FINISHED = "finished"  # it ended well, or was cancelled
    FAILED = "failed"
    PREEMPTED = "preempted"  # it gives way to another and will wait again
    LATE = "late"  # the start that was expected first is reached, and it still waits
    ASKED = "asked"  # somebody asks for what they decide on
    ANSWERED = "answered"  # what they asked for is decided
    IDLE = "idle"  # a notebook server of theirs is not used, and is stopped soon
    IDLE_JOB = (
        "idle_job"  # a job of theirs holds GPUs that it does not use, and ends soon, or has ended for that
    )
    IDLE_TEAM = "idle_team"  # servers and jobs of their team hold what nobody uses; once a day at most
    ALERT = "alert"  # an alert fires, of the platform or of their team
    RESOLVED = "resolved"  # that alert is over
    BUDGET = "budget"  # a team has spent a part of its budget


class AskedFor(StrEnum):
    """Object of a request, or of a notice to a team's admins; it is stored instead of a job's name."""

    PLACE = "place"  # in a team
    QUOTA = "quota"
    SERVER = "server"  # nobody asks: a notice about a notebook server
    BUDGET = "budget"
    IDLE = "idle"  # nobody asks: servers and jobs of a team that nobody uses


class ChannelKind(StrEnum):
    """Ways out of the hub."""

    MAIL = "mail"  # by the operator's server
    WEBHOOK = "webhook"  # JSON to an address
    SERVICE = "service"  # one of those that people use, in its own words


TITLES: dict[NoticeKind, Message] = {
    NoticeKind.STARTED: msg("{job} has started"),
    NoticeKind.FINISHED: msg("{job} has ended"),
    NoticeKind.FAILED: msg("{job} has failed"),
    NoticeKind.PREEMPTED: msg("{job} gives way to another job"),
    NoticeKind.LATE: msg("{job} still waits"),
    NoticeKind.ASKED: msg("A request waits for your answer, of team {tenant}"),
    NoticeKind.ANSWERED: msg("Your request has an answer, of team {tenant}"),
    NoticeKind.IDLE: msg("Your notebook server in team {tenant} is idle"),
    NoticeKind.IDLE_JOB: msg("{job} does not use its GPUs"),
    NoticeKind.IDLE_TEAM: msg("Idle servers and GPUs of team {tenant}"),
    NoticeKind.ALERT: msg("Alert {alert} fires"),
    NoticeKind.RESOLVED: msg("Alert {alert} is over"),
    NoticeKind.BUDGET: msg("Team {tenant} has spent {percent} % of its budget"),
}
"""Headline of each; {job} is its title, {tenant} whose request it is, {alert} the alert's rule, {percent} the spent part."""
TITLES_OF_TEAMS: dict[NoticeKind, Message] = {
    NoticeKind.ALERT: msg("Alert {alert} of team {tenant} fires"),
    NoticeKind.RESOLVED: msg("Alert {alert} of team {tenant} is over"),
}
"""Headlines of alerts that are about one team."""
OF_REQUESTS = frozenset(
    {NoticeKind.ASKED, NoticeKind.ANSWERED, NoticeKind.IDLE, NoticeKind.IDLE_TEAM, NoticeKind.BUDGET}
)
"""Kinds of notices about requests, servers and budgets of teams."""
OF_ALERTS = frozenset({NoticeKind.ALERT, NoticeKind.RESOLVED})
"""Kinds of notices about alerts; `name` is the alert's rule, and `tenant` is empty where it is about the platform."""
WITHOUT_JOB = OF_REQUESTS | OF_ALERTS
"""Kinds of notices that have no job."""

_OF_PHASE = {
    Phase.RUNNING: NoticeKind.STARTED,
    Phase.FINISHED: NoticeKind.FINISHED,
    Phase.CANCELLED: NoticeKind.FINISHED,
    Phase.FAILED: NoticeKind.FAILED,
    Phase.PREEMPTING: NoticeKind.PREEMPTED,
}


def kinds_of(phases: Iterable[Phase]) -> tuple[NoticeKind, ...]:
    """Return the kinds of notices about a job that comes to these phases, in order."""
    return tuple(_OF_PHASE[phase] for phase in phases if phase in _OF_PHASE)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Time of each day in which nothing is sent, in minutes since midnight; it may go past that."""

    begin: int
    end: int

    def left(self, minute: float) -> float:
        """Return how many minutes of it are left at a minute of the day; 0: it is not quiet."""
        inside = (
            self.begin <= minute < self.end if self.begin < self.end else not self.end <= minute < self.begin
        )
        return (self.end - minute) % DAY_MIN or DAY_MIN if inside else 0.0


@dataclass(frozen=True, slots=True)
class Channel:
    """One way to somebody. Of its address only what is `shown` is ever told; `sent` is the newest notice that went this way."""

    user: str
    name: str
    kind: ChannelKind
    shown: str
    events: tuple[NoticeKind, ...]
    sealed: bytes = field(repr=False)
    sent: int
    changed_at: float
    tries: int = 0  # in a row that failed
    next_at: float = 0.0  # nothing is sent before
    told_at: float | None = None
    trouble: Message | None = None  # why it failed last; None: it did not

    @property
    def bound(self) -> bytes:
        """Data that its address is sealed with, so that a writer to the database cannot give it to another user."""
        return f"channel\0{self.user}\0{self.name}\0{self.kind.value}".encode()


@dataclass(frozen=True, slots=True)
class NoticeChoice:
    """Choices of a user: the events that their browser shows, its quiet hours, and the user's time zone."""

    user: str
    browser: tuple[NoticeKind, ...] = ()
    quiet: QuietHours | None = None
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Notice:
    """Notice about a job, a request or an alert. The last two have no `uid`; `name` is the request's object, or the alert's rule.

    `id` grows with time.
    """

    id: int
    user: str
    kind: NoticeKind
    uid: str
    name: str
    run: int
    tenant: str
    at: float
    text: Message

    @property
    def job(self) -> str:
        """How the job is named: its run is said from the second on; empty where it is of none."""
        return "" if self.kind in WITHOUT_JOB else names.title(self.name, self.run)


def wanted(choice: NoticeChoice, channels: Sequence[Channel]) -> frozenset[NoticeKind]:
    """Return all that somebody wants to be told, wherever."""
    return frozenset(choice.browser).union(*(one.events for one in channels))
