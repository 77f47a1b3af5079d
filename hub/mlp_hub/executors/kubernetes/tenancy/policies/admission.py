"""Admission policies: the objects that may be created in tenants' namespaces, and their creators.

`pods` applies to everybody, the hub and the operators too, and limits pods. `writes` and the
policies of each kind of jobs apply to everybody except parts of the hub and of the cluster. Rights
of the cluster (RBAC) come first. These policies also refuse where an administrator gave too many
rights. Each refusal is a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlp_hub.executors.kubernetes.external.forms import FORMS
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import TENANCY, Made, made
from mlp_hub.executors.kubernetes.tenancy.policies import layers, pod_rules
from mlp_hub.executors.kubernetes.tenancy.policies.trusted import PERSON, literal, not_trusted
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.kinds import (
    ADMISSION_BINDINGS,
    ADMISSION_POLICIES,
    JOBS,
    MPI_JOBS,
    PYTORCH_JOBS,
    TF_JOBS,
    Kind,
    Object,
)

ASKED = {
    JOBS: "[object.spec.template]",
    MPI_JOBS: "object.spec.mpiReplicaSpecs.map(r, object.spec.mpiReplicaSpecs[r].template)",
    TF_JOBS: "object.spec.tfReplicaSpecs.map(r, object.spec.tfReplicaSpecs[r].template)",
    PYTORCH_JOBS: "object.spec.pytorchReplicaSpecs.map(r, object.spec.pytorchReplicaSpecs[r].template)",
}
"""Contract: kinds of jobs that members may ask for, and where the templates of their pods are."""
_WORK = (
    '(request.resource.group in ["apps", "batch", "kubeflow.org", "batch.volcano.sh", "trainer.kubeflow.org", '
    '"jobset.x-k8s.io", "ray.io", "argoproj.io", "tekton.dev", "serving.knative.dev"] || (request.resource.group == "" && '
    'request.resource.resource in ["pods", "replicationcontrollers", "podtemplates"]))'
)
"""Safety: objects that make pods; accounts from outside the namespace may not create them either.

