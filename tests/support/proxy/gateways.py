"""nginx and Envoy in front, each with its file from docs/gateway/: only names of files, ports and addresses are a test's own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.ports import free_port
from support.waiting import wait_for

FILES = Path(__file__).resolve().parents[3] / "docs" / "gateway"
NGINX_MAIN = """daemon off;
pid {directory}/nginx.pid;
error_log stderr warn;
{user}
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  include {directory}/mlp-hub.conf;
}}
"""


@dataclass(frozen=True, slots=True)
class Gateway:
    """One that runs: `port` speaks TLS; `plain`, of nginx, leads there."""

    kind: str
    port: int
    plain: int


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    """Put a test's own in place of what an operator would write; each must be there."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


@contextlib.contextmanager
def gateway(kind: str, directory: Path, pem: Path, hub: int, port: int = 0) -> Iterator[Gateway]:
    """Run one of them with a certificate and its key in one file, in front of a hub's port."""
    port, plain = port or free_port(), free_port()
    directory.mkdir()
    command = (nginx if kind == "nginx" else envoy)(directory, pem, hub, port, plain)
    with (directory / "log").open("wb") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_for(lambda: _listens(child, port, directory / "log"), message=f"for {kind}")
        yield Gateway(kind, port, plain)
    finally:
        child.terminate()
        child.wait(30)


def nginx(directory: Path, pem: Path, hub: int, port: int, plain: int) -> list[str]:
    """Write its files, have it look at them, and return its command line."""
    text = replaced(
        (FILES / "nginx.conf").read_text(),
        ("listen 443", f"listen 127.0.0.1:{port}"),
        ("listen [::]:443", f"listen [::1]:{port}"),
        ("listen 80", f"listen 127.0.0.1:{plain}"),
        ("listen [::]:80", f"listen [::1]:{plain}"),
        ("server 127.0.0.1:8000", f"server 127.0.0.1:{hub}"),
        ("/etc/ssl/hub.pem", str(pem)),
        ("/etc/ssl/hub.key", str(pem)),
    )
    (directory / "mlp-hub.conf").write_text(text)
    user = "user root;" if os.geteuid() == 0 else ""  # whose directory it is
    (directory / "nginx.conf").write_text(NGINX_MAIN.format(directory=directory, user=user))
    command = ["nginx", "-p", str(directory), "-c", str(directory / "nginx.conf")]
    subprocess.run([*command, "-t"], check=True, capture_output=True)
    return command


def envoy(directory: Path, pem: Path, hub: int, port: int, plain: int) -> list[str]:
    """Write its file, have it look at it, and return its command line."""
    del plain
    text = replaced(
        (FILES / "envoy.yaml").read_text(),
        ("port_value: 443", f"port_value: {port}"),
        ("port_value: 8000", f"port_value: {hub}"),
        ("/etc/ssl/hub.pem", str(pem)),
        ("/etc/ssl/hub.key", str(pem)),
    )
    (directory / "envoy.yaml").write_text(text)
    program = str(Path(sys.executable).parent / "envoy")
    command = [program, "-c", str(directory / "envoy.yaml"), "--log-level", "warn"]
    command += ["--concurrency", "1", "--use-dynamic-base-id"]  # others may run one too
    subprocess.run([*command, "--mode", "validate"], check=True, capture_output=True)
    return command


def _listens(child: subprocess.Popen[bytes], port: int, log: Path) -> bool:
    assert child.poll() is None, log.read_text()
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
