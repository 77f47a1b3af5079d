"""Mail by the operator's server."""

from __future__ import annotations

import contextlib
import functools
import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Any

SILENT_S = 10.0
"""Safety: seconds for which a server may say nothing."""


def prepare() -> None:
    """Read the certificates of authorities."""
    _context()


@functools.cache
def _context() -> ssl.SSLContext:
    made = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    for path in (
        paths.cafile,
        paths.openssl_cafile,
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/cert.pem",
    ):
        with contextlib.suppress(OSError, ssl.SSLError):
            if path:
                made.load_verify_locations(path)
    return made


def connect(server: dict[str, Any]) -> smtplib.SMTP:
    """Return a connection to the server that was greeted, encrypted and logged in to as the operator said."""
    host, port, security = str(server["host"]), int(server["port"]), server["security"]
    context = _context()
    if security == "tls":
        smtp: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=SILENT_S, context=context)
    else:
        smtp = smtplib.SMTP(host, port, timeout=SILENT_S)
    try:
        smtp.ehlo()
        if security == "starttls":
            smtp.starttls(context=context)
            smtp.ehlo()
        if server["user"]:
            smtp.login(str(server["user"]), str(server["password"]))
    except BaseException:
        smtp.close()
        raise
    return smtp


def message(to: str, sender: str, title: str, body: str) -> EmailMessage:
    """Return a mail; its title is one line, so that a header in it is only text."""
    made = EmailMessage()
    made["From"], made["To"] = sender, to
    made["Subject"] = " ".join(title.split())
    made["Date"], made["Message-ID"] = formatdate(), make_msgid(domain=sender.rpartition("@")[2].strip(">"))
    made["Auto-Submitted"] = "auto-generated"  # no machine answers it
    made.set_content(body)
    return made


def send(asked: dict[str, Any]) -> dict[str, Any]:
    """Send a mail."""
    server = asked["mail"]
    if server is None:
        return {"why": "no-mail"}
    try:
        with connect(server) as smtp:
            smtp.send_message(message(asked["address"], server["sender"], asked["title"], asked["body"]))
    except smtplib.SMTPRecipientsRefused:
        return {"why": "recipient"}
    except smtplib.SMTPResponseException as error:
        return {"why": "status", "status": error.smtp_code}
    return {}
