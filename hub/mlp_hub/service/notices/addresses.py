"""Addresses that people give, read and put as far as they are shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.notices.mail_names import hidden
from mlp_hub.domain.notices.notice import ChannelKind
from mlp_hub.domain.notices.notice_queries import COMMON, KEYS, unknown_key
from mlp_hub.service.config import NoticePolicy
from mlp_language.message import msg

_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@([A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+)")


def parsed(given: str, policy: NoticePolicy) -> tuple[ChannelKind, str, str]:
    """Return the kind of an address, the address to send to and what of it is shown. Raises `Refused`.

    Which service an address of one is of, nobody has said yet.
    """
    scheme, _, rest = given.partition(":")
    scheme = scheme.lower()
    if not given.isascii() or not given.isprintable() or " " in given:
        raise _wrong(policy.services)
    if scheme == "mailto":
        return _mail(rest, policy)
    if scheme in {"http", "https"}:
        try:
            found = urlsplit(given)
            port, host = found.port, found.hostname
        except ValueError:
            raise _wrong(policy.services) from None
        if not host or port == 0 or found.username is not None:
            raise _wrong(policy.services)
        return ChannelKind.WEBHOOK, given, f"{scheme}://{host}" + ("" if port is None else f":{port}")
    if scheme in policy.services and rest.startswith("//"):
        if (key := unknown_key(given)) is not None:
            raise Refused(
                Reason.INVALID,
                msg(
                    "{key} is not allowed in an address of {service}; allowed are {known}",
                    service=scheme,
                    key=repr(key),
                    known=tuple(sorted(COMMON | KEYS.get(scheme, frozenset()))),
                ),
            )
        return ChannelKind.SERVICE, given, scheme
    raise _wrong(policy.services)


def _mail(to: str, policy: NoticePolicy) -> tuple[ChannelKind, str, str]:
    found = _MAIL.fullmatch(to)
    if found is None:
        raise Refused(Reason.INVALID, msg("this is not a mail address; write mailto:ann@example.org"))
    if policy.mail is None:
        raise Refused(Reason.INVALID, msg("this hub sends no mail; its operator must name a server"))
    domain = found[1].lower()
    if policy.mail_domains and domain not in {one.lower() for one in policy.mail_domains}:
        raise Refused(
            Reason.INVALID, msg("this hub sends mail to {domains} only", domains=tuple(policy.mail_domains))
        )
    return ChannelKind.MAIL, to, hidden(domain)


def _wrong(services: Sequence[str]) -> Refused:
    return Refused(
        Reason.INVALID,
        msg(
            "an address begins with mailto:, https:// or http://, or belongs to one of these services: {services}",
            services=", ".join(services),
        ),
    )
