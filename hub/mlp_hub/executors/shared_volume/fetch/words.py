"""Texts of an object store's refusals, for the user who asked it."""

from __future__ import annotations

from mlp_language.message import Message, msg

DENIED = frozenset(
    {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}
)
_ELSEWHERE = frozenset(
    {"AuthorizationHeaderMalformed", "AuthorizationQueryParametersError", "PermanentRedirect", "IllegalLocationConstraintException"}
)  # fmt: skip


def said_of(code: str, host: str, bucket: str, *, secret: bool) -> Message:
    """Return what a code means; `secret`: whether it was asked with one."""
    if code in DENIED:
        if secret:
            return msg(
                "{host} does not let these credentials read {bucket} ({code}); is the right secret named?",
                host=host, bucket=bucket, code=code,
            )  # fmt: skip
        return msg(
            "{host} does not let everybody read {bucket} ({code}); name a secret that opens it",
            host=host, bucket=bucket, code=code,
        )  # fmt: skip
    if code == "NoSuchBucket":
        return msg("{host} has no bucket {bucket}", host=host, bucket=bucket)
    if code in _ELSEWHERE:
        return msg(
            "bucket {bucket} is in another region of {host} ({code}); name its region",
            host=host, bucket=bucket, code=code,
        )  # fmt: skip
    return msg("{host} returns {code} for {bucket}", host=host, code=code, bucket=bucket)


def is_private(host: str) -> Message:
    """Return that nobody speaks to an endpoint there."""
    return msg(
        "{host} has a private address, which the platform does not contact for users; its operator can name it in MLP_DATA_ENDPOINTS",
        host=host,
    )


def not_as_it_should(host: str) -> Message:
    """Return that an endpoint is not there, or breaks off."""
    return msg("{host} does not answer correctly; repeat the request to continue from here", host=host)
