"""People are told of their jobs by a real mail server and a real HTTP server, whatever is killed in between."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from dataclasses import replace
from email import message_from_bytes
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from aiosmtpd.controller import Controller

from mlp_api.platform.notices import ChannelSet, NotificationsSet, QuietTime
from mlp_api.teams.teams import JoinAsk, QuotaAsk
from mlp_api.types import TenantCreate
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.notices.notice import NoticeKind
from mlp_hub.domain.tenants.tenant import Role
from mlp_hub.service.config import MailPolicy, NoticePolicy
from support.ports import free_port
from support.rigs.platform_rig import FAST, Rig
from support.waiting import until as until_async


async def until(look):
    """Wait until something is true."""

    async def looked():
        return look()

    await until_async(looked)


class Receiver(ThreadingHTTPServer):
    """Takes what is posted, while its status is 200."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got = []
        self.tried = 0
        self.status = 200
        self.location = None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/hook"

    @property
    def told(self):
        return [(one["job"], one["event"]) for post in self.got for one in post["notices"]]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        found = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.tried += 1
        if self.server.status == 200:
            self.server.got.append(found)
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()

    def log_message(self, *args):
        pass


class Inbox:
    """Handles mail of a real SMTP server."""

    def __init__(self):
        self.mails = []

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 - the name that the server calls
        self.mails.append((envelope.rcpt_tos, message_from_bytes(envelope.content, policy=default)))
        return "250 OK"


@pytest.fixture
def receiver():
    with Receiver() as made:
        yield made
        made.shutdown()


def policy(*private, mail=None):
    notices = NoticePolicy(
        mail=mail,
        services=("ntfy", "slack"),
        private=private,
        pages="http://hub.example.org/services/mlp/",
        together_s=0.0,
        retry_s=0.01,
        retry_max_s=0.05,
    )
    return replace(FAST, notices=notices)


@contextlib.asynccontextmanager
async def rig_of(root, made):
    rig = Rig(root, policy=made)
    await rig.start()
    try:
        yield rig
    finally:
        await rig.close()


def wants(address, *events, **more):
    channel = ChannelSet(name="hook", address=address, events=list(events))
    return NotificationsSet(channels=[channel], **more)


async def test_a_webhook_receives_starts_and_ends(tmp_path, receiver):
    async with rig_of(tmp_path, policy("127.0.0.1")) as rig:
        await rig.platform.notices.store_choices(
            "ann", wants(receiver.url, "started", "finished", "failed"), "ann"
        )
        await rig.submit("digits", sim={"DURATION": 1000})
        await rig.submit("others", user="bob", sim={"DURATION": 0})
        await until(lambda: receiver.told)
        rig.end(await rig.until("digits", "running"))
        await until(lambda: ("digits", "finished") in receiver.told)
        assert receiver.told == [("digits", "started"), ("digits", "finished")]
        first = receiver.got[0]["notices"][0]
        assert first["link"] == "http://hub.example.org/services/mlp/jobs/ann/digits@1"
        assert first["title"] == "digits has started"
        (shown,) = (await rig.platform.notices.get("ann")).channels
        assert (shown.kind, shown.shown, shown.trouble) == (
            "webhook",
            receiver.url.removesuffix("/hook"),
            None,
        )


async def test_mail_comes_by_the_operators_server(tmp_path):
    inbox = Inbox()
    smtp = Controller(inbox, hostname="127.0.0.1", port=free_port())
    smtp.start()
    try:
        mail = MailPolicy("127.0.0.1", smtp.port, "none", "MLP Hub <hub@example.org>")
        async with rig_of(tmp_path, policy(mail=mail)) as rig:
            await rig.platform.notices.store_choices(
                "ann", wants("mailto:ann@example.org", "finished"), "ann"
            )
            await rig.submit("digits", sim={"DURATION": 0})
            await until(lambda: inbox.mails)
            ((to, found),) = inbox.mails
            assert to == ["ann@example.org"]
            assert found["Subject"] == "digits has ended"
            assert "http://hub.example.org/services/mlp/jobs/ann/digits@1" in found.get_content()
    finally:
        smtp.stop()


