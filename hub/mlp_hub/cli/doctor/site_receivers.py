"""The doctor's look at programs of the site that the hub sends to: the receiver of the audit log, OTLP and MLflow."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from mlp_hub.cli.doctor.checks import FAIL, OK, WARN, Check
from mlp_hub.outbound import alertmanager
from mlp_hub.outbound.mlflow_points import API
from mlp_hub.outbound.posting import ExportTarget, TargetAnswer
from mlp_hub.service.audit.receivers import check_lines, check_syslog
from mlp_hub.service.config import AlertmanagerPolicy, ExportPolicy, SyslogReceiver
from mlp_hub.settings import Settings, SettingsError
from mlp_hub.site_receivers import alertmanager_of, check_heads_webhook, exports_of, syslog_of
from mlp_language.render import say

_UNREACHABLE = (OSError, UnicodeError)  # of a name that is no name of a host


def audit_receivers(settings: Settings) -> list[Check]:
    """Tell whether heads of the audit log may be posted, and its entries shipped; nothing where none are. It sends nothing."""
    found = []
    if settings.audit_webhook:
        found.append(_heads(settings))
    if (receiver := syslog_of(settings)) is not None:
        found.append(_syslog(receiver, settings.audit_ship_syslog))
    if settings.audit_ship_file is not None:
        found.append(_file(settings.audit_ship_file))
    return found


def _heads(settings: Settings) -> Check:
    try:
        check_heads_webhook(settings)
    except SettingsError as error:
        return Check("audit", FAIL, str(error), say("Correct this setting."))
    host = urlsplit(settings.audit_webhook).hostname or ""
    return Check("audit", OK, say("heads of the audit log may be posted to {place}", place=host))


def _syslog(receiver: SyslogReceiver, place: str) -> Check:
    try:
        check_syslog(receiver)
    except ssl.SSLError as error:
        remedy = say(
            "Check MLP_AUDIT_SHIP_CA, which has to sign the certificate of the syslog, and MLP_AUDIT_SHIP_CERTIFICATE, if it asks for one."
        )
        return Check("audit", FAIL, say("{place}: {error}", place=place, error=str(error)), remedy)
    except _UNREACHABLE as error:
        remedy = say(
            "Start the syslog there, or correct MLP_AUDIT_SHIP_SYSLOG. Until then the entries wait, and nothing is lost."
        )
        return Check("audit", FAIL, say("{place}: {error}", place=place, error=str(error)), remedy)
    if receiver.transport == "udp":
        text = say("entries of the audit log go to {place}, which confirms none", place=place)
        return Check("audit", WARN, text, say("Use tls:// or tcp://, so that a lost entry is sent again."))
    return Check("audit", OK, say("entries of the audit log go to {place}", place=place))


def _file(path: Path) -> Check:
    try:
        check_lines(path)
    except OSError as error:
        remedy = say(
            "Let the hub's user append to the file that MLP_AUDIT_SHIP_FILE names, and make its directory. It must not be a link."
        )
        text = say("{place}: {error}", place=str(path), error=error.strerror or str(error))
        return Check("audit", FAIL, text, remedy)
    return Check("audit", OK, say("entries of the audit log go to {place}", place=str(path)))


def exporters(settings: Settings) -> list[Check]:
    """Tell whether the targets of metric points take requests of the hub; nothing where there is none. It sends no point."""
    try:
        policies, asked = exports_of(settings), alertmanager_of(settings)
    except SettingsError as error:
        return [Check("exports", FAIL, str(error), say("Correct this setting."))]
    found = [_target(policy) for policy in policies]
    return found if asked is None else [*found, _alertmanager(asked)]


def _alertmanager(policy: AlertmanagerPolicy) -> Check:
    asked = {"address": policy.address, "data": {"headers": policy.headers, "ca": policy.ca}}
    try:
        said = alertmanager.send(asked)
    except _UNREACHABLE as error:
        said = {"why": _cause(error) or say("no answer")}
    if "failed" in said:
        return Check("exports", OK, say("Alertmanager at {address} answers", address=policy.address))
    why = say("it answered with status {status}", status=said["status"]) if "status" in said else said["why"]
    remedy = say("Check MLP_ALERTMANAGER_URL, MLP_ALERTMANAGER_SECRETS and MLP_ALERTMANAGER_CA.")
    text = say("{target} at {address}: {error}", target="Alertmanager", address=policy.address, error=why)
    return Check("exports", FAIL, text, remedy)


def _target(policy: ExportPolicy) -> Check:
    title, setting = ("OTLP", "ENDPOINT") if policy.kind == "otlp" else ("MLflow", "URL")
    prefix = f"MLP_METRICS_{policy.kind.upper()}"
    place = {"target": title, "address": policy.address}
    try:
        answer = _asked(policy)
    except _UNREACHABLE as error:
        why = _cause(error) or say("no answer")
        remedy = say(
            "Start {target} there, or correct {setting}, or {ca} if its certificate is one of your own. Until then the points wait, and nothing is lost.",
            target=title,
            setting=f"{prefix}_{setting}",
            ca=f"{prefix}_CA",
        )
        return Check("exports", FAIL, say("{target} at {address}: {error}", **place, error=why), remedy)
    if answer.taken:
        return Check("exports", OK, say("metric points go to {target} at {address}", **place))
    text = say("{target} at {address}: it answered with status {status}", **place, status=answer.status)
    if answer.status in (401, 403, 407):
        return Check(
            "exports",
            FAIL,
            text,
            say("Check the token or the password in {setting}.", setting=f"{prefix}_SECRETS"),
        )
    if answer.status in (400, 415) and policy.packed:
        return Check(
            "exports",
            FAIL,
            text,
            say("Set {setting}=none if it takes no gzip.", setting=f"{prefix}_COMPRESSION"),
        )
    return Check(
        "exports", FAIL, text, say("Check the path and the port in {setting}.", setting=f"{prefix}_{setting}")
    )


def _asked(policy: ExportPolicy) -> TargetAnswer:
    """Ask a target for nothing: an export without points, or the name of one experiment."""
    target = ExportTarget(policy.headers, policy.ca)
    if policy.kind == "otlp":
        return target.ask("POST", policy.address, b"", "application/x-protobuf", packed=policy.packed)
    body = json.dumps({"max_results": 1}).encode()
    return target.ask(
        "POST", policy.address.rstrip("/") + API + "experiments/search", body, "application/json"
    )


def _cause(error: BaseException) -> str:
    """Return the words of the innermost error: libraries wrap it with their own objects."""
    while (inner := getattr(error, "reason", None) or error.__cause__) is not None and isinstance(
        inner, BaseException
    ):
        error = inner
    return str(error)
