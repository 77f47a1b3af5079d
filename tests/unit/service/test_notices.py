"""What people are told, when it is quiet, and which addresses they may give."""

from __future__ import annotations

import json
import socket
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest

from mlp_hub.domain.errors import Refused
from mlp_hub.domain.jobs.job import Phase
from mlp_hub.domain.notices.notice import ChannelKind, Notice, NoticeKind, QuietHours, kinds_of
from mlp_hub.domain.notices.notice_queries import unknown_key
from mlp_hub.outbound import posting, services, webhook
from mlp_hub.outbound.mail import message
from mlp_hub.service.config import MailPolicy, NoticePolicy
from mlp_hub.service.notices.addresses import parsed
from mlp_hub.service.notices.outbox import quiet_for
from mlp_hub.service.notices.worker import title_of
from mlp_language.message import Message

MAIL = MailPolicy("smtp.example.org", 587, "starttls", "hub@example.org")
POLICY = NoticePolicy(mail=MAIL, services=("slack",))
NOON = 1_790_164_800.0  # 2026-09-23 12:00 UTC


def test_quiet_hours_go_past_midnight():
    night = QuietHours(22 * 60, 7 * 60)
    assert [night.left(hour * 60) for hour in (21, 22, 0, 6, 7, 12)] == [0, 540, 420, 60, 0, 0]


def test_quiet_hours_within_a_day():
    lesson = QuietHours(9 * 60, 10 * 60)
    assert [lesson.left(minute) for minute in (539, 540, 599.5, 600)] == [0, 60, 0.5, 0]


def test_it_is_quiet_where_somebody_lives():
    night = QuietHours(22 * 60, 7 * 60)
    assert quiet_for(night, ZoneInfo("UTC"), NOON) == 0
    assert quiet_for(night, ZoneInfo("America/Los_Angeles"), NOON) == 2 * 3600  # five in the morning
    assert quiet_for(None, ZoneInfo("UTC"), NOON) == 0


def test_each_phase_of_a_job_causes_the_expected_notices():
    told = {phase: kinds_of((phase,)) for phase in Phase}
    assert {phase: kinds for phase, kinds in told.items() if kinds} == {
        Phase.RUNNING: (NoticeKind.STARTED,),
        Phase.FINISHED: (NoticeKind.FINISHED,),
        Phase.CANCELLED: (NoticeKind.FINISHED,),
        Phase.FAILED: (NoticeKind.FAILED,),
        Phase.PREEMPTING: (NoticeKind.PREEMPTED,),
    }


def titled(kind: NoticeKind, name: str, tenant: str, **args: int) -> str:
    text = Message("{tenant} has spent a lot", {"tenant": tenant, **args})
    return str(title_of(Notice(1, "lea", kind, "", name, 1, tenant, NOON, text)))


def test_a_headline_names_the_team_and_the_spent_part():
    assert titled(NoticeKind.BUDGET, "budget", "red", percent=109) == "Team red has spent 109 % of its budget"
    older = titled(NoticeKind.BUDGET, "budget", "red", n=100)
    assert older == "Team red has spent 100 % of its budget"
    assert titled(NoticeKind.IDLE, "server", "red") == "Your notebook server in team red is idle"
    assert (
        titled(NoticeKind.ALERT, "MLPTenantOverQuota", "red") == "Alert MLPTenantOverQuota of team red fires"
    )
    assert titled(NoticeKind.RESOLVED, "MLPTenantOverQuota", "red") == (
        "Alert MLPTenantOverQuota of team red is over"
    )
    assert titled(NoticeKind.ALERT, "MLPNodeLost", "") == "Alert MLPNodeLost fires"


@pytest.mark.parametrize(
    ("given", "kind", "shown"),
    [
        ("mailto:ann@example.org", ChannelKind.MAIL, "***@example.org"),
        (
            "https://hooks.example.org:8443/a?token=secret",
            ChannelKind.WEBHOOK,
            "https://hooks.example.org:8443",
        ),
        ("slack://TokenA/TokenB/TokenC", ChannelKind.SERVICE, "slack"),
    ],
)
def test_only_the_non_secret_part_of_an_address_is_shown(given, kind, shown):
    assert parsed(given, POLICY)[::2] == (kind, shown)


