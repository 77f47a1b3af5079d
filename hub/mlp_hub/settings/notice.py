"""Settings of notices to people about their jobs; a part of `Settings`."""

# ruff: noqa: RUF009 - `setting` makes a dataclass field
from __future__ import annotations

from dataclasses import dataclass
from email.utils import parseaddr
from pathlib import Path

from mlp_hub.settings.values import SettingsError, address, secrets_of, setting


@dataclass(frozen=True, kw_only=True)
class NoticeSettings:
    """Settings of mail, and of the addresses that people give."""

    __slots__ = ()  # `Settings` makes them: of two bases that have some no class can be made

    mail_server: str = setting(
        "",
        "HOST:PORT of the SMTP server by which people are told of their jobs, as smtp.example.org:587; empty: this hub sends no mail.",
        kind="str",
    )
    mail_security: str = setting(
        "starttls",
        "How `mail_server` is spoken to: starttls (port 587 as a rule), tls (from the first byte, 465), none (a server on this machine).",
        kind="str",
        choices=("starttls", "tls", "none"),
    )
    mail_from: str = setting(
        "",
        "Address that mail comes from, as `hub@example.org`, or `MLP Hub <hub@example.org>`.",
        kind="str",
    )
    mail_domains: tuple[str, ...] = setting(
        (),
        "Domains that mail is sent to, as example.org; empty: all.",
        kind="list",
    )
    mail_secrets: Path | None = setting(
        None,
        "A TOML file, readable by its owner alone, with the user and the password for `mail_server`; unset: it asks for none.",
        kind="path",
    )
    notice_services: tuple[str, ...] = setting(
        ("discord", "gchat", "mattermost", "mmost", "mmosts", "msteams", "ntfy", "ntfys", "rocket", "rockets", "slack", "tgram", "workflows", "zulip"),
        "Services that people may be told by besides mail and webhooks, by the schemes of their addresses in Apprise.",
        kind="list",
    )  # fmt: skip
    notice_private: tuple[str, ...] = setting(
        (),
        "Hosts that notices may be sent to though they are at private addresses, as HOST or HOST:PORT; all others must be at addresses "
        "of the internet.",
        kind="list",
    )

    notice_keep_days: float = setting(
        14.0,
        "Notices are shown in the panel for this time.",
        kind="float",
        unit="days",
        low=0.01,
        high=3650,
    )
    notice_together_s: float = setting(
        30.0,
        "Notices that follow one by the same channel within this time are sent together.",
        kind="float",
        unit="s",
        low=0,
        high=86_400,
    )
    notice_give_up_hours: float = setting(
        24.0,
        "A notice that cannot be sent is tried again for this time.",
        kind="float",
        unit="hours",
        low=0.01,
        high=720,
    )

    def check_mail(self) -> None:
        """Raise `SettingsError` where mail could never be sent."""
        if not self.mail_server:
            return
        self.mail_place()
        name, sender = parseaddr(self.mail_from)
        if "@" not in sender or not (name + sender).isprintable():
            raise SettingsError(
                f"MLP_MAIL_FROM is {self.mail_from!r}, and mail needs a sender; name one, as hub@example.org"
            )
        self.mail_login()

    def mail_place(self) -> tuple[str, int]:
        """Return host and port of the server, where there is one; raises `SettingsError`."""
        found = address("MLP_MAIL_SERVER", self.mail_server)
        assert found is not None  # noqa: S101 - who asks sends mail
        return found

    def mail_login(self) -> tuple[str, str]:
        """Return user and password for the server, of the file that says so; raises `SettingsError`."""
        if self.mail_secrets is None:
            return "", ""
        label = f"MLP_MAIL_SECRETS: {self.mail_secrets}"
        found = secrets_of(label, self.mail_secrets)
        if set(found) != {"user", "password"} or not all(isinstance(v, str) for v in found.values()):
            raise SettingsError(f'{label} must say user = "..." and password = "...", and nothing else')
        return found["user"], found["password"]
