"""Rights of an agent of a tenant's cluster beyond a member's: its Secrets, and streams of its pods.

An administrator of the cluster names the agent's account in an annotation of the tenant's namespace
(`layers/manifests/compute.yaml`). Nobody else in the namespace becomes one, whatever rights they were
given there. Names keep the agent's objects apart: only it creates jobs that begin with `layer-`, and
no object of the hub has a dot in its name.
"""

from __future__ import annotations

from mlp_hub.kubernetes.kinds import Object

AGENT = "mlp-layer/user"
"""Contract: annotation of a tenant's namespace, with the account of the agent as the cluster knows it."""
PREFIX = "layer-"
"""Contract: names of an agent's jobs begin so, and those of its pods."""
END = ".layer"
"""Contract: names of an agent's Secrets are those of its jobs with this end."""
_OF = "namespaceObject.metadata.annotations"
_IS_AGENT = f'has({_OF}) && "{AGENT}" in {_OF} && request.userInfo.username == {_OF}["{AGENT}"]'
_NAME = f"^{PREFIX}[0-9a-f]{{8}}-[0-9a-f]{{16}}"
_SECRETS = (
    'request.resource.group == "" && request.resource.resource == "secrets" && '
    '(!has(request.subResource) || request.subResource == "") && request.operation in ["CREATE", "UPDATE"] && '
    f'request.name.matches("{_NAME}[.]layer$") && (!has(object.type) || object.type in ["", "Opaque"])'
)
_STREAMS = (
    'request.resource.group == "" && request.resource.resource == "pods" && request.operation == "CONNECT" && '
    'has(request.subResource) && request.subResource in ["exec", "attach", "portforward"] && '
    f'request.name.matches("{_NAME}-")'
)
MAY: Object = {"name": "layer", "expression": f"{_IS_AGENT} && (({_SECRETS}) || ({_STREAMS}))"}
"""Contract: variable that says whether a write is an agent's, to its own Secrets or pods."""
OWN_SECRET: Object = {
    "name": "own",
    "expression": f'request.operation == "CREATE" && {_IS_AGENT} ? object.metadata.name + "{END}" : ""',
}
"""Contract: variable with the one Secret that pods of a new job may read; empty for everybody but an agent."""
OWN_NAME = f'!object.metadata.name.startsWith("{PREFIX}") || variables.own != ""'
SAY_NAME = (
    f"may give no job a name that begins with {PREFIX}: so the jobs of tenants' own clusters are called."
)
