"""Starts bubblewrap for a sandbox."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import sys
from binascii import a2b_base64
from typing import Any, NoReturn

from mlp_hub.sandbox.shim import cgroups, linux, view

_PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
MEMORY_EVENTS = "/run/memory.events"  # inside
OOM_SCORE = 300  # where the whole machine runs out of memory, rather these than the hub


class Started:
    """A sandbox that was just started.

    `status` tells its process number and exit status; the program starts once a byte is written to `unblock`;
    `control` is the directory that is /run/mlp inside.
    """

    def __init__(
        self, *, pid: int, stdout: int, stderr: int, status: int, unblock: int, control: str | None
    ) -> None:
        self.pid, self.stdout, self.stderr, self.status = pid, stdout, stderr, status
        self.unblock, self.control = unblock, control


def start(
    run_dir: str,
    spec: dict[str, Any],
    host: dict[str, Any],
    groups: cgroups.Groups,
    listener: socket.socket | None,
) -> Started:
    """Make the sandbox's view and start its command in it."""
    ids = (spec["uid"],) * 2 if host["mode"] in ("root-userns", "root") else (os.getuid(), os.getgid())
    if host["mode"] == "open":
        return _start_bare(spec, host, groups, listener)
    memory = view.Memory()
    seen = _with_memory_events(spec, groups)
    stage = _stage(seen, host, ids)
    options, control = _view(
        run_dir=run_dir, spec=seen, host=host, ids=ids, listener=listener, stage=stage, memory=memory
    )
    out_r, out_w = os.pipe()
    err_r, err_w = os.pipe()
    status_r, status_w = os.pipe()
    options += ["--json-status-fd", str(status_w)]
    block_r, block_w = os.pipe()
    options += ["--block-fd", str(block_r)]
    if host["seccomp"]:
        options += ["--seccomp", str(memory.add(a2b_base64(host["seccomp"])))]
    shim, file_mib = os.getpid(), spec["limits"].get("file_mib", 0)
    args = memory.add(b"".join(option.encode() + b"\0" for option in options))
    command = ["bwrap", "--args", str(args), "--"]
    if host["mode"] == "root":
        command += view.demotion(spec, *ids)
    command += spec["argv"]
    trouble_r, trouble_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            for fd in (status_w, block_r, *memory.fds, *([listener.fileno()] if listener else [])):
                os.set_inheritable(fd, True)
            _become(groups, (out_w, err_w), file_mib)
            if stage:
                _enter(stage, host["bwrap"], trouble_w)
            _be(ids if stage else None, shim)
            os.execve(host["bwrap"], command, _PATH)
        except BaseException as error:  # noqa: BLE001 - nothing may return into the shim's code twice
            _give_up(error)
    for fd in (out_w, err_w, status_w, block_r, trouble_w, *memory.fds):
        os.close(fd)
    if listener is not None:
        listener.close()
    _await_program(pid, trouble_r)
    return Started(pid=pid, stdout=out_r, stderr=err_r, status=status_r, unblock=block_w, control=control)


def _await_program(pid: int, trouble: int) -> None:
    """Return as bubblewrap begins. Raises the OSError that kept it from that."""
    with os.fdopen(trouble, "rb") as file:
        said = file.read()
    if said:
        os.waitpid(pid, 0)
        raise OSError(*json.loads(said))


def _start_bare(
    spec: dict[str, Any], host: dict[str, Any], groups: cgroups.Groups, listener: socket.socket | None
) -> Started:
    """Start the command without a sandbox."""
    here = os.path.dirname(os.path.abspath(__file__))
    uid = spec["uid"] if os.geteuid() == 0 else None
    env, argv, control = dict(spec["env"]), list(spec["argv"]), None
    if listener is not None:
        env["MLP_LISTEN_FD"] = str(listener.fileno())
    if spec["ranks"] and spec["ranks"]["mode"] != "single":
        import tempfile  # noqa: PLC0415 - each shim would hold it

        control = tempfile.mkdtemp(prefix=f"mlp-{host['group']}-")
        at = f"{control}/"
        argv = [word.replace("/run/mlp/", at, 1) if word.startswith("/run/mlp/") else word for word in argv]
        _control(control, json.loads(json.dumps(spec["ranks"]).replace('"/run/mlp/', f'"{at}')))
    memory = view.Memory()
    what = memory.add(json.dumps({"argv": argv, "env": env, "cwd": spec["cwd"]}).encode())
    out_r, out_w = os.pipe()
    err_r, err_w = os.pipe()
    status_r, status_w = os.pipe()
    block_r, block_w = os.pipe()
    shim, file_mib = os.getpid(), spec["limits"].get("file_mib", 0)
    command = [sys.executable, "-IS", f"{here}/programs/bare.py", str(status_w), str(block_r), str(what)]
    pid = os.fork()
    if pid == 0:
        try:
            for fd in (status_w, block_r, what, *([listener.fileno()] if listener else [])):
                os.set_inheritable(fd, True)
            _become(groups, (out_w, err_w), file_mib)
            _be((uid, uid) if uid else None, shim)
            os.execve(sys.executable, command, _PATH)
        except BaseException as error:  # noqa: BLE001 - nothing may return into the shim's code twice
            _give_up(error)
    for fd in (out_w, err_w, status_w, block_r, what):
        os.close(fd)
    if listener is not None:
        listener.close()
    return Started(pid=pid, stdout=out_r, stderr=err_r, status=status_r, unblock=block_w, control=control)


