"""Launcher of the single-user server inside the sandbox or the pod.

In a sandbox it uses a listening socket that was made outside, whose number is in MLP_LISTEN_FD. The
server's own way would be to make the socket in a directory that it can write to. Its user could
then replace it by a link to another server's. In a pod it uses its own port. There the text of this
file is the program, so that an image needs no path of ours.

The user's Jupyter settings never keep it from starting: if it fails, it starts once more without
them, and reports it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import signal
import site
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from glob import glob
from importlib.util import find_spec
from inspect import iscoroutinefunction
from typing import Any

NEEDED = ("jupyterhub", "jupyterlab")
"""Given: packages without which an image starts no server; `pod_states` has the same."""
LACKS = 78
"""Given: exit status of an image that lacks one of them, which it names in its last word to the cluster; `pod_states` has the same."""
_LAST_WORD = "/dev/termination-log"
# where the kernel counts what it killed for lack of memory, as a pod sees it
_MEMORY_EVENTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


WITHOUT = "MLP_WITHOUT_SETTINGS"
"""Contract: reason why a server runs without its user's Jupyter settings.

It is `chosen`, or else the words of the failure. The page shows it.
"""
_LONGEST = 500
"""Safety: characters of these words."""
_SETTINGS_S = 20.0
"""Tuning: seconds that a program of settings may take: a slow one is left out, or a start waits longer for one that hangs."""
_FOLDERS = {
    "CONFIG": (".jupyter", "etc/jupyter", "JUPYTER_CONFIG_PATH"),
    "DATA": (".local/share/jupyter", "share/jupyter", "JUPYTER_PATH"),
}
"""Given: places of a user's own settings and installations for Jupyter: in the home, below Python's user base, and a variable for more."""
_HUB_S = 50.0
"""Tuning: seconds that a question about a token waits for a hub that takes no connection."""
_HUB_AGAIN_S = 0.2
"""Tuning: seconds between two such questions: the hub is found sooner, or asked more often in vain."""
_NOT_CONNECTED = "Failed to connect"
"""Given: begin of the message of JupyterHub's error then."""
_DONE = 77
"""Exit status of a process that tried settings to their end. Not 0: a program that ends its process itself has that, most likely."""


class ServerStart:
    """This start of the server: how far it came, and the last that it complained of."""

    def __init__(self) -> None:
        """Note what is logged, and that the server serves."""
        self.serves = False
        self._said = ""
        make = logging.getLogRecordFactory()

        def noting(*args: Any, **more: Any) -> logging.LogRecord:
            record = make(*args, **more)
            if record.levelno >= logging.ERROR and not self.serves:
                self._said = record.getMessage()
            return record

        logging.setLogRecordFactory(noting)

        from jupyter_server import serverapp  # noqa: PLC0415

        begin = serverapp.ServerApp.start_ioloop

        def serve(app: Any) -> None:
            self.serves = True
            begin(app)

        patched: Any = serverapp.ServerApp
        patched.start_ioloop = serve

    def run(self, listening: int | None) -> None:
        """Run the server; where it fails before it serves, begin again without its user's settings, once."""
        from jupyterhub.singleuser import main as run  # noqa: PLC0415

        try:
            run()
        except (Exception, SystemExit) as error:
            if self.serves or WITHOUT in os.environ or (isinstance(error, SystemExit) and not error.code):
                raise
            why = self._said if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
            self._again(" ".join(why.split())[:_LONGEST] or "?", listening)

    def _again(self, why: str, listening: int | None) -> None:
        print(f"The server did not start: {why}", file=sys.stderr)  # noqa: T201 - the server's log
        print("It starts again without its user's settings of Jupyter.", file=sys.stderr, flush=True)  # noqa: T201
        os.environ[WITHOUT] = why
        if listening is not None:
            os.set_inheritable(listening, True)
            os.environ["MLP_LISTEN_FD"] = str(listening)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this program anew


