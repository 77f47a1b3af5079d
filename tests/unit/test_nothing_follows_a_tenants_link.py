"""The platform may be root: what tenants can make is reached by `mlp_hub.safe_path` alone, which follows no link."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mlp_hub
import mlp_spawner
from mlp_hub.safe_path import DirHandle

# whose paths are all the platform's own, none of them in a home or a job's directory; each with what they are
OWN_PATHS = {
    "mlp_hub/settings/broker_values.py": "the operator's secrets",
    "mlp_hub/settings/config_file.py": "the operator's configuration",
    "mlp_hub/settings/values.py": "settings' paths, as text, and the operator's secrets",
    "mlp_hub/settings/state_paths.py": "secrets and directories of the state directory",
    "mlp_hub/hub_integration/copying.py": "packages of this installation, copied by an init container into its own volume",
    "mlp_hub/durable.py": "files of the state directory and of run directories",
    "mlp_hub/shelves.py": "roots of the storage tree",
    "mlp_hub/app.py": "the disk of the state directory",
    "mlp_hub/backends/simulated.py": "the operator's list of nodes",
    "mlp_hub/api/edge/connections.py": "/proc",
    "mlp_hub/api/edge/listeners.py": "sockets of the state directory",
    "mlp_hub/service/audit/receivers.py": "the file of heads, and that of shipped entries, which the operator names",
    "mlp_hub/service/monitoring/operator_files.py": "the certificate that the operator names, and the state directory",
    "mlp_hub/executors/local/gpu_jobs.py": "the directory that the operator names",
    "mlp_hub/service/health/deaths.py": "the supervisor's note",
    "mlp_hub/web/client.py": "what is installed",
    "mlp_hub/web/docs.py": "what is installed",
    "mlp_hub/web/pages.py": "what is installed",
    "mlp_hub/confined/rights.py": "the system's files, /proc, and an empty root of its own",
    "mlp_hub/dav/serving.py": "its socket in the state directory, and the top of the storage tree",
    "mlp_hub/unix_sockets.py": "sockets of the state directory",
    "mlp_hub/proxy/__init__.py": "what is installed",
    "mlp_hub/store/database.py": "the database",
    "mlp_hub/store/engine.py": "the database",
    "mlp_hub/store/migrate.py": "the database",
    "mlp_hub/cli": "state directory, logs of components and what the operator names",
    "mlp_hub/executors/shared_volume/fence.py": "run directories",
    "mlp_hub/executors/shared_volume/lock_holders.py": "/proc",
    "mlp_hub/executors/local/executor.py": "run directories",
    "mlp_hub/executors/local/disk.py": "/proc: what processes have open, which is no path",
    "mlp_hub/executors/local/machine_use.py": "/proc and the disk of the state directory",
    "mlp_hub/executors/local/node.py": "/proc and the disk of the state directory",
    "mlp_hub/executors/simulated/executor.py": "a journal, and directories in which no program ever ran",
    "mlp_hub/executors/kubernetes/gang/files.py": "the hub's own modules",
    "mlp_hub/executors/kubernetes/rank": "it is the tenant's own process",
    "mlp_hub/executors/rank_commands.py": "the jobs' environment, which is installed",
    "mlp_hub/sandbox/capabilities.py": "the system's programs",
    "mlp_hub/sandbox/control.py": "run directories and the sockets of servers",
    "mlp_hub/sandbox/environment.py": "what is installed",
    "mlp_hub/sandbox/fork_server.py": "what is installed",
    "mlp_hub/sandbox/groups.py": "control groups",
    "mlp_hub/sandbox/wayout.py": "the system's programs",
    "mlp_hub/sandbox/shim/asking.py": "/proc",
    "mlp_hub/sandbox/shim/programs/bare.py": "/proc; it is the tenant's own process",
    "mlp_hub/sandbox/shim/programs/by_mpi4py.py": "it is the tenant's own process",
    "mlp_hub/sandbox/shim/programs/by_python.py": "it is the tenant's own process",
    "mlp_hub/sandbox/shim/cgroups.py": "control groups",
    "mlp_hub/sandbox/shim/files.py": "run directories and /proc",
    "mlp_hub/sandbox/shim/programs/inside.py": "it is the tenant's own process",
    "mlp_hub/sandbox/shim/keep.py": "names in a directory, by its descriptor, with O_NOFOLLOW",
    "mlp_hub/sandbox/shim/linux.py": "mounts of the caller",
    "mlp_hub/sandbox/shim/logs/writer.py": "names in the directory of logs, by its descriptor, with O_NOFOLLOW",
    "mlp_hub/sandbox/shim/logs/losses.py": "run directories",
    "mlp_hub/sandbox/shim/main.py": "run directories",
    "mlp_hub/sandbox/shim/network.py": "/proc and /dev",
    "mlp_hub/sandbox/shim/ranks.py": "the control directory, and pipes by their descriptors",
    "mlp_hub/sandbox/shim/logs/segments.py": "names in the directory of logs, by its descriptor",
    "mlp_hub/sandbox/shim/slirp.py": "the system's directories",
    "mlp_hub/sandbox/shim/start.py": "run directories and the control directory",
    "mlp_hub/sandbox/shim/supervise.py": "the directory of logs, whose owner the platform is, with O_NOFOLLOW",
    "mlp_hub/sandbox/shim/view.py": "what is bound: directories whose parents are the platform's, opened once",
    "mlp_hub/isolation": "notes, keys, locks and mounts of the state directory, ciphertext, which only gocryptfs reads, and roots that an "
    "administrator names, all above which nobody else may change",
    "mlp_hub/executors/shared_volume/workspace.py": "the directories of all homes and of all jobs",
    "mlp_hub/executors/shared_volume/trees/sizes.py": "their file systems",
    "mlp_hub/service/disk/reserve.py": "a file of the state directory",
    "mlp_spawner/server.py": "run directories and logs of servers, and what is installed",
    "mlp_spawner/sandboxed.py": "sockets of servers",
}
# a call by its name, where nothing says that it takes a descriptor
OF_OS = {
    "access", "chdir", "chmod", "chown", "lchown", "link", "listdir", "lstat", "makedirs", "mkdir", "mkfifo", "mknod",
    "open", "readlink", "remove", "removedirs", "rename", "replace", "rmdir", "scandir", "stat", "statvfs", "symlink",
    "truncate", "unlink", "utime", "walk", "abspath", "exists", "getsize", "isdir", "isfile", "islink", "lexists",
    "realpath", "samefile",
}  # fmt: skip
OF_PATHS = {
    "chmod", "exists", "glob", "hardlink_to", "is_dir", "is_file", "is_socket", "is_symlink", "iterdir",
    "lchmod", "lstat", "mkdir", "read_bytes", "read_text", "readlink", "rename", "resolve", "rglob", "rmdir",
    "samefile", "stat", "symlink_to", "touch", "unlink", "write_bytes", "write_text", "expanduser",
}  # fmt: skip
BY_FOLDER = {"stat", "rename"}  # also names of methods of DirHandle and of entries of a directory
ALLOWED_ONCE = {
    (
        "mlp_hub/executors/shared_volume/fetch/landing.py",
        "open",
    ): "by the descriptor of a directory, and never through a link",
    (
        "mlp_hub/executors/shared_volume/fetch/landing.py",
        "chown",
    ): "by the descriptor of the platform's own directory, and no link is followed",
    (
        "mlp_hub/dav/files/multipart_uploads.py",
        "open",
    ): "by the descriptor of the directory, and never through a link",
    (
        "mlp_hub/executors/shared_volume/prepare.py",
        "makedirs",
    ): "the job's directory, all above which is the platform's",
    (
        "mlp_hub/executors/shared_volume/trees/file_copy.py",
        "makedirs",
    ): "what is kept for users, which none of their programs can write",
    ("mlp_hub/executors/local/environments.py", "mkdir"): "directories beside the run directories",
    (
        "mlp_hub/executors/local/environments.py",
        "is_dir",
    ): "they, and what is made for a team, above which all is the platform's",
    (
        "mlp_hub/executors/local/environments.py",
        "chown",
    ): "by the descriptor of a directory, and never through a link",
    ("mlp_hub/executors/local/environments.py", "resolve"): "the jobs' environment, which is installed",
    ("mlp_hub/executors/local/prepare.py", "exists"): "the jobs' environment, which is installed",
    ("mlp_hub/executors/shared_volume/trees/tree_copy.py", "utime"): "a descriptor",
    (
        "mlp_hub/executors/shared_volume/tenant_files.py",
        "access",
    ): "a root that an administrator names, and a descriptor",
    ("mlp_hub/executors/shared_volume/tenant_files.py", "resolve"): "the platform's own paths",
    ("mlp_hub/sandbox/homes.py", "mkdir"): "the directories of homes and of what is stored",
    ("mlp_hub/settings/cluster_values.py", "expanduser"): "what the operator names",
    ("mlp_hub/in_cluster.py", "read_text"): "the operator's kubeconfig",
    ("mlp_hub/settings/login.py", "read_text"): "the operator's secret",
    ("mlp_hub/hub_integration/providers/login/authenticator.py", "exists"): "homes' own directory",
    ("mlp_spawner/launcher.py", "exists"): "control groups",
    ("mlp_spawner/launcher.py", "open"): "the cluster's file for a container's last word",
    ("mlp_spawner/launcher.py", "listdir"): "runs as its user, in that one's sandbox",
    ("mlp_spawner/launcher.py", "isfile"): "the same",
    ("mlp_spawner/launcher.py", "getsize"): "the same",
    ("mlp_spawner/launcher.py", "abspath"): "the same",
    ("mlp_spawner/kubernetes/pod_manifest.py", "read_text"): "what is installed",
    ("mlp_spawner/homes.py", "mkdir"): "the server's own directory",
    ("mlp_spawner/homes.py", "write_text"): "the same",
    ("mlp_spawner/homes.py", "read_bytes"): "a sample that is installed",
}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for package in (mlp_hub, mlp_spawner):
        top = Path(str(package.__file__)).parent
        for path in sorted(top.rglob("*.py")):
            name = f"{top.name}/{path.relative_to(top)}"
            yield name, ast.parse(path.read_text())


def called_with_path(call: ast.Call) -> bool:
    """Tell entries of an opened directory, `entry.is_dir(follow_symlinks=False)`, from what takes a path."""
    keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    return bool(call.args) or keywords != {"follow_symlinks": "False"}


def path_calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of each call that takes, or works on, a path of more than one part."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id == "open":
            yield node.lineno, "open"
        if not isinstance(called, ast.Attribute):
            continue
        if not called_with_path(node):
            continue
        of, name = ast.unparse(called.value), called.attr
        of_os = of in ("os", "os.path")
        named = "Path(" in of or of.endswith(("path", "dir", "file", "workspace", "home"))
        if (
            (of_os and name in OF_OS)
            or (of == "shutil" and name != "which")
            or (not of_os and name in OF_PATHS and (named or name not in BY_FOLDER))
        ):
            yield node.lineno, name


def test_tenants_directories_are_reached_by_descriptor_only() -> None:
    found = []
    used = set()
    for name, tree in sources():
        trusted = next((one for one in OWN_PATHS if name == one or name.startswith(one + "/")), None)
        for line, call in path_calls(tree):
            if trusted is not None:
                used.add(trusted)
            elif (name, call) in ALLOWED_ONCE:
                used.add((name, call))
            elif name != "mlp_hub/safe_path.py":
                found.append(f"{name}:{line} {call}")
    assert found == [], (
        "use mlp_hub.safe_path, or say in OWN_PATHS why no tenant can make what is named there"
    )
    unused = {*OWN_PATHS, *ALLOWED_ONCE} - used
    assert unused == set(), "nothing of this is there any more"


def test_an_entry_of_a_folder_is_named_by_one_name(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with DirHandle.at(tmp_path) as folder:
        for name in ("", ".", "..", "in/..", "/etc", "../etc"):
            for act in (folder.inside, folder.read, folder.stat, folder.remove, folder.remove_folder):
                with pytest.raises(ValueError, match="no name of an entry"):
                    act(name)
