"""`mlp-hub monitor start`: Prometheus and Alertmanager beside a running hub, on this machine's loopback, until Ctrl+C.

Both ask for a login, because whoever reaches Alertmanager may silence alerts, and metrics are never public.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from mlp_hub import durable
from mlp_hub.api.auth.scopes import METRICS_READ
from mlp_hub.api.edge.server import METRICS
from mlp_hub.cli.commands import accounts, monitor
from mlp_hub.cli.errors import CommandFailed, MachineFailure, UsageFailure
from mlp_hub.cli.http import request
from mlp_hub.cli.mail_server import mail_trouble
from mlp_hub.cli.state import ports
from mlp_hub.domain.text import escaped
from mlp_hub.sandbox.shim.linux import die_with_parent
from mlp_hub.service.monitoring import rule_files
from mlp_hub.service.monitoring.alert_delivery import prometheus_config
from mlp_hub.settings import Settings
from mlp_language.render import say

HOST, LOGIN = "127.0.0.1", "mlp-hub"
"""Contract: where both listen, and the name of their login."""
READY_S = 60.0
"""Tuning: seconds in which a program has to answer; a log of weeks is read in some."""
STOP_S = 30.0
"""Tuning: seconds in which a program has to end before it is killed."""
LOOK_S = 0.1
"""Tuning: seconds between two looks whether a program answers."""
_ROOT, _MAIL_PASSWORD = "monitoring", "mail-password"
_TAIL = 8
_PROGRAMS = {
    "Prometheus": ("prometheus",),
    "Alertmanager": ("prometheus-alertmanager", "alertmanager"),
}
"""Names of the programs: of Debian, and of others."""
_HIGHEST = 65535


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Options of the command: ports, receivers of alerts, seconds between scrapes, and days for which samples are kept."""

    prometheus_port: int = 9090
    alertmanager_port: int = 9093
    mail_to: Sequence[str] = ()
    webhooks: Sequence[str] = ()
    interval_s: int = 15
    keep_days: int = 15


def start(settings: Settings, options: WatchOptions) -> int:
    """Start both, print where they are, and return when they were stopped; raise `CommandFailed` where that cannot be."""
    _check(options)
    config = monitor.alertmanager_of(
        settings, options.mail_to, options.webhooks, str(settings.home / _ROOT / _MAIL_PASSWORD)
    )
    accounts.ask_service(settings, "GET", "/health")
    prometheus, alertmanager = map(_program, _PROGRAMS)
    _check_ports(options)
    mailed = not options.mail_to or _print_mail(settings)
    root = settings.home / _ROOT
    _interrupted_by(signal.SIGINT, signal.SIGTERM)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_alone(root))
            password = _write_files(settings, root, options, config)
            places = {
                "Alertmanager": options.alertmanager_port,
                "Prometheus": options.prometheus_port,
            }
            words = {
                "Alertmanager": _alertmanager_words(alertmanager, root, options),
                "Prometheus": _prometheus_words(prometheus, root, options),
            }
            running = {
                name: stack.enter_context(_running(name, words[name], port, root, password))
                for name, port in places.items()
            }
            _print_places(root, options, mailed=mailed)
            _wait(running, root)
        except KeyboardInterrupt:
            sys.stdout.write(say("Prometheus and Alertmanager stop; the hub continues.") + "\n")
        except OSError as error:
            raise CommandFailed(
                say(
                    "{root} cannot be used: {strerror}: {filename}.",
                    root=str(root),
                    strerror=str(error.strerror),
                    filename=str(error.filename),
                )
            ) from error
    return 0


def _print_mail(settings: Settings) -> bool:
    """Print whether the mail server can be used, and return it: otherwise only Alertmanager's log says why nobody gets mail."""
    found = mail_trouble(settings)
    if found is None:
        sys.stdout.write(say("Mail goes through {server}.", server=settings.mail_server) + "\n")
    else:
        why, remedy = found
        told = say(
            "NO ALERT IS MAILED: the mail server {server} cannot be used: {why}",
            server=settings.mail_server,
            why=escaped(why),
        )
        sys.stdout.write(f"{told}\n{remedy}\n")
    sys.stdout.flush()
    return found is None


def _check(options: WatchOptions) -> None:
    for name, port in (
        ("--prometheus-port", options.prometheus_port),
        ("--alertmanager-port", options.alertmanager_port),
    ):
        if not 1 <= port <= _HIGHEST:
            raise UsageFailure(
                say("{name} is {port}; a port is from 1 to {most}.", name=name, port=port, most=_HIGHEST)
            )
    if options.prometheus_port == options.alertmanager_port:
        raise UsageFailure(
            say("Both ports are {port}; give each program its own.", port=options.prometheus_port)
        )
    if options.interval_s < 1 or options.keep_days < 1:
        raise UsageFailure(say("--interval and --keep-days are at least 1."))


