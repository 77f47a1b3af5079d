"""No process that serves others takes apart what strangers wrote beyond a small bound: helpers do, which have no rights.

A parser in a new place is listed here with its bound, or belongs into a helper (`mlp_hub.helpers`). The same for threads: what waits
for files of tenants waits in a pool of its kind (`mlp_hub.pools`), and not where all else waits.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import mlp_hub

TOP = Path(mlp_hub.__file__).parent
HELPERS = (
    "outbound/",
    "executors/shared_volume/fetch/process.py",
    "executors/shared_volume/fetch/copier.py",
    "executors/shared_volume/fetch/landing.py",
    "executors/shared_volume/fetch/store.py",
    "executors/shared_volume/models/detector.py",
    "executors/shared_volume/models/formats.py",
    "service/whatif/worker.py",
)
"""What runs in helpers alone."""
ELSEWHERE = ("cli/", "confined/", "sandbox/shim/", "executors/kubernetes/rank/", "store/migrations/")
"""What runs as the operator's command, in the tenant's own processes, or speaks the platform's own protocol within its bounds."""
BOUNDED = {
    "settings/cluster_values.py": "the operator's files",
    "settings/values.py": "the operator's file",
    "api/attached_hub.py": "the hub's own answers",
    "api/edge/connections.py": "numbers of the kernel's",
    "api/edge/decode.py": "bodies of requests: `body_limit` of their routes, and `JSON_DEPTH`",
    "api/figures.py": "the proxy's own answers",
    "api/hubclient.py": "the hub's own answers",
    "bindings.py": "writes it",
    "dav/authorization.py": "writes it",
    "dav/files/listing.py": "writes it",
    "dav/files/properties.py": "an attribute of a file: `MOST_BYTES`",
    "dav/access_client.py": "the service's own answers",
    "dav/connections/first_request.py": "writes it",
    "dav/read_through.py": "a page of a list: `PAGE_MAX`, in pieces, `MOST_PARTS` elements for each object, no entities",
    "domain/audit_chain.py": "writes it",
    "domain/tenants/people_file.py": "the body of an administrator's request",
    "durable.py": "the platform's own files",
    "executors/kubernetes/attempt_claims.py": "the cluster's answers",
    "executors/kubernetes/gang/files.py": "writes it",
    "executors/kubernetes/metering/gpu_metrics.py": "the answer of the site's Prometheus: `MOST_PODS`",
    "executors/kubernetes/metering/pod_meter.py": "the cluster's answers",
    "executors/kubernetes/nodes/measured.py": "the cluster's answers",
    "executors/kubernetes/probes/policies.py": "what a pod of the platform's own says as it ends: 4 KiB of the cluster",
    "executors/kubernetes/records.py": "a record of a rank: `most`",
    "executors/kubernetes/tenancy/policies/trusted.py": "writes it",
    "executors/local/kernels.py": "writes it",
    "executors/local/package_index.py": "the operator's files",
    "executors/local/watch.py": "numbers of the kernel's",
    "executors/shared_volume/fetch/starter.py": "lines of a helper",
    "executors/shared_volume/models/detector_client.py": "the answer of a helper: `ANSWER`, of a strict type",
    "executors/shared_volume/spool.py": "a line of a spool file: `MOST_LINE`",
    "executors/rank_commands.py": "writes it",
    "executors/simulated/executor.py": "its own journal",
    "helpers.py": "writes it",
    "logs/lines.py": "writes it",
    "hub_integration/accounts/outbox.py": "what it stored itself",
    "hub_integration/accounts/accounts.py": "bodies of requests: `bodies.py`",
    "hub_integration/auth_state.py": "the hub's own answer",
    "hub_integration/bodies.py": "bodies of requests: `SMALL`, `LARGE` for administrators",
    "hub_integration/tokens/cli_login.py": "bodies of requests: `bodies.py`",
    "hub_integration/pages/people.py": "bodies of requests: `bodies.py`",
    "hub_integration/providers/protocols/provider_client.py": "answers of the login's provider: `BODY_MAX`",
    "hub_integration/providers/examine.py": "answers of the login's provider: `BODY_MAX`",
    "hub_integration/providers/sync/logout.py": "a token: `TOKEN_MAX`",
    "hub_integration/providers/records/login_states.py": "what it sealed itself",
    "hub_integration/tokens/tokens.py": "its own answer",
    "in_cluster.py": "the operator's file",
    "isolation/keys.py": "the platform's own file",
    "isolation/roots.py": "the platform's own file",
    "kubernetes/client.py": "the cluster's answers",
    "sandbox/control.py": "writes it",
    "sandbox/environment.py": "an answer of the hub's own interpreter",
    "service/alerts/deliveries.py": "writes it",
    "service/audit/heads.py": "lines of the platform's own file: `LONGEST`",
    "service/audit/keeper.py": "writes it",
    "service/audit/receivers.py": "a number of the kernel",
    "service/audit/shipping.py": "writes it",
    "service/audit/verify.py": "numbers that it hashes",
    "service/health/deaths.py": "the supervisor's note",
    "service/health/files.py": "the file process' answer",
    "service/jobs/kept.py": "what was stored of a request",
    "service/models/lineage.py": "what was stored of a request",
    "service/exports/parts.py": "writes it",
    "service/models/wire.py": "writes it",
    "service/monitoring/dashboards/grafana.py": "writes it",
    "service/notices/sender.py": "lines of a helper",
    "service/reasons/rows.py": "what it stored itself",
    "service/secrets/service.py": "what was stored of a request",
    "service/support/csv_text.py": "writes it",
    "service/whatif/service.py": "the answer of a helper: `MOST_ANSWER`",
    "simulate/text.py": "the operator's file",
    "store/codec.py": "what was stored of a request",
    "store/repos/jobs/job_rows.py": "what was stored of a request",
    "store/repos/jobs/runs.py": "what was stored of a request",
    "store/rows.py": "what was stored of a request",
    "web/client.py": "writes it",
    "web/login.py": "a cookie, which the proxy bounds",
}
"""What is parsed elsewhere, with its bound."""
PARSERS = frozenset(
    {
        "zipfile", "tarfile", "json", "csv", "xml", "defusedxml", "yaml", "tomllib", "configparser", "struct", "pickle", "marshal", "shelve",
        "plistlib", "gzip", "bz2", "lzma", "zlib", "nbformat", "h5py", "onnx", "numpy", "PIL", "safetensors", "tensorflow", "torch", "lxml",
    }
)  # fmt: skip
DEFAULT_POOL = {
    "app.py": "sockets of the state directory",
    "cli/lifecycle/pod_tables.py": "a migration, in the hub's pod before it serves",
    "executors/local/executor.py": "what is the platform's own: run directories, the environment of all",
    "executors/shared_volume/fence.py": "run directories",
    "executors/shared_volume/files.py": "what a directory gives that is opened by no workspace",
    "executors/shared_volume/tenant_files.py": "notes and mounts of the state directory",
    "executors/simulated/executor.py": "its own journal",
    "service/audit/keeper.py": "the file of heads, and a datagram: `PATIENCE_S`",
    "service/admission/loop.py": "a cycle of the scheduler",
    "service/health/deaths.py": "the supervisor's note",
    "service/sweeps/worker.py": "the advisers of sweeps, one after the other",
    "web/client.py": "what is installed",
    "web/docs.py": "what is installed",
    "web/pages.py": "what is installed",
}
"""Who waits in the threads that all share, for what."""