A kind that is missing here still makes no pods, since its creator cannot create the pods
themselves.
"""
_WHO = '"MLP Hub: " + request.userInfo.username + " "'


def admission(at: Installation, own: str) -> Sequence[Made]:
    """Return the policies with their bindings; `own` is the name by which who keeps the tenants comes to the API."""
    found = [*_policy(at, "pods", [_rule("", "v1", "pods", "CREATE")], [], pod_rules.of_pods())]
    found += _policy(
        at,
        "writes",
        [_EVERYTHING],
        _not_trusted_writes(at, own),
        _WRITES,
        but=_ELSEWHERE,
        variables=[layers.MAY],
    )
    for kind, templates in ASKED.items():
        group, _, version = kind.api_version.rpartition("/")
        conditions = not_trusted(at, own, _name(at, kind.plural))
        rules = [_rule(group, version, kind.plural, *_ALL)]
        asked = [{"name": "templates", "expression": templates}, layers.OWN_SECRET]
        found += _policy(at, kind.plural, rules, conditions, _asked(at, kind), variables=asked)
    return found


def _name(at: Installation, of: str) -> str:
    return f"{at.name}-{of}"


def _policy(
    at: Installation,
    of: str,
    rules: Sequence[Object],
    conditions: Sequence[Object],
    validations: Sequence[Object],
    *,
    but: Sequence[Object] = (),
    variables: Sequence[Object] = (),
) -> Sequence[Made]:
    name = _name(at, of)
    ours = {**at.marks, names.COMPONENT: TENANCY}
    constraints = {
        "resourceRules": list(rules),
        "excludeResourceRules": list(but),
        "namespaceSelector": {"matchLabels": ours},
        "objectSelector": {},
        "matchPolicy": "Equivalent",
    }
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": constraints,
        "matchConditions": list(conditions),
        "variables": list(variables),
        "validations": list(validations),
    }
    bound = {"policyName": name, "validationActions": ["Deny"]}
    return [
        made(ADMISSION_POLICIES, at, name, spec=spec),
        made(ADMISSION_BINDINGS, at, name, spec=bound),
    ]


def _rule(group: str, version: str, resources: str, *operations: str) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": [resources],
        "operations": list(operations),
        "scope": "Namespaced",
    }


USER = names.USER
"""Contract: annotation in which people say who they are."""
_ALL = ("CREATE", "UPDATE", "DELETE")
_EVERYTHING = _rule("*", "*", "*/*", "CREATE", "UPDATE", "DELETE", "CONNECT")
_ELSEWHERE = [
    # of these versions alone: of another operator's kind of the same name nothing is looked at, so it is refused as all else
    *(_rule(kind.group, kind.api_version.rpartition("/")[2], kind.plural, *_ALL) for kind in ASKED),
    _rule("authorization.k8s.io", "*", "*", "CREATE"),
    _rule("", "*", "pods/eviction", "CREATE"),
]


def _not_trusted_writes(at: Installation, own: str) -> list[Object]:
    """Add that accounts from elsewhere may write what makes no pods, and remove what they were given the right to."""
    theirs = f'({_WORK} || request.operation == "CONNECT") && request.operation != "DELETE"'
    person = {"name": "person-or-work", "expression": f"{PERSON} || ({theirs})"}
    return [*not_trusted(at, own, _name(at, "writes")), person]


def _never(unless: str, message: str) -> Object:
    return {"expression": unless, "messageExpression": f"{_WHO} + {quoted(message)}", "reason": "Forbidden"}


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_WRITES = [
    _never(
        'variables.layer || request.operation != "CONNECT"',
        "may not get into pods or services here (exec, attach, port-forward, proxy): they may be others'. "
        "Open a terminal in JupyterLab instead.",
    ),
    _never(
        '!(request.resource.resource == "pods" && has(request.subResource) && request.subResource == "ephemeralcontainers")',
        "may not add containers to pods here. Open a terminal in JupyterLab instead.",
    ),
    _never(
        '!(request.resource.resource == "serviceaccounts" && has(request.subResource) && request.subResource == "token")',
        "may not have tokens of a tenant's accounts. Use an account of your own.",
    ),
    _never(
        "variables.layer",
        "may create, change and remove nothing here: the namespace and all that stands in it are made from the tenant. Start notebooks "
        "and jobs in the hub, or ask its administrators.",
    ),
]


def _asked(at: Installation, kind: Kind) -> list[Object]:
    """Return what holds for a job that somebody brings with kubectl, and that they do to it."""

    def new(unless: str, message: str) -> Object:
        return _never(f'request.operation != "CREATE" || ({unless})', message)

    return [
        _never(
            'request.operation != "UPDATE"',
            "may not change jobs here: the hub keeps them as submitted, and lets them run when it is their turn. "
            "Delete it and create another.",
        ),
        _never(
            f'request.operation != "DELETE" || ({_own(at, "oldObject")})',
            "may remove here only jobs that they made with kubectl. Others are ended in the hub.",
        ),
        new(
            f'has(object.metadata.labels) && "{names.QUEUE}" in object.metadata.labels',
            f"may create a {kind.kind} here only with the label {names.QUEUE}: TENANT, by which it waits for its turn.",
        ),
        new(
            f'"{names.TENANT}" in namespaceObject.metadata.labels && '
            f'object.metadata.labels["{names.QUEUE}"] == namespaceObject.metadata.labels["{names.TENANT}"]',
            f"may name in {names.QUEUE} only the tenant of this namespace.",
        ),
        new(
            f'object.metadata.labels.all(l, !l.startsWith("mlp-hub/") || l == "{names.QUEUE}") && '
            'object.metadata.labels.all(l, !(l in ["app.kubernetes.io/managed-by", "app.kubernetes.io/instance"]))',
            f"may set no labels of the hub but {names.QUEUE}: the others say what the hub made.",
        ),
        _who_it_is(at),
        new(
            f'!has(object.metadata.annotations) || object.metadata.annotations.all(a, !a.startsWith("mlp-hub/") || a == "{USER}")',
            f"may set no annotations of the hub but {USER}.",
        ),
        new(
            "(!has(object.metadata.ownerReferences) || size(object.metadata.ownerReferences) == 0) && "
            "(!has(object.metadata.finalizers) || size(object.metadata.finalizers) == 0)",
            f"may create no {kind.kind} with owners or finalizers: it is a job of its own.",
        ),
        new(layers.OWN_NAME, layers.SAY_NAME),
        *pod_rules.of_templates(at, new),
        *(new(rule, message) for rule, message in _OF_KIND[kind]),
        new(
            _SUSPENDED[kind],
            f"may create a {kind.kind} here only suspended: {_SUSPEND[kind]}. The hub lets it run when it is its turn.",
        ),
    ]


def _who_it_is(at: Installation) -> Object:
    """Return the rule by which nobody says another's name, with a sentence that says what to write."""
    prefix = quoted(at.user_prefix)
    name = (
        f"request.userInfo.username.startsWith({prefix}) ? "
        f"request.userInfo.username.substring(size({prefix})) : "
        + quoted(f"NAME. Who has none is known to the cluster as {at.user_prefix}NAME")
    )
    return {
        "expression": f'request.operation != "CREATE" || ({_own(at, "object")})',
        "messageExpression": f'{_WHO} + "has to say who they are, in the annotation {USER}: " + ({name})',
        "reason": "Forbidden",
    }