async def test_failure_and_preemption_come_by_mail_with_their_cause(tmp_path):
    inbox = Inbox()
    smtp = Controller(inbox, hostname="127.0.0.1", port=free_port())
    smtp.start()
    try:
        mail = MailPolicy("127.0.0.1", smtp.port, "none", "MLP Hub <hub@example.org>")
        async with rig_of(tmp_path, policy(mail=mail)) as rig:
            address = "mailto:ann@example.org"
            await rig.platform.notices.store_choices("ann", wants(address, "failed", "preempted"), "ann")
            await rig.submit("cheap", cpu=3, priority="low", sim={"DURATION": 1000})
            await rig.until("cheap", "running")
            await rig.submit("urgent", user="bob", cpu=3, priority="high", sim={"DURATION": 1000})
            await until(lambda: inbox.mails)
            await rig.submit("broken", cpu=1, sim={"DURATION": 0, "EXIT": 3})
            await until(lambda: len(inbox.mails) == 2)
            preempted, failed = (found for _, found in inbox.mails)
            assert preempted["Subject"] == "cheap gives way to another job"
            assert "Stopped for job urgent of bob: its priority is higher." in preempted.get_content()
            assert failed["Subject"] == "broken has failed"
            assert "3" in failed.get_content()
    finally:
        smtp.stop()


async def test_attack_an_address_that_hangs_keeps_nobody_else_from_being_told(tmp_path, receiver):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and never says a word
        async with rig_of(tmp_path, policy("127.0.0.1")) as rig:
            hook = f"http://127.0.0.1:{silent.getsockname()[1]}/hook"
            await rig.platform.notices.store_choices("eve", wants(hook, "finished"), "eve")
            await rig.platform.notices.store_choices("ann", wants(receiver.url, "finished"), "ann")
            for n in range(3):
                await rig.submit(f"flood-{n}", user="eve", sim={"DURATION": 0})
                await rig.until(f"flood-{n}", "finished", user="eve")
            await rig.submit("digits", sim={"DURATION": 0})
            await until(lambda: receiver.told)
            (channel,) = rig.db.read_now(lambda tx: tx.notices.channels("eve"))
            assert channel.told_at is None


async def test_a_death_between_event_and_delivery_loses_nothing_and_repeats_nothing(tmp_path, receiver):
    receiver.status = 500
    async with rig_of(tmp_path, policy("127.0.0.1")) as rig:
        await rig.platform.notices.store_choices("ann", wants(receiver.url, "finished"), "ann")
        await rig.submit("digits", sim={"DURATION": 0})
        await until(lambda: receiver.tried)  # the event is stored, and it could not be told
        sender = rig.platform.notices._sender
        rig.crash()
        await sender.stop()
        receiver.status = 200
        await rig.start()
        await until(lambda: receiver.told)
        assert receiver.told == [("digits", "finished")]
        # what was sent and is not stored as sent would come once more
        await until(lambda: rig.db.read_now(lambda tx: tx.notices.channels("ann"))[0].told_at)
        await rig.restart()
        await rig.submit("again", sim={"DURATION": 0})
        await until(lambda: ("again", "finished") in receiver.told)
        assert receiver.told == [("digits", "finished"), ("again", "finished")]


async def test_when_it_is_quiet_nothing_is_sent_until_it_is_over(tmp_path, receiver):
    async with rig_of(tmp_path, policy("127.0.0.1")) as rig:
        now = time.gmtime(rig.clock())
        quiet = QuietTime(begin=f"{now.tm_hour:02}:00", until=f"{(now.tm_hour + 2) % 24:02}:00")
        await rig.platform.notices.store_choices("ann", wants(receiver.url, "finished", quiet=quiet), "ann")
        await rig.submit("digits", sim={"DURATION": 0})
        await rig.submit("more", sim={"DURATION": 0})
        known = lambda: rig.db.read_now(lambda tx: tx.notices.newest("ann"))  # noqa: E731
        await until(lambda: known() == 2)
        (new,) = await rig.platform.notices.new("ann", None, 10)
        assert new.quiet
        (untried,) = (await rig.platform.notices.get("ann")).channels
        tested = await rig.platform.notices.try_out("ann", "hook")  # this is asked for
        assert tested.taken
        (tried,) = (await rig.platform.notices.get("ann")).channels
        assert (untried.told_at, tried.told_at is None, tried.trouble) == (None, False, None)
        assert receiver.told == [("test", "test")]
        rig.ahead = 3 * 3600
        rig.platform.notices._look({"ann"})
        await until(lambda: len(receiver.told) == 3)
        assert {job for job, _ in receiver.told} == {"test", "digits", "more"}
        assert len(receiver.got) == 2  # what waited goes together


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "169.254.169.254"],
)
async def test_attack_an_address_inside_is_refused_at_once_and_not_spoken_to_later(tmp_path, receiver, host):
    port = receiver.server_address[1]
    asked = wants(f"http://{host}:{port}/hook", "finished")
    async with rig_of(tmp_path, policy()) as rig:
        with pytest.raises(Refused, match=r"this address is private; .* MLP_NOTICE_PRIVATE"):
            await rig.platform.notices.store_choices("eve", asked, "eve")
        assert not (await rig.platform.notices.get("eve")).channels
    async with rig_of(tmp_path, policy(host)) as rig:
        await rig.platform.notices.store_choices("eve", asked, "eve")
    async with rig_of(tmp_path, policy()) as rig:  # what a name means may change, as may the operator's mind
        tested = await rig.platform.notices.try_out("eve", "hook")
        assert not tested.taken
        assert str(tested.trouble) == "the address is private, and the hub's operator does not allow it"
        (kept,) = (await rig.platform.notices.get("eve")).channels
        assert (kept.told_at, str(kept.trouble)) == (None, str(tested.trouble))
        assert not receiver.tried


