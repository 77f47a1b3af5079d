"""The certificate of the public port: whether its files can be used, and whether it will do for browsers."""

from __future__ import annotations

import datetime as dt
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from mlp_hub.cli.doctor.checks import FAIL, OK, WARN, Check
from mlp_hub.cli.errors import CommandFailed, MachineFailure
from mlp_hub.settings import Settings
from mlp_language.render import say

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

SOON_DAYS = 14
"""Days before its end from which on a certificate is warned of: those of a month are renewed earlier."""


def check_files(settings: Settings) -> None:
    """Raise MachineFailure where the port's certificate and key cannot be read or do not belong together."""
    if settings.tls is None:
        return
    cert, key = settings.tls
    for path, setting in ((cert, "MLP_TLS_CERT"), (key, "MLP_TLS_KEY")):
        _readable(path, setting)
    try:
        # who has encrypted the key is not asked for a password: nobody is there when the proxy starts again
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=lambda: "")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise MachineFailure(
                say(
                    "The key in {key} is not the one of the certificate in {cert}.",
                    key=str(key),
                    cert=str(cert),
                ),
                say("Name the two that were made together: MLP_TLS_CERT and MLP_TLS_KEY."),
            ) from None
        raise MachineFailure(
            say(
                "{cert} and {key} cannot be used as certificate and key: {error}",
                cert=str(cert),
                key=str(key),
                error=error.reason or str(error),
            ),
            say("Both must be PEM: the certificate first and then its chain; the key without a password."),
        ) from None


def _readable(path: Path, setting: str) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        raise MachineFailure(
            say("{path} cannot be read: {error}", path=str(path), error=error.strerror or str(error)),
            say("Set {setting} to a file that the hub may read.", setting=setting),
        ) from None


def certificate(settings: Settings) -> list[Check]:
    """Tell whether the port's certificate can be used, covers all names, and how long it is valid."""
    if settings.tls is None:
        return []
    try:
        check_files(settings)
    except CommandFailed as failure:
        return [Check("certificate", FAIL, failure.msg, failure.remedy)]
    from cryptography import x509  # noqa: PLC0415 - only who has a certificate needs it

    found = x509.load_pem_x509_certificates(settings.tls[0].read_bytes())[0]
    return [judged(found, settings, dt.datetime.now(dt.UTC))]


def judged(found: Certificate, settings: Settings, now: dt.datetime) -> Check:
    """Say of a certificate what is wrong with its names or dates."""
    renew = say("Renew it; the hub loads the new file by itself.")
    ends = found.not_valid_after_utc
    date = f"{ends:%Y-%m-%d}"
    if ends <= now:
        return Check("certificate", FAIL, say("it ended on {date}: browsers refuse it", date=date), renew)
    if found.not_valid_before_utc > now:
        begins = f"{found.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        return Check(
            "certificate",
            FAIL,
            say("it is valid only from {date} on: browsers refuse it", date=begins),
            say("Check whether this machine's clock is right."),
        )
    if missing := [name for name in _wanted(settings) if not _covers(found, name)]:
        return Check(
            "certificate",
            FAIL,
            say("it is not for {names}: browsers refuse it there", names=", ".join(missing)),
            say("Get a certificate for {names}.", names=", ".join(_wanted(settings))),
        )
    if ends - now < dt.timedelta(days=SOON_DAYS):
        return Check("certificate", WARN, say("it ends on {date}", date=date), renew)
    return Check(
        "certificate",
        OK,
        say("for {names} until {date}", names=", ".join(_wanted(settings)), date=date),
    )


def _wanted(settings: Settings) -> list[str]:
    origins = settings.origins
    return [origins.host, f"*.{origins.users}"] if origins.apart else [origins.host]


def _covers(found: Certificate, name: str) -> bool:
    from cryptography import x509  # noqa: PLC0415

    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False  # browsers have not read the subject's name for years
    given = {dns.lower() for dns in names.get_values_for_type(x509.DNSName)}
    given |= {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    return name in given or (not name.startswith("*.") and f"*.{name.partition('.')[2]}" in given)