def _own(at: Installation, of: str) -> str:
    """Say that who asks brought a job, by its annotation."""
    said = f"{of}.metadata.annotations"
    return f'has({said}) && "{USER}" in {said} && {quoted(at.user_prefix)} + {said}["{USER}"] == request.userInfo.username'


def _roles(kind: Kind) -> tuple[str, str]:
    form = FORMS[kind.kind]
    of = f"object.spec.{form.replicas}"
    known = ", ".join(form.roles)
    return (
        f"{of}.all(r, r in {literal(form.roles)} && (!has({of}[r].replicas) || {of}[r].replicas >= 0))",
        f"may ask for pods of the roles {known} only, and of none for less than 0.",
    )


_NO_GROUP = (
    "!has(object.spec.runPolicy) || !has(object.spec.runPolicy.schedulingPolicy)",
    "may set no schedulingPolicy: the hub decides whose turn it is, and where.",
)
_OF_KIND: Mapping[Kind, Sequence[tuple[str, str]]] = {
    JOBS: [
        (
            "!has(object.spec.manualSelector) || !object.spec.manualSelector",
            "may not set manualSelector: it would take over other jobs' pods.",
        ),
        (
            '!object.metadata.name.endsWith("-launcher")',
            "may give no Job a name that ends with -launcher: so the MPI Operator calls its own.",
        ),
    ],
    MPI_JOBS: [_NO_GROUP, _roles(MPI_JOBS)],
    TF_JOBS: [
        _NO_GROUP,
        _roles(TF_JOBS),
        (
            "!has(object.spec.enableDynamicWorker) || !object.spec.enableDynamicWorker",
            "may not set enableDynamicWorker: a job keeps the size that it was let run with.",
        ),
    ],
    PYTORCH_JOBS: [
        _NO_GROUP,
        _roles(PYTORCH_JOBS),
        (
            "!has(object.spec.elasticPolicy)",
            "may set no elasticPolicy: a job keeps the size that it was let run with.",
        ),
    ],
}
"""Safety: other fields that jobs of a kind may not have.

These fields would make them larger than counted, or take objects of others.
"""
_RUN_POLICY = "spec.runPolicy.suspend: true"
_SUSPEND = {
    JOBS: "spec.suspend: true",
    MPI_JOBS: _RUN_POLICY,
    TF_JOBS: _RUN_POLICY,
    PYTORCH_JOBS: _RUN_POLICY,
}
_OF_RUN = "has(object.spec.runPolicy) && has(object.spec.runPolicy.suspend) && object.spec.runPolicy.suspend"
_SUSPENDED = {
    JOBS: "has(object.spec.suspend) && object.spec.suspend",
    MPI_JOBS: _OF_RUN,
    TF_JOBS: _OF_RUN,
    PYTORCH_JOBS: _OF_RUN,
}
