"""Signed addresses of single requests, so that the sender of a request needs no credential."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from minio.credentials.credentials import Credentials
from minio.helpers import BaseURL
from minio.signer import presign_v4

from mlp_hub.executors.workspace import OpenSource, SourceAsk

AMAZON = "https://s3.amazonaws.com"
VALID_S = 300
"""Safety: seconds for which an address may be used: long enough for clocks that differ, and for nothing else."""


def address(source: OpenSource, ask: SourceAsk) -> str:
    """Return the address of one GET. Raises ValueError for a request that cannot have one."""
    region = source.region
    base = BaseURL(source.endpoint or AMAZON, region)
    query: dict[str, Any] = {}
    if ask.listed:
        query = {"list-type": "2", "encoding-type": "url", "prefix": ask.key, "max-keys": str(ask.limit)}
        query |= {"delimiter": "/"} if ask.flat else {}
        query |= {"continuation-token": ask.after} if ask.after else {}
    if source.token:
        query["X-Amz-Security-Token"] = source.token
    url = base.build(
        method="GET",
        region=region,
        bucket_name=source.bucket,
        object_name=None if ask.listed else ask.key,
        query_params=query,
    )
    if not source.key_id:
        return url.geturl()
    signed = presign_v4(
        method="GET",
        url=url,
        region=region,
        credentials=Credentials(source.key_id, source.key, source.token or None),
        date=datetime.now(UTC),
        expires=VALID_S,
    )
    return signed.geturl()
