"""What packages and their index may try while an environment is made of them: nothing of them runs, and nothing is left. No network is used."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
import tarfile
import threading
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from mlp_hub import sandbox
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.executors.environments import BuildFailed
from mlp_hub.executors.local.environments import LocalEnvironments, _Step, is_for
from mlp_hub.executors.local.package_index import PackageIndex
from mlp_hub.executors.shared_volume.fence import Fence
from mlp_hub.executors.shared_volume.trees.sizes import ENTRY, FREE_ENTRIES
from mlp_language.message import msg
from support.executors.environment_factory import OWNER, PLACE, Factory
from support.executors.wheels import build_sdist
from support.rigs import environment_rig
from support.waiting import PATIENCE_S, wait_for

RUNS = "import pathlib; pathlib.Path('/mlp/env/ran').write_text('ran')"


@pytest.fixture
def factory(tmp_path: Path) -> Factory:
    return Factory(tmp_path)


def test_nothing_of_a_wheel_runs_while_it_is_installed_and_compiled(factory: Factory) -> None:
    factory.wheel(
        "evil",
        {
            "evil.pth": f"import sys; exec({RUNS!r})\n",
            "sitecustomize.py": RUNS,
            "evil/__init__.py": RUNS,
            "evil-1.0.data/data/.base": "a base of its own",
            "evil-1.0.data/data/lib/python3/escape.py": "x = 1",
        },
    )
    extent = factory.make("evil\n")
    assert extent.files > 3
    assert not list(factory.root.rglob("ran"))
    assert is_for(factory.top, factory.maker.base)
    assert list(factory.top.rglob("__init__.*.pyc"))
    assert factory.steps.sizes[-1] == extent.size
    assert factory.is_clean()
    if environment_rig.ROOT:
        assert {os.lstat(path).st_uid for path in factory.top.rglob("*")} == {0}
    assert not [p for p in factory.top.rglob("*") if not p.is_symlink() and p.stat().st_mode & 0o7022]


BUILDS = {
    "setup.py": {"setup.py": RUNS},
    "a backend of its own": {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n',
        "own.py": f"{RUNS}\ndef prepare_metadata_for_build_wheel(*_): {RUNS.partition('; ')[2]}\n",
    },
    "a backend from elsewhere": {
        "pyproject.toml": '[build-system]\nrequires = ["evil"]\nbuild-backend = "evil"\n',
    },
    "versions that are found by building": {
        "pyproject.toml": '[project]\nname = "built"\ndynamic = ["version", "dependencies"]\n',
        "setup.py": RUNS,
    },
}


@pytest.mark.parametrize("files", BUILDS.values(), ids=BUILDS)
def test_packages_that_have_to_be_built_are_refused(factory: Factory, files: dict[str, str]) -> None:
    factory.wheel("evil", {"evil/__init__.py": RUNS})
    about = {"PKG-INFO": "Metadata-Version: 2.1\nName: built\nVersion: 1.0\n"}
    with tarfile.open(factory.wheels / "built-1.0.tar.gz", "w:gz") as archive:
        for name, text in {**about, **files}.items():
            info = tarfile.TarInfo(f"built-1.0/{name}")
            info.size = len(text)
            archive.addfile(info, BytesIO(text.encode()))
    with pytest.raises(BuildFailed, match=r"(?s)built.*no.*wheels"):
        factory.lock("built\n")
    assert not list(factory.root.rglob("ran"))
    assert factory.is_clean()


def test_source_packages_made_by_uv_are_refused(factory: Factory) -> None:
    build_sdist(factory.wheels, "packed", RUNS)
    with pytest.raises(BuildFailed, match=r"(?s)packed.*no.*wheels"):
        factory.lock("packed\n")
    assert factory.is_clean()


def _member(name: str, kind: bytes = tarfile.REGTYPE, to: str = "", **more: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    for field, value in more.items():
        setattr(info, field, value)
    return info


TARS: dict[str, list[tarfile.TarInfo]] = {
    "up": [_member("built-1.0/../../../escape")],
    "absolute": [_member("/mlp/env/escape")],
    "through a link": [_member("built-1.0/x", tarfile.SYMTYPE, "/"), _member("built-1.0/x/tmp/escape")],
    "a second name": [_member("built-1.0/escape", tarfile.LNKTYPE, "/etc/passwd")],
    "a device": [_member("built-1.0/escape", tarfile.BLKTYPE, devmajor=8)],
    "many": [_member(f"built-1.0/{n}") for n in range(50_000)],
    "a long name": [_member("built-1.0/" + "x" * (4 << 20))],
}


@pytest.mark.parametrize("members", TARS.values(), ids=TARS)
def test_attacks_a_hostile_archive_to_be_built_is_not_unpacked(
    factory: Factory, members: list[tarfile.TarInfo]
) -> None:
    """Nor where nothing is said of its metadata but in it."""
    with tarfile.open(factory.wheels / "built-1.0.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for info in members:
            archive.addfile(info)
    with pytest.raises(BuildFailed):
        factory.lock("built\n")
    outside = [p for p in factory.root.rglob("*escape*") if not p.is_relative_to(factory.wheels)]
    assert not outside
    assert not Path("/mlp").exists()
    assert factory.is_clean()


def test_a_wheel_that_is_not_the_one_of_the_lock_is_not_installed(factory: Factory) -> None:
    factory.wheel("plain", {"plain.py": "x = 1"})
    lock = factory.lock("plain\n")
    factory.wheel("plain", {"plain.py": "x = 2"})
    with pytest.raises(BuildFailed, match=r"(?i)hash"):
        asyncio.run(factory.maker.install(PLACE, lock, OWNER, epoch=1, steps=factory.steps))
    assert not factory.top.exists()
    assert factory.is_clean()


def test_a_build_left_running_by_an_earlier_service_is_ended_before_the_next_one(factory: Factory) -> None:
    factory.wheel("plain", {"plain.py": "x = 1"})
    maker, build = factory.maker, factory.root / "builds" / "red-tools-abc"
    arriving = maker._make_directories(PLACE, factory.top, OWNER)
    step = _Step("echo here > half; exec sleep 600", "none", talks=False)
    sandbox.launch(maker._spec(PLACE, arriving, build, step, OWNER), str(build / "run"))
    wait_for(lambda: list(factory.root.rglob("half")))
    another = LocalEnvironments(
        factory.root / "builds", factory.directories, Fence(), sys.executable, factory.maker._index
    )
    asyncio.run(another.forget(PLACE, epoch=1))
    assert sandbox.inspect(str(build / "run")).phase is sandbox.SandboxPhase.ABSENT
    assert factory.is_clean()
    assert factory.make("plain\n").size > 0


def test_an_aborted_build_leaves_nothing(factory: Factory) -> None:
    factory.wheel("plain", {"plain.py": "x = 1"})
    lock = factory.lock("plain\n")
    factory.steps.stopped, factory.steps.still = KeyError("unwanted"), 2
    with pytest.raises(KeyError):
        asyncio.run(factory.maker.install(PLACE, lock, OWNER, epoch=1, steps=factory.steps))
    assert not factory.top.exists()
    assert factory.is_clean()


def test_a_build_that_fills_the_disk_ends_before_it_is_full_and_leaves_nothing(factory: Factory) -> None:
    factory.wheel("plain", {"plain.py": "x = 1"})
    lock = factory.lock("plain\n")
    assert factory.steps.spaces[-1].free > 0, "asked while it is resolved too, when it has no quota yet"
    factory.steps.full = True
    with pytest.raises(Refused, match="full"):
        asyncio.run(factory.maker.install(PLACE, lock, OWNER, epoch=1, steps=factory.steps))
    assert not factory.top.exists()
    assert factory.is_clean()


def test_failure_messages_contain_no_password_of_the_index(factory: Factory) -> None:
    index = PackageIndex(
        {"UV_DEFAULT_INDEX": "https://ann:hidden@127.0.0.1:1/simple", "UV_HTTP_RETRIES": "0"}
    )
    maker = LocalEnvironments(factory.root / "builds", factory.directories, Fence(), sys.executable, index)
    with pytest.raises(BuildFailed) as failed:
        asyncio.run(maker.lock(PLACE, "plain\n", OWNER, epoch=1, steps=factory.steps))
    assert "127.0.0.1" in str(failed.value)
    assert "hidden" not in str(failed.value) + factory.steps.lines


async def test_steps_of_one_team_that_never_end_keep_no_other_team_waiting(factory: Factory) -> None:
    ends, maker = threading.Event(), factory.maker
    red = [asyncio.ensure_future(maker._in_turn("red", ends.wait, factory.steps)) for _ in range(20)]
    try:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.sleep(0)  # all of red have asked by now
            assert await maker._in_turn("blue", lambda: "made", factory.steps) == "made"
        assert not any(one.done() for one in red)
    finally:
        ends.set()
        await asyncio.gather(*red)


def test_a_build_that_is_unwanted_by_its_turn_does_not_begin(factory: Factory) -> None:
    factory.steps.stopped = KeyError("unwanted")
    with pytest.raises(KeyError):
        factory.lock("plain\n")
    assert not (factory.root / "builds").exists()


@pytest.mark.parametrize(
    "files",
    [
        {"../escape.py": "x = 1"},
        {"evil/../../../../escape.py": "x = 1"},
        {"/mlp/env/escape.py": "x = 1"},
        {"evil-1.0.data/data/../../../escape.py": "x = 1"},
        {"evil-1.0.data/scripts/../../../../escape.py": "#!python\nx = 1"},
        {"evil-1.0.data/purelib/../../../../../escape.py": "x = 1"},
        {"evil-1.0.data/headers/../../../../../escape.h": "x"},
        {"evil-1.0.dist-info/entry_points.txt": "[console_scripts]\n../../escape = evil:main\n"},
        {"evil-1.0.dist-info/entry_points.txt": "[console_scripts]\n/mlp/env/escape = evil:main\n"},
        {"evil-1.0.dist-info/entry_points.txt": "[gui_scripts]\nescape\n= evil:main\n"},
    ],
    ids=[
        "up",
        "up and up",
        "absolute",
        "data",
        "scripts",
        "purelib",
        "headers",
        "script",
        "absolute script",
        "script of two lines",
    ],
)
def test_attacks_no_file_of_a_wheel_lands_outside_of_its_environment(
    factory: Factory, files: dict[str, str]
) -> None:
    factory.wheel("evil", {"evil/__init__.py": RUNS, **files})
    with contextlib.suppress(BuildFailed):
        factory.make("evil\n")
    outside = [
        path
        for path in factory.root.rglob("*escape*")
        if not path.is_relative_to(factory.top) and not path.is_relative_to(factory.wheels)
    ]
    assert not outside
    assert not list(factory.root.rglob("ran"))
    assert factory.is_clean()
    assert not Path("/mlp").exists()


def test_attacks_a_link_in_a_wheel_leads_to_nothing_that_the_platform_touches(factory: Factory) -> None:
    secret = factory.root / "secret"
    secret.write_text("of the platform's")
    secret.chmod(0o600)
    factory.wheel("evil", {"evil/__init__.py": RUNS})
    with zipfile.ZipFile(factory.wheels / "evil-1.0-py3-none-any.whl", "a") as wheel:
        for name, to in {"evil/link": str(secret), "zz-mlp-base.pth": str(secret), "evil/top": "/"}.items():
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
            wheel.writestr(info, to)
    with contextlib.suppress(BuildFailed):
        factory.make("evil\n")
    assert secret.read_text() == "of the platform's"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert factory.is_clean()


def test_attacks_what_is_small_to_fetch_and_huge_to_unpack_is_ended_for_the_quota(factory: Factory) -> None:
    factory.wheel("bomb", {"bomb.bin": "0" * (120 << 20)})
    size = factory.wheels / "bomb-1.0-py3-none-any.whl"
    with (
        zipfile.ZipFile(size) as packed,
        zipfile.ZipFile(factory.wheels / "bomb-1.0-py3-none-any.new", "w", zipfile.ZIP_DEFLATED) as small,
    ):
        for name in packed.namelist():
            small.writestr(name, packed.read(name))
    (factory.wheels / "bomb-1.0-py3-none-any.new").replace(size)
    assert size.stat().st_size < 1 << 20

    def admit(size: int) -> None:
        if size > 50 << 20:
            raise Refused(Reason.EXCEEDS_MAX_QUOTA, msg("no room"))

    factory.steps.admit = admit  # type: ignore[method-assign]
    with pytest.raises(Refused, match="no room"):
        factory.make("bomb\n")
    assert not factory.top.exists()
    assert factory.is_clean()


def test_attacks_names_take_of_the_quota_also_where_the_files_are_empty(factory: Factory) -> None:
    many = 3 * FREE_ENTRIES
    factory.wheel("many", {f"many/f{n}": "" for n in range(many)})
    extent = factory.make("many\n")
    assert extent.files > many
    assert extent.size >= (many - FREE_ENTRIES) * ENTRY
    assert factory.steps.sizes[-1] == extent.size