def _with_memory_events(spec: dict[str, Any], groups: cgroups.Groups) -> dict[str, Any]:
    """Let the inside see what the kernel killed there for lack of memory, where it wants that and it is counted."""
    if not spec.get("memory_events") or groups.memory_events is None:
        return spec
    bind = {"src": groups.memory_events, "dst": MEMORY_EVENTS, "writable": False}
    return {
        **spec,
        "binds": [*spec["binds"], bind],
        "env": {**spec["env"], "MLP_MEMORY_EVENTS": MEMORY_EVENTS},
    }


def _stage(spec: dict[str, Any], host: dict[str, Any], ids: tuple[int, int]) -> view.Stage | None:
    """Return the small root for bubblewrap, where root makes it for another user."""
    if host["mode"] != "root-userns":
        return None
    ranks = len(spec["ranks"]["roles"]) if spec["ranks"] else 1
    etc = view.accounts(spec, *ids)
    return view.Stage(view.TERMINALS + ranks, etc, spec, own_devices=not spec["gpus"])


def _view(
    *,
    run_dir: str,
    spec: dict[str, Any],
    host: dict[str, Any],
    ids: tuple[int, int],
    listener: socket.socket | None,
    stage: view.Stage | None,
    memory: view.Memory,
) -> tuple[list[str], str | None]:
    """Return bubblewrap's options and the directory that is /run/mlp inside, if there is one."""
    env = dict(spec["env"])
    if listener is not None:
        env["MLP_LISTEN_FD"] = str(listener.fileno())
    options = view.arguments({**spec, "env": env}, host, ids, stage, memory)
    control = None
    if spec["ranks"] and spec["ranks"]["mode"] != "single":
        control = f"{run_dir}/control"
        _control(control, spec["ranks"])
        options += ["--ro-bind", stage.add(control) if stage else control, "/run/mlp"]
    # what lies between the mounts, /etc's small files too; cheaper than a read-only mount for each file
    options += ["--remount-ro", "/"]
    return options, control


def _enter(stage: view.Stage, program: str, trouble: int) -> None:
    """Enter the small root; an error is the shim's to raise, which may say that nothing was started."""
    try:
        stage.make(program)
    except OSError as error:
        os.write(trouble, json.dumps([error.errno, error.strerror, error.filename]).encode())
        os._exit(126)


def _become(groups: cgroups.Groups, output: tuple[int, int], file_mib: int) -> None:
    """Turn the forked process into what bubblewrap is to start from, all but its user."""
    groups.enter()
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(str(OOM_SCORE))
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(output[0], 1)
    os.dup2(output[1], 2)
    os.umask(0o022)
    signal.set_wakeup_fd(-1)
    for one in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if file_mib:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_mib << 20, file_mib << 20))


def _be(ids: tuple[int, int] | None, shim: int) -> None:
    """Become this user, and end with the shim."""
    if ids is not None:
        uid, gid = ids
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    linux.die_with_parent(shim)


def _give_up(error: BaseException) -> NoReturn:
    with contextlib.suppress(OSError):
        os.write(2, f"bwrap: cannot start: {error}\n".encode())
    os._exit(126)


def make_listener(path: str) -> socket.socket:
    """Make the socket on which the program inside will be reached; the path is never the tenant's to change."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    directory, _, name = path.rpartition("/")
    fd = os.open(directory or ".", os.O_PATH | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{fd}/{name}")
    finally:
        os.close(fd)
    os.chmod(path, 0o600)
    listener.listen(256)
    listener.setblocking(False)
    return listener


def _control(directory: str, plan: dict[str, Any]) -> None:
    """Fill the directory in which the starter of ranks finds itself, the plan and the socket."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory)
    os.chmod(directory, 0o755)
    here = os.path.dirname(os.path.abspath(__file__))
    contents = {"plan.json": json.dumps(plan).encode()}
    for name in ("inside.py", "by_mpi4py.py", "by_python.py"):
        with open(f"{here}/programs/{name}", "rb") as file:
            contents[name] = file.read()
    for name, content in contents.items():
        with open(f"{directory}/{name}", "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), 0o644)