def main() -> None:
    """Start the server as JupyterHub wants it."""
    # a grammar for a format that no schema of the server uses; building it is a second of every start, and 16 MB
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # means: not installed
    # modules make no garbage; looking for it among them is a third of the start
    gc.disable()
    listening = int(os.environ.pop("MLP_LISTEN_FD")) if "MLP_LISTEN_FD" in os.environ else None
    if listening is not None:
        os.set_inheritable(listening, False)  # programs of settings, kernels and terminals must not get it
    if WITHOUT not in os.environ and (why := _what_fails()):
        os.environ[WITHOUT] = why[:_LONGEST]
        print(f"It starts without its user's settings of Jupyter: {why}", file=sys.stderr, flush=True)  # noqa: T201 - the server's log
    if WITHOUT in os.environ:
        _leave_settings(chosen=os.environ[WITHOUT] == "chosen")
    again: int | None = None
    if listening is not None:
        again = os.dup(listening)  # a server that fails may close its own
        _take_socket(listening)
    else:
        _check_image()
        _settle_in_pod()
    start = ServerStart()

    import jupyterhub.singleuser  # noqa: F401, PLC0415 - while nothing looks for garbage

    _wait_for_hub()
    gc.freeze()
    gc.enable()
    start.run(again)


def _what_fails(patience_s: float = _SETTINGS_S) -> str:
    """Return the user's Jupyter setting or extension that would end or delay the server, or hide its pages."""
    return (
        _what_ends_us(_settings("config.py"), patience_s)
        or _which_are_no_files(_settings("config.json"))
        or _what_lab_cannot_read(patience_s)
    )


def _settings(ending: str) -> list[str]:
    """Return the settings that Jupyter Server, or an extension of it, would read; of other parts of Jupyter too."""
    found = ((folder, name) for folder in _own_folders("CONFIG") for name in _names_in(folder))
    return [f"{own}/{name}" for own, name in found if name.startswith("jupyter_") and name.endswith(ending)]


def _own_folders(kind: str) -> list[str]:
    """Return the user's own folders in which Jupyter looks for settings (`CONFIG`), or for installed data (`DATA`)."""
    usual, below, more = _FOLDERS[kind]
    home = os.path.expanduser("~")  # noqa: PTH111 - as a text
    found = [os.environ.get(f"JUPYTER_{kind}_DIR") or f"{home}/{usual}"]
    if site.ENABLE_USER_SITE:
        found.append(f"{site.getuserbase()}/{below}")
    found += [path for path in os.environ.get(more, "").split(os.pathsep) if _is_in(home, path)]
    return list(dict.fromkeys(found))


def _is_in(home: str, path: str) -> bool:
    return os.path.abspath(path).startswith(f"{home}/")  # noqa: PTH100 - as a text


def _which_are_no_files(paths: list[str]) -> str:
    """Name a path that is neither a file nor a link to one: opening a named pipe would block for ever."""
    found = (path for path in paths if os.path.exists(path) and not os.path.isfile(path))  # noqa: PTH110, PTH113
    return next((f"{path} is not a file" for path in found), "")


def _what_ends_us(programs: list[str], patience_s: float) -> str:
    """Run each in a separate process; return the one that ends that process, or exceeds `patience_s` seconds.

    Other errors of it are ignored: the server itself meets them, and has better words for them.
    """
    for program in programs:
        ended = _fate_of(lambda program=program: _run_settings(program), patience_s)  # type: ignore[misc]
        if ended is None:
            return f"{program} did not come to its end within {patience_s:g} s"
        if not ended:
            return f"{program} ended the process that read it"
    return ""


def _what_lab_cannot_read(patience_s: float) -> str:
    """Return what JupyterLab could not read of its user's extensions and settings: each of its pages would be an error."""
    for what, kind, name, read in (
        ("an extension", "DATA", "labextensions", _read_extensions),
        ("a setting", "CONFIG", "labconfig", _read_lab_settings),
    ):
        for own in _own_folders(kind):
            folder = f"{own}/{name}"
            if _names_in(folder) and not _fate_of(partial(read, folder), patience_s):
                return f"{what} in {folder} cannot be read"
    return ""


