"""The doctor's look at the server by which people get mail."""

from __future__ import annotations

from mlp_hub.cli.doctor.checks import FAIL, OK, Check
from mlp_hub.cli.mail_server import mail_trouble
from mlp_hub.settings import Settings
from mlp_language.render import say


def mail(settings: Settings) -> list[Check]:
    """Tell whether the server can be spoken and logged in to; nothing where no mail is sent."""
    if not settings.mail_server:
        return []
    if (found := mail_trouble(settings)) is not None:
        why, remedy = found
        return [Check("mail", FAIL, say("{server}: {error}", server=settings.mail_server, error=why), remedy)]
    return [Check("mail", OK, say("mail is sent with {server}", server=settings.mail_server))]
