"""Requests over HTTP to addresses outside of the hub, and what the answers of targets of metric points mean."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import certifi
import urllib3

SILENT_S = 10.0
"""Safety: seconds for which a connection is waited for, and an answer's next bytes."""
MOST_ANSWER = 4 * 2**20
"""Safety: bytes of an answer that are read: a run of MLflow comes with its last values."""
LATER = frozenset({*range(300, 400), 401, 403, 404, 405, 407, 408, 415, 425, 429, 502, 503, 504})
"""Statuses after which the same is sent again: the target is busy, or its address, its token or its packing is wrong, and not the points."""
PACKING = 1
"""Tuning: level of gzip: processor time, for bytes of points, of which even the least packing takes most."""
TOO_LARGE = 413
"""Given: status of a request that is too large."""


def connections(ca: str = "") -> urllib3.PoolManager:
    """Return connections that check certificates and repeat nothing. `ca` are those of authorities in PEM; empty: of public ones."""
    return urllib3.PoolManager(
        timeout=urllib3.Timeout(connect=SILENT_S, read=SILENT_S),
        retries=False,
        cert_reqs="CERT_REQUIRED",
        ca_cert_data=ca or None,
        ca_certs=None if ca else certifi.where(),
    )


def post(address: str, body: bytes, media_type: str, ca: str = "") -> int:
    """Post a body and return the status; the answer is not read, and no redirect is followed. Raises `TimeoutError`."""
    try:
        answer = connections(ca).request(
            "POST",
            address,
            body=body,
            headers={"Content-Type": media_type, "User-Agent": "mlp-hub"},
            redirect=False,
            preload_content=False,
        )
    except urllib3.exceptions.TimeoutError as error:
        raise TimeoutError from error
    answer.close()
    return answer.status


def place_of(address: str) -> str:
    """Return HOST:PORT of an operator's target, which is the only place that its process connects to."""
    parts = urlsplit(address)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


@dataclass(frozen=True, slots=True)
class TargetAnswer:
    """Answer of a target: the status, and the first `MOST_ANSWER` bytes. `whole`: there were no more."""

    status: int
    body: bytes
    whole: bool = True

    @property
    def taken(self) -> bool:
        """Whether the target did what it was asked."""
        return 200 <= self.status < 300

    def outcome(self) -> dict[str, Any]:
        """Return what becomes of the points: taken, later, too-large, fault (of the target), or refused."""
        if self.taken:
            return {}
        if self.status in LATER:
            why = "later"
        elif self.status == TOO_LARGE:
            why = "too-large"
        else:
            why = "fault" if self.status >= 500 else "refused"
        return {"why": why, "status": self.status}

    def json(self) -> dict[str, Any]:
        """Return the object of the answer; an empty one if it has none."""
        try:
            found = json.loads(self.body) if self.whole else {}
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


class ExportTarget:
    """One target: each request has its headers, and no redirect is followed, which would carry them elsewhere."""

    def __init__(self, headers: Mapping[str, str], ca: str = "") -> None:
        self._headers = {"User-Agent": "mlp-hub", **headers}
        self._pool = connections(ca)

    def ask(
        self, method: str, address: str, body: bytes | None = None, kind: str = "", *, packed: bool = False
    ) -> TargetAnswer:
        """Send a request, with its body in gzip if `packed`; raise `TimeoutError` if nothing comes for some seconds."""
        headers = self._headers | ({"Content-Type": kind} if kind else {})
        if packed and body is not None:
            headers, body = {**headers, "Content-Encoding": "gzip"}, gzip.compress(body, PACKING, mtime=0)
        try:
            answer = self._pool.request(
                method, address, body=body, headers=headers, redirect=False, preload_content=False
            )
            # as it comes: what is packed could become any size
            found = answer.read(MOST_ANSWER + 1, decode_content=False) or b""
        except urllib3.exceptions.TimeoutError as error:
            raise TimeoutError from error
        except urllib3.exceptions.HTTPError as error:
            raise ConnectionError from error
        if len(found) > MOST_ANSWER:
            answer.close()
            return TargetAnswer(answer.status, found[:MOST_ANSWER], whole=False)
        answer.release_conn()
        return TargetAnswer(answer.status, found)