async def test_attack_a_service_of_ones_own_leads_inside(tmp_path, receiver):
    async with rig_of(tmp_path, policy()) as rig:
        port = receiver.server_address[1]
        asked = wants(f"ntfy://127.0.0.1:{port}/topic", "finished")
        with pytest.raises(Refused, match="this address is private"):
            await rig.platform.notices.store_choices("eve", asked, "eve")
        with pytest.raises(Refused):
            await rig.platform.notices.store_choices("eve", wants("slack://wrong", "finished"), "eve")
    async with rig_of(tmp_path, policy("127.0.0.1")) as rig:
        await rig.platform.notices.store_choices("eve", asked, "eve")
    async with rig_of(tmp_path, policy()) as rig:
        assert not (await rig.platform.notices.try_out("eve", "hook")).taken
        assert not receiver.tried


async def test_an_address_that_cannot_be_looked_up_now_and_services_without_a_host_are_taken(tmp_path):
    slack = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
    async with rig_of(tmp_path, policy()) as rig:
        for address in ("https://later.invalid/hook", "ntfy://1234567", slack):
            await rig.platform.notices.store_choices("ann", wants(address, "finished"), "ann")
            assert (await rig.platform.notices.get("ann")).channels


async def test_attack_a_user_looks_up_one_address_at_a_time(tmp_path):
    async with rig_of(tmp_path, policy()) as rig:
        asked = wants("https://later.invalid/hook", "finished")
        both = [rig.platform.notices.store_choices("eve", asked, "eve") for _ in range(2)]
        done = await asyncio.gather(*both, return_exceptions=True)
        assert sum(isinstance(one, Refused) for one in done) == 1
        await rig.platform.notices.store_choices("eve", asked, "eve")


async def test_attack_a_redirect_is_not_followed(tmp_path, receiver):
    receiver.status, receiver.location = 302, "http://169.254.169.254/latest"
    async with rig_of(tmp_path, policy("127.0.0.1")) as rig:
        await rig.platform.notices.store_choices("eve", wants(receiver.url, "finished"), "eve")
        tested = await rig.platform.notices.try_out("eve", "hook")
        assert str(tested.trouble) == "it answered with status 302"
        assert receiver.tried == 1


async def test_an_address_is_sealed_and_never_shown(tmp_path, receiver):
    async with rig_of(tmp_path, policy("127.0.0.1")) as rig:
        secret = "T0kenOfTheHook"
        told = await rig.platform.notices.store_choices(
            "ann", wants(f"{receiver.url}?t={secret}", "failed"), "ann"
        )
        assert secret not in repr(told)
        await asyncio.to_thread(rig.db.read_now, lambda tx: None)
        (row,) = rig.db.read_now(lambda tx: tx.notices.channels("ann"))
        assert secret.encode() not in row.sealed
        kept = NotificationsSet(channels=[ChannelSet(name="hook", events=["finished"])])
        await rig.platform.notices.store_choices("ann", kept, "ann")  # the address stays
        assert (await rig.platform.notices.try_out("ann", "hook")).taken
        with pytest.raises(Refused):
            await rig.platform.notices.try_out("bob", "hook")
        stolen = replace(row, user="bob")  # who writes to the database makes it nobody else's
        await rig.db.write(lambda tx: tx.notices.put_channel(stolen))
        assert not (await rig.platform.notices.try_out("bob", "hook")).taken