def _program(name: str) -> str:
    """Return the path of a program; raise `MachineFailure` with the way to get it."""
    for word in _PROGRAMS[name]:
        if found := shutil.which(word):
            return found
    raise MachineFailure(
        say("{name} is not installed here.", name=name),
        say(
            "As root: apt-get install prometheus prometheus-alertmanager. `make watch` does this as root. Elsewhere: "
            "https://prometheus.io/download, with the programs on PATH."
        ),
    )


def _check_ports(options: WatchOptions) -> None:
    for name, option, port in (
        ("Prometheus", "--prometheus-port", options.prometheus_port),
        ("Alertmanager", "--alertmanager-port", options.alertmanager_port),
    ):
        try:
            ports.check_listens(HOST, port)
        except OSError as error:
            by = ports.owner(port)
            raise MachineFailure(
                say("Port {port}, for {name}, is in use by {by}.", port=port, name=name, by=by)
                if by
                else say(
                    "Port {port}, for {name}, cannot be opened: {strerror}.",
                    port=port,
                    name=name,
                    strerror=str(error.strerror),
                ),
                say("Stop it, or choose another port with {option} PORT.", option=option),
            ) from error


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Make the directory, and hold its lock; raise `CommandFailed` where another one holds it."""
    root.mkdir(mode=0o700, exist_ok=True)
    root.chmod(0o700)
    with (root / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CommandFailed(
                say("Prometheus and Alertmanager run beside this hub already."),
                say("Stop the other `mlp-hub monitor start` first."),
            ) from error
        yield


def _write_files(settings: Settings, root: Path, options: WatchOptions, config: dict[str, Any]) -> str:
    """Write all files of both programs, and return the password of their pages."""
    password = _kept(root / "password", lambda _: True, lambda: secrets.token_urlsafe(18))
    _kept(root / "token", lambda token: _reads(settings, token), lambda: _token(settings))
    config = monitor.alertmanager_of(settings, options.mail_to, options.webhooks, str(root / _MAIL_PASSWORD))
    durable.write(root / _MAIL_PASSWORD, settings.mail_login()[1] if options.mail_to else "")
    durable.write(root / "alertmanager.yml", monitor.as_yaml(config))
    durable.write(root / "rules.yml", monitor.as_yaml(monitor.rules_of(settings)))
    made = prometheus_config(
        scrape_of(settings, root / "token"),
        "rules.yml",
        f"{HOST}:{options.alertmanager_port}",
        (LOGIN, str(root / "password")),
        options.interval_s,
    )
    durable.write(root / "prometheus.yml", monitor.as_yaml(made))
    durable.write(root / "web.yml", monitor.as_yaml({"basic_auth_users": {LOGIN: _hashed(password)}}))
    monitor.write_dashboards(root / "dashboards")
    return password


def scrape_of(settings: Settings, token_file: Path) -> dict[str, Any]:
    """Return the scrape configuration for this machine: each replica where it has a port for metrics, else the public port."""
    host = _local(settings.bind)
    at = f"[{host}]:{settings.port}" if ":" in host else f"{host}:{settings.port}"
    tls = settings.tls is not None
    made = rule_files.scrape_config(
        "https" if tls else "http", at, monitor.path_of_metrics(settings), str(token_file), settings.base
    )
    if tls:
        for job in made["scrape_configs"]:
            # the port is this machine's own, so that no name has to be proven
            job["tls_config"] = {"insecure_skip_verify": True}
    if (listens := settings.metrics_listens) is not None:
        host, first = _local(listens[0]), listens[1]
        of_platform = made["scrape_configs"][0]
        of_platform |= {"scheme": "http", "metrics_path": METRICS}
        of_platform.pop("tls_config", None)
        of_platform["static_configs"] = [
            {
                "targets": [
                    f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                    for port in range(first, first + settings.replicas)
                ]
            }
        ]
    return made


def _local(bind: str) -> str:
    return {"0.0.0.0": HOST, "": HOST, "::": "::1"}.get(bind, bind)  # noqa: S104 - compared, not bound


def _kept(file: Path, is_good: Callable[[str], bool], make: Callable[[], str]) -> str:
    """Return the content of a file that is good still, and write a new one otherwise."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        kept = file.read_text(encoding="utf-8").strip()
        if kept and kept.isascii() and kept.isprintable() and is_good(kept):
            return kept
    made = make()
    durable.write(file, made)
    return made