@cache
def modules() -> list[tuple[str, ast.Module]]:
    return [(str(path.relative_to(TOP)), ast.parse(path.read_text())) for path in sorted(TOP.rglob("*.py"))]


def imported(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def parses(tree: ast.Module) -> bool:
    if {name.partition(".")[0] for name in imported(tree)} & PARSERS:
        return True
    names = (ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return any(
        name.endswith((".json.decode", ".json.Decoder", ".msgpack.decode", ".yaml.decode")) for name in names
    )


def waits_among_all(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "to_thread":
            return True
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "run_in_executor"
        ):
            pool = node.args[0]
            if isinstance(pool, ast.Constant) and pool.value is None:
                return True
    return False


def test_every_parser_is_in_a_helper_or_listed_with_a_bound() -> None:
    found = {name for name, tree in modules() if parses(tree) and not name.startswith((*HELPERS, *ELSEWHERE))}
    assert found <= set(BOUNDED), "move the parser into a helper, or name its bound in BOUNDED"
    assert found == set(BOUNDED), "these parse nothing any more: remove them from BOUNDED"


def test_nothing_that_serves_imports_what_only_helpers_do() -> None:
    own = {"mlp_hub." + name.removesuffix(".py").strip("/").replace("/", ".") for name in HELPERS}
    wrong = {
        (name, one)
        for name, tree in modules()
        if not name.startswith((*HELPERS, *ELSEWHERE))
        for one in imported(tree)
        if any(one == module or one.startswith(f"{module}.") for module in own)
    }
    assert wrong == set(), "modules that serve, and what they import: only helpers may"


def test_every_wait_in_the_shared_pool_is_listed() -> None:
    found = {name for name, tree in modules() if waits_among_all(tree)}
    assert found <= set(DEFAULT_POOL), (
        "use a pool of `mlp_hub.pools`, or say in DEFAULT_POOL what it waits for"
    )
    assert found == set(DEFAULT_POOL), "these do not wait there any more: remove them from DEFAULT_POOL"


@pytest.mark.parametrize(
    "code",
    [
        "import zipfile",
        "from json import loads",
        "import msgspec\nmsgspec.json.decode(b'')",
        "def f():\n import pickle",
    ],
)
def test_the_check_finds_a_parser(code: str) -> None:
    assert parses(ast.parse(code))
