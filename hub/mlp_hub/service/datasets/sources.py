"""Sources of datasets: the allowed ones, and the secret that opens one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from mlp_api.stored.datasets import DatasetSource
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.stored.dataset import Dataset, ObjectSource, SourceMode
from mlp_hub.executors.workspace import OpenSource
from mlp_hub.service.secrets.service import SecretService
from mlp_hub.service.tenants.places import tenants_of
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

_URL = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.{0,1024}))?")
_REGION = re.compile(r"[a-z0-9-]{0,40}")
_SHOWN = 100
"""Safety: characters of a bad address that are repeated in the answer."""
REGION = "us-east-1"
"""Given: the region where none is named."""
ID, KEY, TOKEN = "access_key_id", "secret_access_key", "session_token"


class DataSources:
    """Reads what is asked for; `allowed` are the endpoints, HOST or HOST:PORT, that may be at private addresses."""

    def __init__(self, secrets: SecretService, allowed: Sequence[str]) -> None:
        self._secrets = secrets
        self._allowed = tuple(allowed)

    def parse(self, asked: DatasetSource) -> ObjectSource:
        """Return what is asked for. Raises `Refused`."""
        found = _URL.fullmatch(asked.url)
        if found is None or not asked.url.isprintable() or ".." in found[1]:
            raise Refused(
                Reason.INVALID,
                msg("source is {given}; write s3://BUCKET/PREFIX", given=_clip(asked.url)),
            )
        endpoint = asked.endpoint or ""
        if endpoint:
            endpoint = _endpoint(endpoint)
        if not _REGION.fullmatch(asked.region or ""):
            raise Refused(
                Reason.INVALID,
                msg("region is {given}; write a name such as eu-central-1", given=_clip(asked.region)),
            )
        prefix = found[2] or ""
        mode = SourceMode(asked.mode)
        if mode is SourceMode.READ_THROUGH and prefix and not prefix.endswith("/"):
            prefix += "/"  # what is below it, as a directory
        return ObjectSource(found[1], prefix, endpoint, asked.region or "", asked.secret or "", mode)

    def check(self, tx: Tx, dataset: Dataset) -> None:
        """Raise `Refused` where its secret is not there, or is none of an object store."""
        self.opened(tx, dataset)

    def opened(self, tx: Tx, dataset: Dataset) -> OpenSource:
        """Return a source with all that is needed to read it. Raises `Refused`."""
        source, item = dataset.source, dataset.item
        if source is None:
            raise Refused(
                Reason.WRONG_STATE,
                msg("dataset {name} was uploaded, so it has no source to copy from", name=item.name),
            )
        keys: Mapping[str, str] = {}
        if source.secret:
            # who has left it opens nothing of a tenant's
            tenant = item.tenant if item.tenant in tenants_of(tx, item.user) else ""
            keys = self._secrets.opened(tx, source.secret, tenant=tenant, user=item.user)
            if not keys.get(ID) or not keys.get(KEY):
                raise Refused(
                    Reason.INVALID,
                    msg(
                        "secret {name} cannot open an object store: it has no {id} or no {key}",
                        name=source.secret,
                        id=ID,
                        key=KEY,
                    ),
                )
        return OpenSource(
            bucket=source.bucket,
            prefix=source.prefix,
            endpoint=source.endpoint,
            # what is signed for others says one, and nobody is asked which
            region=source.region or (REGION if dataset.is_read_through else ""),
            key_id=keys.get(ID, ""),
            key=keys.get(KEY, ""),
            token=keys.get(TOKEN, ""),
            allowed=self._allowed,
            wanted=() if dataset.is_read_through else None,
        )


def _endpoint(text: str) -> str:
    wrong = Refused(
        Reason.INVALID,
        msg("endpoint is {given}; write https://HOST, or https://HOST:PORT", given=_clip(text)),
    )
    try:
        found = urlsplit(text)
        port = found.port
    except ValueError:
        raise wrong from None
    host = found.hostname or ""
    if (
        found.scheme not in {"http", "https"}
        or not re.fullmatch(r"[a-z0-9.-]{1,253}|[0-9a-f:.]{2,45}", host)
        or found.username is not None
        or found.path.strip("/")
        or found.query
        or found.fragment
        or port == 0
        or not text.isprintable()
    ):
        raise wrong
    shown = f"[{host}]" if ":" in host else host
    return f"{found.scheme}://{shown}" + ("" if port is None else f":{port}")


def _clip(text: str | None) -> str:
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in (text or "")[: _SHOWN + 1])
    # what stands before an @ may be a password
    shown = re.sub(r"//[^/@]*@", "//...@", shown)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