def _reads(settings: Settings, token: str) -> bool:
    path = monitor.path_of_metrics(settings)
    return request(settings.service_at, "GET", path, token=token).status == 200


def _token(settings: Settings) -> str:
    return accounts.token(
        settings, settings.admin_name, [METRICS_READ], note="mlp-hub monitor start", expires_in=None
    )


def _hashed(password: str) -> str:
    import bcrypt  # noqa: PLC0415 - for this command alone

    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(10)).decode()


def _prometheus_words(program: str, root: Path, options: WatchOptions) -> list[str]:
    return [
        program,
        f"--config.file={root / 'prometheus.yml'}",
        f"--web.config.file={root / 'web.yml'}",
        f"--storage.tsdb.path={root / 'prometheus'}",
        f"--storage.tsdb.retention.time={options.keep_days}d",
        f"--web.listen-address={HOST}:{options.prometheus_port}",
    ]


def _alertmanager_words(program: str, root: Path, options: WatchOptions) -> list[str]:
    return [
        program,
        f"--config.file={root / 'alertmanager.yml'}",
        f"--web.config.file={root / 'web.yml'}",
        f"--storage.path={root / 'alertmanager'}",
        f"--web.listen-address={HOST}:{options.alertmanager_port}",
        "--cluster.listen-address=",  # alone, it needs no port for others
    ]


@contextlib.contextmanager
def _running(
    name: str, words: list[str], port: int, root: Path, password: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the context ends, and enter it once the program answers."""
    parent = os.getpid()
    with _log(root, name).open("wb") as log:
        # in its own session: Ctrl+C comes to us, who stop both; and it ends with us, however we end
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=root,
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509 - this command has one thread
        )
    try:
        _until_ready(name, process, port, root, password)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until_ready(name: str, process: subprocess.Popen[bytes], port: int, root: Path, password: str) -> None:
    login = base64.b64encode(f"{LOGIN}:{password}".encode()).decode()
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            _has_ended(name, process, root)
        answer = request(
            (HOST, port), "GET", "/-/ready", headers={"Authorization": f"Basic {login}"}, timeout=READY_S
        )
        if answer.status == 200:
            return
        time.sleep(LOOK_S)
    raise CommandFailed(
        say("{name} does not answer within {n} s.", name=name, n=round(READY_S)),
        say("Its log is {log}.", log=str(_log(root, name))),
    )


def _wait(running: dict[str, subprocess.Popen[bytes]], root: Path) -> None:
    """Return never: raise `KeyboardInterrupt` when we are stopped, or `CommandFailed` when a program ended."""
    ends = {os.pidfd_open(process.pid): name for name, process in running.items()}
    try:
        ended, _, _ = select.select(list(ends), [], [])
    finally:
        for end in ends:
            os.close(end)
    name = ends[ended[0]]
    running[name].wait()
    _has_ended(name, running[name], root)


def _has_ended(name: str, process: subprocess.Popen[bytes], root: Path) -> NoReturn:
    log = _log(root, name)
    with contextlib.suppress(OSError):
        lines = log.read_text(errors="replace").splitlines()[-_TAIL:]
    raise CommandFailed(
        say("{name} ended with status {status}.", name=name, status=process.returncode),
        say("Its log is {log}.", log=str(log)),
        details="\n".join(lines),
    )


def _log(root: Path, name: str) -> Path:
    return root / f"{name.lower()}.log"


def _interrupted_by(*signals: signal.Signals) -> None:
    """Take these signals as Ctrl+C, also where a shell in the background ignores them for us."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    for signum in signals:
        signal.signal(signum, interrupt)


def _print_places(root: Path, options: WatchOptions, *, mailed: bool) -> None:
    told = [
        *(options.mail_to if mailed else ()),
        *(say("{n} webhooks", n=len(options.webhooks)),) * bool(options.webhooks),
    ]
    receivers = ", ".join(told) or say("nobody: they are shown only (--mail-to, --webhook-file)")
    rows = (
        ("Prometheus", f"http://{HOST}:{options.prometheus_port}"),
        ("Alertmanager", f"http://{HOST}:{options.alertmanager_port}"),
        (say("Login"), say("{name}, with the password in {file}", name=LOGIN, file=str(root / "password"))),
        *([(say("Alerts go to"), receivers)] if told or mailed else []),
        (say("Dashboards"), say("{place}: import the files in Grafana", place=str(root / "dashboards"))),
    )
    width = max(len(title) for title, _ in rows)
    for title, text in rows:
        sys.stdout.write(f"{title.ljust(width)}  {text}\n")
    sys.stdout.write(say("Ctrl+C stops both; the hub continues.") + "\n")
    sys.stdout.flush()