def _fate_of(act: Callable[[], object], patience_s: float) -> bool | None:
    """Call `act` in a separate process; return whether it ended well, `None` if not within `patience_s`."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:  # noqa: BLE001 - and nothing of the parent's may run here
            os._exit(1)
        os._exit(_DONE)
    until = time.monotonic() + patience_s
    ended, status = os.waitpid(child, os.WNOHANG)
    while not ended and time.monotonic() < until:
        time.sleep(0.02)
        ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        return os.WIFEXITED(status) and os.WEXITSTATUS(status) == _DONE
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _run_settings(program: str) -> None:
    from traitlets.config.loader import PyFileConfigLoader  # noqa: PLC0415

    with contextlib.suppress(BaseException):  # see `_what_ends_us`
        PyFileConfigLoader(program).load_config()


def _read_extensions(folder: str) -> None:
    """Read what `get_federated_extensions` of jupyterlab_server reads for each page, and fail as it does. To import it takes seconds."""
    for each in ("[!@]*", "@*/*"):
        for found in glob(f"{folder}/{each}/package.json"):  # noqa: PTH207 - as a text
            report = _read_json(found)
            _ = {report["name"]: report["version"]}
            if "url" in (where := report.get("repository", {})):
                where.get("url")
            installed = f"{os.path.dirname(found)}/install.json"  # noqa: PTH120 - as a text
            if os.path.exists(installed):  # noqa: PTH110 - as a text
                _read_json(installed)


def _read_lab_settings(folder: str) -> None:
    """Read the same settings as `ConfigManager` of jupyter_server does for jupyterlab_server, and fail where it fails, but accept invalid JSON."""
    for section in ("page_config", "default_setting_overrides"):
        for found in (*glob(f"{folder}/{section}.d/*.json"), f"{folder}/{section}.json"):  # noqa: PTH207 - as a text
            if os.path.isfile(found) and os.path.getsize(found):  # noqa: PTH113, PTH202 - as a text
                with contextlib.suppress(json.JSONDecodeError):
                    for each in _read_json(found).values():
                        _ = each.items() if section == "default_setting_overrides" else None


def _read_json(path: str) -> Any:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as a text
        return json.load(file)


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - as a text
    except OSError:
        return []


def _leave_settings(*, chosen: bool) -> None:
    """Hide the user's Jupyter settings and extensions from Jupyter; with `chosen`, from kernels too."""
    own = tempfile.mkdtemp(prefix="mlp-plain-")
    home = os.path.expanduser("~")  # noqa: PTH111 - as a text
    for name, (_, _, more) in _FOLDERS.items():
        os.environ[f"JUPYTER_{name}_DIR"] = f"{own}/{name.lower()}"
        if more in os.environ:
            kept = [path for path in os.environ[more].split(os.pathsep) if not _is_in(home, path)]
            os.environ[more] = os.pathsep.join(kept)
    site.ENABLE_USER_SITE = False  # which Jupyter asks whether it is to look there; what is imported does not depend on it any more
    if chosen:
        os.environ["PYTHONNOUSERSITE"] = "1"
        os.environ["IPYTHONDIR"] = f"{own}/ipython"


def _check_image() -> None:
    """Exit at once if the image cannot run a server, with a message of the missing modules."""
    missing = " ".join(name for name in NEEDED if find_spec(name) is None)
    if missing:
        with open(_LAST_WORD, "w") as file:  # noqa: PTH123 - a path of the cluster's
            file.write(missing)
        sys.exit(LACKS)


def _settle_in_pod() -> None:
    """Complete the environment with the values that only the image knows."""
    own = os.path.expanduser("~/.local/bin")  # noqa: PTH111 - as a text
    os.environ["PATH"] = f"{own}:{os.environ.get('PATH', '/usr/local/bin:/usr/bin:/bin')}"
    found = [path for path in _MEMORY_EVENTS if os.path.exists(path)]  # noqa: PTH110
    if found:
        os.environ["MLP_MEMORY_EVENTS"] = found[0]


def _wait_for_hub() -> None:
    """Have the server wait for a hub that is restarted when it asks about a token; its user would get an error."""
    from jupyterhub.services.auth import HubAuth  # noqa: PLC0415
    from tornado.web import HTTPError  # noqa: PLC0415

    patched: Any = HubAuth
    ask = patched._api_request  # noqa: SLF001 - it has no public way
    if not iscoroutinefunction(ask):  # an image may bring an older JupyterHub
        return

    async def patient(auth: Any, method: str, url: str, /, **more: Any) -> Any:
        until = time.monotonic() + _HUB_S
        while True:
            try:
                return await ask(auth, method, url, **more)
            except HTTPError as error:
                connected = not (error.log_message or "").startswith(_NOT_CONNECTED)
                if connected or time.monotonic() >= until:
                    raise
            await asyncio.sleep(_HUB_AGAIN_S)

    patched._api_request = patient  # noqa: SLF001


def _take_socket(fd: int) -> None:
    """Hand the socket to Jupyter Server."""
    from jupyter_server import serverapp  # noqa: PLC0415

    def bind(*_args: Any, **_more: Any) -> socket.socket:
        listening = socket.socket(fileno=fd)
        listening.setblocking(False)
        return listening

    def in_use(_path: str) -> bool:
        return False

    patched: Any = serverapp
    patched.bind_unix_socket = bind
    patched.unix_socket_in_use = in_use


if __name__ == "__main__":
    main()
