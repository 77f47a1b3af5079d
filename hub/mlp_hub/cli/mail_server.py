"""A try of the mail server without a mail: for the doctor, and for alerts by mail of `mlp-hub monitor start`."""

from __future__ import annotations

import smtplib
import ssl

from mlp_hub.outbound.mail import connect
from mlp_hub.settings import Settings
from mlp_language.render import say

TLS_PORT = 465
"""Given: the port at which mail servers speak TLS from the first byte."""


def mail_trouble(settings: Settings) -> tuple[str, str] | None:
    """Greet the mail server, encrypt and log in, without a mail; return why that fails and what to set, None if it works."""
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
        return str(error), _remedy(error, settings.mail_security, port)
    return None


def _remedy(error: Exception, security: str, port: int) -> str:  # noqa: PLR0911 - one for each cause
    if isinstance(error, smtplib.SMTPNotSupportedError):
        if "AUTH" in str(error):
            return say("The server takes no login: unset MLP_MAIL_SECRETS, or choose another server.")
        return say(
            "The server has no STARTTLS. Set MLP_MAIL_SECURITY=none for a server on this machine or in a network that you trust, or "
            "MLP_MAIL_SECURITY=tls if it speaks TLS from the first byte."
        )
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return say("The server refuses the login: check the user and the password in MLP_MAIL_SECRETS.")
    if isinstance(error, ssl.SSLCertVerificationError):
        return say(
            "The server's certificate is not trusted: name the server in MLP_MAIL_SERVER as its certificate does, or have this machine trust it."
        )
    if isinstance(error, ssl.SSLError) and security == "tls":
        return say("The server does not speak TLS from the first byte: set MLP_MAIL_SECURITY=starttls.")
    if security != "tls" and port == TLS_PORT:
        return say("At port 465 servers speak TLS from the first byte: set MLP_MAIL_SECURITY=tls.")
    return say("Check MLP_MAIL_SERVER, MLP_MAIL_SECURITY and MLP_MAIL_SECRETS.")
