"""The slirp4netns program, which parses data that tenants send, with as few rights as possible.

`tenant`: as the sandbox's own user, without capabilities, in its own root with only the system's
programs, /etc and its own tun device. `root`: as root, in slirp4netns' own sandbox, where another
user could not enter the sandbox's network. `hub`: as the hub's own user, where the hub is not root.
"""

from __future__ import annotations

import os
import resource
import stat
import sys

from mlp_hub.sandbox.shim import linux, view

_TUN = "/dev/net/tun"
_TUN_DEVICE = os.makedev(10, 200)
_RESOLVER = "/etc/resolv.conf"


def become(way: str, uid: int | None, net: int, owner: int | None) -> list[str]:
    """Give up what the calling process may; return the options that name the network (and its owner's namespace)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if way == "tenant":
        assert uid is not None  # noqa: S101 - root gives each sandbox one
        handed = {"net": net, **({"user": owner} if owner is not None else {})}
        _enter_own_root(handed)
        linux.drop_rights(uid)
        return [*(["--userns-path=/user"] if owner is not None else []), "--netns-type=path", "/net"]
    options = ["--enable-sandbox"] if way == "root" else []
    linux.no_new_privileges()
    for fd in (net, owner):
        if fd is not None:
            os.set_inheritable(fd, True)
    if owner is not None:
        options.append(f"--userns-path=/proc/self/fd/{owner}")
    return [*options, "--netns-type=path", f"/proc/self/fd/{net}"]


def _enter_own_root(namespaces: dict[str, int]) -> None:
    """Leave the machine's files; the namespaces become files of these names in the new root."""
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_SLAVE)
    os.umask(0)
    resolver = os.path.dirname(os.path.realpath(_RESOLVER))
    root = view.stage()
    shown = ["/usr", "/etc", *(f"/{name}" for name in view.LIBRARIES), resolver]
    sources = {path: os.open(path, os.O_PATH) for path in shown if _is_real_directory(path)}
    shared_tun = os.open(_TUN, os.O_PATH) if _is_everybodys(_TUN) else None
    linux.mount("tmpfs", root, "tmpfs", linux.MS_NOSUID, "mode=0755,size=64k")
    for path, fd in sources.items():
        os.makedirs(root + path, 0o755, exist_ok=True)
        linux.mount(f"/proc/self/fd/{fd}", root + path, None, linux.MS_BIND | linux.MS_REC)
        flags = linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV
        linux.mount("none", root + path, None, flags)
    for path in (f"/{name}" for name in view.LIBRARIES):
        if os.path.islink(path):
            os.symlink(os.readlink(path), root + path)
    os.makedirs(f"{root}/dev/net", 0o755)
    if shared_tun is None:
        os.mknod(root + _TUN, stat.S_IFCHR | 0o666, _TUN_DEVICE)
    else:
        _mount_file(shared_tun, root + _TUN)
    for name, fd in namespaces.items():
        _mount_file(fd, f"{root}/{name}")
    linux.change_root(root)


def _mount_file(fd: int, target: str) -> None:
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))
    linux.mount(f"/proc/self/fd/{fd}", target, None, linux.MS_BIND)


def _is_real_directory(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _is_everybodys(path: str) -> bool:
    return os.path.exists(path) and os.stat(path).st_mode & 0o006 == 0o006


def try_out(slirp: str, uid: int) -> None:
    """Become slirp4netns that tells its version, the way a sandbox's is started; raises OSError where that fails."""
    become("tenant", uid, os.open("/proc/self/ns/net", os.O_RDONLY), None)
    os.close(os.open(_TUN, os.O_RDWR | os.O_CLOEXEC))
    sys.stdout.flush()
    os.execve(slirp, [slirp, "--version"], {})