async def test_a_start_that_is_late_is_told_once(tmp_path, receiver):
    async with rig_of(tmp_path, policy("127.0.0.1")) as rig:
        await rig.platform.notices.store_choices("ann", wants(receiver.url, "late"), "ann")
        await rig.submit("long", user="bob", cpu=4, time_limit=600, sim={"DURATION": 1000})
        job = await rig.submit("digits", cpu=4)
        await rig.platform.notices.notice_late_starts()
        waiting = rig.platform.board.waiting
        await until(lambda: any(one.spec.name == "digits" for one in waiting.values()))
        (uid,) = [uid for uid, one in waiting.items() if one.spec.name == "digits"]
        rig.platform.notices._expected[uid] = rig.clock() - 1
        await rig.platform.notices.notice_late_starts()
        await rig.platform.notices.notice_late_starts()
        await until(lambda: receiver.told)
        assert receiver.told == [("digits", NoticeKind.LATE.value)]
        assert job.name == "digits"


async def test_a_user_who_left_gets_no_notices(tmp_path, receiver):
    async with rig_of(tmp_path, policy("127.0.0.1")) as rig:
        await rig.platform.notices.store_choices("ann", wants(receiver.url, "finished"), "ann")
        assert await rig.platform.notices.remove("ann")
        assert (await rig.platform.notices.get("ann")).channels == []
        await rig.submit("digits", sim={"DURATION": 0})
        await rig.until("digits", "finished")
        assert rig.db.read_now(lambda tx: tx.notices.newest("ann")) == 0


async def test_approvers_are_notified_of_requests_and_requesters_of_the_answers(tmp_path, receiver):
    async with rig_of(tmp_path, policy("127.0.0.1")) as rig:
        p = rig.platform
        await p.tenants.create(TenantCreate(name="red", cpu=2.0, joining="asked"), actor="root")
        await p.tenants.set_member("red", "ann", Role.ADMIN, actor="root")
        for who in ("ann", "bob", "root"):
            await p.notices.store_choices(who, wants(receiver.url, "asked", "answered"), who)
        await p.joining.ask("bob", JoinAsk(tenant="red", note="for the paper"))
        await until(lambda: len(receiver.got) == 1)
        await p.joining.approve("red", "bob", actor="ann")
        await until(lambda: len(receiver.got) == 2)
        asked = QuotaAsk(cpu=4.0, reason="it is May")
        assert p.notices.outbox.wanting(NoticeKind.ASKED) == ["ann", "bob", "root"]
        request = await p.quota_requests.ask("red", asked, actor="ann", of=["root"])
        await until(lambda: len(receiver.got) == 3)
        await p.quota_requests.accept("red", request.id, "gladly", actor="root")
        await until(lambda: len(receiver.got) == 4)
        told = [
            (one["user"], one["event"], one["job"], one["text"])
            for post in receiver.got
            for one in post["notices"]
        ]
        assert told == [
            ("ann", "asked", "", "bob asks to join red: for the paper"),
            ("bob", "answered", "", "ann accepted you: you are a member of red now."),
            ("root", "asked", "", "ann asks for more quota of red: it is May"),
            ("ann", "answered", "", "root accepted your request for red. gladly"),
        ]
        titles = [post["notices"][0]["title"] for post in receiver.got]
        assert titles[:2] == [
            "A request waits for your answer, of team red",
            "Your request has an answer, of team red",
        ]


async def test_attack_the_words_of_a_stranger_call_nobody_in_the_chat_of_an_admin(tmp_path, receiver):
    async with rig_of(tmp_path, policy("127.0.0.1")) as rig:
        p, port = rig.platform, receiver.server_address[1]
        await p.tenants.create(TenantCreate(name="red", cpu=2.0, joining="asked"), actor="root")
        await p.tenants.set_member("red", "ann", Role.ADMIN, actor="root")
        await p.notices.store_choices("ann", wants(f"ntfy://127.0.0.1:{port}/topic", "asked"), "ann")
        note = "@everyone <!channel> [log in](http://evil.example)"
        await p.joining.ask("bob", JoinAsk(tenant="red", note=note))
        await until(lambda: receiver.got)
        said = receiver.got[0]["message"]
        assert "bob asks to join red: " in said
        for mark in ("@everyone", "<!", "]("):
            assert mark not in said
        assert said.replace("\N{ZERO WIDTH SPACE}", "").count(note) == 1
        assert said.rstrip().endswith("http://hub.example.org/services/mlp/tenants/red")
