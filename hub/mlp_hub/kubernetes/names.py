"""Labels of the hub's objects in a cluster, and names that the cluster accepts.

`mlp_hub.domain.jobs.names.label_name` makes a job's label and the names of its objects.
"""

from __future__ import annotations

import hashlib
import re

TENANT = "mlp-hub/tenant"
USER = "mlp-hub/user"
JOB = "mlp-hub/job"
RUN = "mlp-hub/run"
ATTEMPT = "mlp-hub/attempt"
FIRST_RANK = "mlp-hub/first-rank"
ROLE = "mlp-hub/role"
SERVER = "mlp-hub/server"
APP = "mlp-hub/app"
NETWORK = "mlp-hub/network"
QUEUE = "mlp-hub/queue"
BROUGHT = "mlp-hub/brought"
CHARGED = "mlp-hub/charged"
"""Contract: label of a pod that another hub made, with the name of the installation whose ledger holds it."""
MANAGED_BY = "app.kubernetes.io/managed-by"
INSTANCE = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"
JUPYTERHUB_USER = "hub.jupyter.org/username"
"""Contract: annotation and label by which the field's dashboards and exporters join a pod with its user."""
JUPYTERHUB_SERVER = {"app": "jupyterhub", "component": "singleuser-server"}
"""Contract: labels by which they recognize the pods of notebook servers."""
LONGEST = 63
"""Given: characters of a label's value, and of a name that becomes part of a host's."""
_HASHED = 8
"""Given: digits of a hash that keep apart what is cut to the same name."""


def dns_name(text: str, longest: int = LONGEST) -> str:
    """Return a name that the cluster takes; a text that had to be changed gets a hash, so that no two become the same."""
    name = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")
    if name == text and len(name) <= longest:
        return name
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASHED]
    return f"{name[: longest - _HASHED - 1].strip('-')}-{digest}".lstrip("-")


def label_value(text: str) -> str:
    """Return a label's value for a text: itself where it may be one."""
    if len(text) <= LONGEST and re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", text):
        return text
    return dns_name(text)
