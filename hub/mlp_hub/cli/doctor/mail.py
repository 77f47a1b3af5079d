"""The doctor's look at the server by which people get mail."""

from __future__ import annotations

import smtplib

from mlp_hub.cli.doctor.checks import FAIL, OK, Check
from mlp_hub.outbound.mail import connect
from mlp_hub.settings import Settings
from mlp_language.render import say


def mail(settings: Settings) -> list[Check]:
    """Tell whether the server can be spoken and logged in to; nothing where no mail is sent."""
    if not settings.mail_server:
        return []
    host, port = settings.mail_place()
    user, password = settings.mail_login()
    server = {
        "host": host,
        "port": port,
        "security": settings.mail_security,
        "user": user,
        "password": password,
    }
    try:
        with connect(server) as smtp:
            smtp.noop()
    except (OSError, smtplib.SMTPException) as error:
        return [
            Check(
                "mail",
                FAIL,
                say("{server}: {error}", server=settings.mail_server, error=str(error)),
                say("Check MLP_MAIL_SERVER, MLP_MAIL_SECURITY and MLP_MAIL_SECRETS."),
            )
        ]
    return [Check("mail", OK, say("mail is sent with {server}", server=settings.mail_server))]
