"""View from inside a sandbox: bubblewrap's arguments and the small files that belong to them."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Any

from mlp_hub.sandbox.shim import linux

ETC = (
    "alternatives", "ca-certificates", "debian_version", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
    "localtime", "mime.types", "os-release", "pip.conf", "pki", "ssl", "timezone",
)  # fmt: skip
LIBRARIES = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")  # of the root: directories, or links into /usr
STAGES = ("/mnt", "/media", "/srv", "/var/tmp", "/tmp")  # noqa: S108 - hidden below a private mount
# not --unshare-all, which takes a user namespace too wherever it can
NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
TERMINALS = 64  # of a sandbox, and one for each rank: the machine has some 3000 for all, bubblewrap's own have no bound
ROOM = "/stage"  # of a sandbox's sources, in the small root
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")  # as bubblewrap's own --dev, and its links
DEVICE_LINKS = {
    "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "fd": "/proc/self/fd",
    "core": "/proc/kcore", "ptmx": "pts/ptmx",
}  # fmt: skip
SHAPE = "/sys/devices/system"  # of processors and memory
DNS = "10.0.2.3"  # slirp4netns' own
# what changes the program that a command is, beside LD_*: the C library ignores these in setuid programs
MISLEADING = frozenset({
    "GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "HOSTALIASES", "LOCALDOMAIN", "LOCPATH", "MALLOC_TRACE",
    "NIS_PATH", "NLSPATH", "RESOLV_HOST_CONF", "RES_OPTIONS", "TZDIR",
})  # fmt: skip


def stage() -> str:
    """Return a directory that everybody may enter, to be hidden below a private mount."""
    return next(path for path in STAGES if os.path.isdir(path) and os.stat(path).st_mode & stat.S_IXOTH)


class Stage:
    """Small root of the process that becomes bubblewrap: the system's programs, and the sandbox's sources; for another user.

    Each source is opened by root and then mounted below a directory that everybody may enter; so a source below a
    closed directory such as /root works, and one below the directory of the mounts too. Bubblewrap reads the table of
    all mounts once for each of its own. So the machine's mounts are not in it, and /etc and /dev are one mount each for
    bubblewrap. `terminals`: how many pseudo-terminals there may be. `own_devices`: /dev has the devices of each sandbox
    only, and not the machine's. `etc`: the small files of /etc. The links of `spec` below /etc are made here, and the
    places of its mounts there: inside, /etc can only be read.
    """

    def __init__(
        self, terminals: int, etc: dict[str, str], spec: dict[str, Any], *, own_devices: bool
    ) -> None:
        self.own_devices = own_devices
        self.terminals = "/dev/pts" if own_devices else f"{ROOM}/pts"
        self._most_terminals = terminals
        self._etc = etc
        self._links = {link["path"]: link["target"] for link in spec["links"] if _below_etc(link["path"])}
        points = {bind["dst"]: os.path.isdir(bind["src"]) for bind in spec["binds"]}
        points |= dict.fromkeys(spec["hidden"], True)
        self._points = {path: directory for path, directory in points.items() if _below_etc(path)}
        self._sources: list[str] = []

    def add(self, source: str) -> str:
        """Return the path at which the source will be found."""
        self._sources.append(source)
        return f"{ROOM}/{len(self._sources) - 1}"

    def make(self, program: str) -> None:
        """Enter a mount namespace whose root has all of that; `program` will be executed there. Only a forked process may."""
        linux.unshare(linux.CLONE_NEWNS)
        # slave: what the machine unmounts later is not kept busy by us
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_SLAVE)
        root = stage()
        # opened in the new namespace, since the kernel mounts nothing of another one, and before anything is hidden
        wanted = [(f"{ROOM}/{number}", source) for number, source in enumerate(self._sources)]
        wanted += [(f"/etc/{name}", f"/etc/{name}") for name in ETC if os.path.exists(f"/etc/{name}")]
        wanted += [("/proc", "/proc")]
        shown = [f"/dev/{name}" for name in DEVICES] + [SHAPE] if self.own_devices else ["/dev", "/sys"]
        wanted += [(path, path) for path in shown if os.path.exists(path)]
        links = {}
        for name in sorted({*LIBRARIES, "usr", os.path.realpath(program).split("/")[1]}):
            if os.path.islink(f"/{name}"):
                links[name] = os.readlink(f"/{name}")
            elif os.path.isdir(f"/{name}"):
                wanted.append((f"/{name}", f"/{name}"))
        opened = [(target, os.open(source, os.O_PATH | os.O_CLOEXEC)) for target, source in wanted]
        linux.mount("tmpfs", root, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=0755,size=1m")
        for name in (ROOM, "/etc", "/dev", "/tmp", os.path.dirname(SHAPE)):  # noqa: S108
            os.makedirs(root + name, 0o755)
        for name, target in links.items():
            os.symlink(target, f"{root}/{name}")
        for target, fd in opened:
            _bind_opened(fd, root + target)
        self._fill(root)
        linux.change_root(root)

    def _fill(self, root: str) -> None:
        """Make the small files of /etc, the terminals, and the links of /dev."""
        for name, content in self._etc.items():
            with open(f"{root}/etc/{name}", "w") as file:
                file.write(content)
        for path, directory in self._points.items():
            os.makedirs(root + (path if directory else os.path.dirname(path)), 0o755, exist_ok=True)
            if not directory:
                os.close(os.open(root + path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
        for path, target in self._links.items():
            os.makedirs(root + os.path.dirname(path), 0o755, exist_ok=True)
            os.symlink(target, root + path)
        if self.own_devices:
            os.mkdir(f"{root}/dev/shm")  # noqa: S108
            for name, target in DEVICE_LINKS.items():
                os.symlink(target, f"{root}/dev/{name}")
        os.mkdir(f"{root}{self.terminals}")
        bound = f"newinstance,ptmxmode=0666,mode=0620,max={self._most_terminals}"
        flags = linux.MS_NOSUID | linux.MS_NOEXEC
        linux.mount("devpts", f"{root}{self.terminals}", "devpts", flags, bound)


def _below_etc(path: str) -> bool:
    return path.startswith("/etc/")


def _bind_opened(fd: int, target: str) -> None:
    """Mount the file of a descriptor at its own path, with all that is mounted below it; close it."""
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        with contextlib.suppress(FileExistsError):
            os.mkdir(target, 0o755)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    linux.mount(f"/proc/self/fd/{fd}", target, None, linux.MS_BIND | linux.MS_REC)
    os.close(fd)


class Memory:
    """Contents that bubblewrap reads from descriptors, so that they are in no file and on no command line."""

    def __init__(self) -> None:
        self.fds: list[int] = []

    def add(self, content: bytes) -> int:
        """Return a descriptor that reads this content; it must be made inheritable for bubblewrap."""
        fd = os.memfd_create("mlp")
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
        self.fds.append(fd)
        return fd


def accounts(spec: dict[str, Any], uid: int, gid: int) -> dict[str, str]:
    """Make the small files of /etc."""
    name, home, host = spec["user_name"], spec["home_mount"], spec["hostname"]
    return {
        "passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\n{name}:x:{uid}:{gid}:{name}:{home}:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
        "group": f"root:x:0:\n{name}:x:{gid}:\nnogroup:x:65534:\n",
        "hosts": f"127.0.0.1 localhost {host}\n::1 localhost {host}\n",
        "resolv.conf": f"nameserver {DNS}\n" if spec["network"] == "outbound" else "",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    }


def arguments(
    spec: dict[str, Any], host: dict[str, Any], ids: tuple[int, int], stage: Stage | None, memory: Memory
) -> list[str]:
    """Return bubblewrap's options, all but the command."""
    out = [*NAMESPACES, "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    if host["mode"] != "root":
        out.append("--unshare-user")
        if host["disable_userns"]:
            out.append("--disable-userns")
    else:
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
            out += ["--cap-add", capability]
    out += ["--hostname", spec["hostname"]]
    out += _parents(spec, below_tmp=False)
    out += _system(spec, host, stage)
    out += _parents(spec, below_tmp=True)  # a checkout may lie below /tmp, which is there only now
    for name, content in accounts(spec, *ids).items() if stage is None else ():
        out += ["--perms", "0644", "--file", str(memory.add(content.encode())), f"/etc/{name}"]
    home = {"src": spec["home_dir"], "dst": spec["home_mount"], "writable": True}
    for bind in (*spec["binds"], home):
        out += _bind(bind, stage)
    made = [link for link in spec["links"] if stage is None or not _below_etc(link["path"])]
    out += [word for link in made for word in ("--symlink", link["target"], link["path"])]
    for path in spec["hidden"]:
        out += ["--perms", "0755", "--tmpfs", path, "--remount-ro", path]
    if host["mode"] != "root":
        out += ["--chdir", spec["cwd"] or spec["home_mount"]]
    for key, value in spec["env"].items():
        if host["mode"] != "root" or not _misleads(key):
            out += ["--setenv", key, value]
    return out


def _misleads(key: str) -> bool:
    return key.startswith("LD_") or key in MISLEADING


def _system(spec: dict[str, Any], host: dict[str, Any], stage: Stage | None) -> list[str]:
    out = ["--ro-bind", "/usr", "/usr"]
    for name in LIBRARIES:
        path = f"/{name}"
        if os.path.islink(path):
            out += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            out += ["--ro-bind", path, path]
    out += ["--proc", "/proc"] if host["proc"] == "own" else ["--ro-bind", "/proc", "/proc"]
    size = str(max(1, spec["limits"]["tmp_mib"]) << 20)
    shm = str(spec["limits"].get("shm_mib", 0) << 20)
    out += ["--dev-bind", "/dev", "/dev"] if stage and stage.own_devices else ["--dev", "/dev"]
    out += ["--perms", "1777", "--size", size if shm == "0" else shm, "--tmpfs", "/dev/shm"]  # noqa: S108
    out += ["--perms", "1777", "--size", size, "--tmpfs", "/tmp", "--perms", "0755", "--dir", "/var"]  # noqa: S108
    out += ["--symlink", "../tmp", "/var/tmp", "--symlink", "../run", "/var/run"]  # noqa: S108
    if stage:
        out += ["--ro-bind", "/etc", "/etc"]
    else:
        out += [word for name in ETC for word in ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")]
    if spec["gpus"]:
        out += ["--ro-bind", "/sys", "/sys"]
        devices = [f"nvidia{index}" for index in spec["gpus"]]
        for name in (*devices, "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"):
            out += ["--dev-bind-try", f"/dev/{name}", f"/dev/{name}"]
    if stage and not stage.own_devices:
        out += ["--dev-bind", stage.terminals, "/dev/pts"]
    out += ["--remount-ro", "/dev"]  # it has no size; what is written to is /dev/shm
    if not spec["gpus"]:
        # the processors' shape and nothing of the machine's devices, network or other groups
        out += ["--ro-bind-try", SHAPE, SHAPE]
    return out


def _parents(spec: dict[str, Any], *, below_tmp: bool) -> list[str]:
    """Make the directories above what is bound, so that everybody may enter them."""
    above = {"/etc": None, "/run": None, "/sys": None}
    made = (*(bind["dst"] for bind in spec["binds"]), *(link["path"] for link in spec["links"]))
    for path in (spec["home_mount"], *made):
        parts = path.strip("/").split("/")
        above |= {"/" + "/".join(parts[:count]): None for count in range(1, len(parts))}
    roots = ("usr", "proc", "dev", "tmp", *LIBRARIES)
    wanted = (
        (path for path in above if path.startswith("/tmp/"))  # noqa: S108
        if below_tmp
        else (path for path in above if path.split("/")[1] not in roots)
    )
    return [option for path in wanted for option in ("--perms", "0755", "--dir", path)]


def _bind(bind: dict[str, Any], stage: Stage | None) -> list[str]:
    source = bind["src"]
    if bind.get("optional") and not os.path.exists(source):
        return []
    kind = "--dev-bind" if bind.get("device") else "--bind" if bind["writable"] else "--ro-bind"
    return [kind, stage.add(source) if stage else source, bind["dst"]]


def demotion(spec: dict[str, Any], uid: int, gid: int) -> list[str]:
    """Return the command that gives up root inside, where no user namespace does it.

    The directory changes only after that: bubblewrap, without root's usual rights, cannot enter another
    user's home. The variables by which a tenant could make these commands run another program as root
    are also set only after that. For the same reason none of these commands is looked for in the
    tenant's PATH.
    """
    late = [f"{key}={value}" for key, value in spec["env"].items() if _misleads(key)]
    return [
        _system_program("setpriv"), "--reuid", str(uid), "--regid", str(gid), "--clear-groups", "--inh-caps=-all",
        "--ambient-caps=-all", "--bounding-set=-all", "--no-new-privs", "--",
        _system_program("env"), f"--chdir={spec['cwd'] or spec['home_mount']}", "--", *late,
    ]  # fmt: skip


def _system_program(name: str) -> str:
    places = (f"{place}/{name}" for place in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"))
    return next((path for path in places if os.path.exists(path)), f"/usr/bin/{name}")
