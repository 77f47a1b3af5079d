"""Keys by which pods of apps and the gateway identify each other.

They are derived, so that the cluster has them in the pods' own Secrets only.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from mlp_hub.executors.kubernetes.attempt_claims import About


class AppKeys:
    """Keys of attempts that listen, the same for all services that have the same secret; without one, of this process alone."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode() or secrets.token_bytes(32)

    def key_of(self, user: str, attempt: str) -> str:
        """Return the key of one attempt: nobody derives another's of it."""
        return hmac.new(self._secret, f"app of {user}/{attempt}".encode(), hashlib.sha256).hexdigest()

    def of(self, about: About) -> str:
        """Return the key by which an attempt's pod and the gateway know each other; empty where it does not listen."""
        return about.key or (self.key_of(about.user, about.attempt) if about.listens else "")