@pytest.mark.parametrize(
    "given",
    [
        "file:///etc/passwd",
        "discord://1/2",  # the operator did not name it
        "mailto:ann@example.org\r\nBcc: all@example.org",
        "mailto:ann@example.org?bcc=all@example.org",
        "mailto:ann@example.org,bob@example.org",
        "mailto:Ann <ann@example.org>",
        "https://user:password@example.org/",
        "https:///nowhere",
        "https://example.org:0/",
        "https://example.org:99999/",
        "https://example.org/a b",
        "example.org",
    ],
)
def test_addresses_that_nobody_may_give(given):
    with pytest.raises(Refused):
        parsed(given, POLICY)


def test_mail_goes_to_the_domains_that_the_operator_named():
    policy = NoticePolicy(mail=MAIL, mail_domains=("example.org",))
    assert parsed("mailto:ann@EXAMPLE.org", policy)
    with pytest.raises(Refused, match=r"example\.org only"):
        parsed("mailto:ann@elsewhere.org", policy)
    with pytest.raises(Refused, match="sends no mail"):
        parsed("mailto:ann@example.org", NoticePolicy())


def test_a_title_makes_no_header():
    made = message("ann@example.org", "hub@example.org", "digits\r\nBcc: all@example.org\n\nhello", "body")
    assert made["Subject"] == "digits Bcc: all@example.org hello"
    assert made["Bcc"] is None
    assert made.as_bytes().count(b"\nBcc:") == 0


def test_an_address_that_takes_a_connection_and_says_nothing_is_told_so(monkeypatch):
    monkeypatch.setattr(posting, "SILENT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/hook"
        assert webhook.send({"address": address, "data": {}}) == {"why": "silent"}


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("workflows://h/a/b/?template=/etc/hostname", "template"),
        ("ntfy://h/t?priority=high&attach=/etc/passwd", "attach"),
        ("discord://1/2?Template=x", "template"),
        ("slack://a/b/c?to=x;template=y", "template"),
        ("slack://a/b/c?to=x#&template=y", "template"),
        ("slack://a/b/c?to=x?template=y", "template"),
        ("discord://1/2?te%6dplate=y", "te%6dplate"),
        ("discord://1/2?+header=y", "+header"),
        ("other://h?to=y", "to"),
    ],
)
def test_attack_a_key_that_a_service_is_not_known_by_is_refused(address: str, key: str) -> None:
    assert unknown_key(address) == key
    assert services.made(address) is None, "nor is what was stored before"


def test_keys_that_people_use_are_taken() -> None:
    for address in (
        "ntfy://h/t?priority=high&tags=a",
        "discord://1/2",
        "tgram://t/c/?topic=1&format=text",
        "mmost://h/t?",
    ):
        assert unknown_key(address) is None


@pytest.mark.filterwarnings("ignore")  # of what the library imports
@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://chat.googleapis.com/v1/spaces/AAAA/messages?key=AIza-key&token=to-ken", "Google Chat"),
        (
            "https://prod-15.uksouth.logic.azure.com:443/workflows/"
            + "a1b2c3d4" * 4
            + "/triggers/manual/paths/invoke"
            "?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=abcdefghijklmnopqrstuvwxyz0123456789",
            "Power Automate",
        ),
        ("https://discord.com/api/webhooks/" + "1" * 18 + "/" + "a" * 68, "Discord"),
    ],
)
def test_a_webhook_that_a_service_gave_out_is_known_by_itself(address: str, name: str) -> None:
    found = services.made(address)
    assert found is not None
    assert name in str(found.service_name)
    more = "&" if "?" in address else "?"
    assert services.made(f"{address}{more}template=/etc/hostname") is None, "then it is a webhook like others"


@pytest.mark.filterwarnings("ignore")  # of what the library imports
def test_attack_tags_in_a_text_are_not_markup_for_a_service_that_reads_html(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[str] = []

    def post(*_: object, data: str, **__: object) -> SimpleNamespace:
        sent.append(json.loads(data)["text"])
        return SimpleNamespace(status_code=200, content=b"", headers={})

    monkeypatch.setattr("requests.post", post)
    address = "tgram://123456789:AAFJtPQ4kL1sdfsdfsdfsdfsdfsdfsdfsdf/12315544/"
    text = 'bob asks to join red: <b>now <a href="http://evil.example">log in</a>'
    assert services.send({"address": address, "title": "A request", "body": text}) == {}
    assert "<b>now" not in sent[0]
    assert "<a href" not in sent[0], "a link that shows another address than its own"
    assert "bob asks to join red" in sent[0]
