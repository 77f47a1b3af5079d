"""What the platform tells of a path in a tenant's directory, whatever links are planted there."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from mlp_hub.domain.errors import Refused
from mlp_hub.executors import rank_commands
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.fence import Fence
from mlp_hub.executors.shared_volume.workspace import SharedVolumeWorkspace
from mlp_hub.safe_path import DEEPEST, DirHandle, PathKind, kind_of
from mlp_hub.service.jobs.resolving import entry_in
from support.files.descriptors import open_below

SEEN_AT = "/home/ann"


def workspace_of(home: Path) -> SharedVolumeWorkspace:
    return SharedVolumeWorkspace(Directories(home.parent, home.parent), Fence())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "homes" / "ann"
    (home / "code" / "sub").mkdir(parents=True)
    (home / "code" / "train.py").write_text("")
    os.mkfifo(home / "pipe")
    (tmp_path / "homes" / "bob").mkdir()
    (tmp_path / "homes" / "bob" / "thesis.txt").write_text("")
    return home


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("code/train.py", PathKind.FILE),
        ("./code//sub/../train.py", PathKind.FILE),
        ("code", PathKind.DIRECTORY),
        ("", PathKind.DIRECTORY),
        ("pipe", PathKind.OTHER),
        ("nothing", PathKind.MISSING),
        ("code/train.py/x", PathKind.MISSING),
        ("x" * 300, PathKind.MISSING),
        ("..", PathKind.OUTSIDE),
        ("../bob/thesis.txt", PathKind.OUTSIDE),
        ("code/../../bob", PathKind.OUTSIDE),
        ("a\0b", PathKind.UNKNOWN),
    ],
)
def test_the_kind_of_a_path_is_reported(home: Path, path: str, found: PathKind) -> None:
    assert kind_of(home, path, SEEN_AT) is found


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("code/train.py", PathKind.FILE),
        ("./code/sub/../train.py", PathKind.FILE),
        ("/home/ann/code/train.py", PathKind.FILE),  # as its owner sees it
        ("/home/ann", PathKind.DIRECTORY),
        ("/home/ann/../bob/thesis.txt", PathKind.OUTSIDE),
        ("/home/annie", PathKind.OUTSIDE),
        ("../bob/thesis.txt", PathKind.OUTSIDE),
        ("../bob/nothing.txt", PathKind.OUTSIDE),
        ("/etc/shadow", PathKind.OUTSIDE),
        ("/etc/nothing", PathKind.OUTSIDE),
        ("/", PathKind.OUTSIDE),
        ("/proc/self/fd/0", PathKind.OUTSIDE),
        ("link", PathKind.MISSING),  # to itself
        ("nothing", PathKind.MISSING),
    ],
)
def test_links_are_gone_after_inside_only(home: Path, target: str, found: PathKind) -> None:
    (home / "link").symlink_to(target)
    assert kind_of(home, "link", SEEN_AT) is found
    (home / "code" / "up").symlink_to("../link")
    assert kind_of(home, "code/up", SEEN_AT) is found


def test_a_top_that_is_a_link_or_missing_has_nothing(home: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home)
    assert kind_of(tmp_path / "link", "code", SEEN_AT) is PathKind.MISSING
    assert kind_of(tmp_path / "none", "code", SEEN_AT) is PathKind.MISSING


def test_however_deep_it_lies_few_directories_are_held_open(home: Path) -> None:
    inner = home
    for _ in range(DEEPEST + 50):
        inner = inner / "d"
    inner.mkdir(parents=True)
    (home / "chain").symlink_to("/".join(["d"] * (DEEPEST + 50)))
    assert kind_of(home, "chain", SEEN_AT) is PathKind.UNKNOWN
    assert kind_of(home, "/".join(["chain"] * 100), SEEN_AT) is PathKind.UNKNOWN
    assert open_below(home) == []


def _installed(home: Path, package: str) -> Path:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    place = home / ".local" / "lib" / version / "site-packages" / package
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _lacks(home: Path) -> bool:
    return rank_commands.lacks("torch", sys.executable, str(home), SEEN_AT)


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_commands.importlib.util, "find_spec", lambda _package: None)
    # the versions of Python that the environment has
    monkeypatch.setattr(sys, "executable", str(Path(sys.prefix) / "bin" / "python"))


@pytest.mark.usefixtures("no_torch")
def test_a_package_that_its_user_installed_is_found(home: Path) -> None:
    assert _lacks(home)
    place = _installed(home, "torch")
    place.mkdir()
    assert _lacks(home)
    (place / "__init__.py").write_text("")
    assert not _lacks(home)
    (home / ".local").rename(home / "elsewhere")
    (home / ".local").symlink_to("/home/ann/elsewhere")
    assert not _lacks(home)


@pytest.mark.usefixtures("no_torch")
def test_a_link_in_place_of_a_package_tells_nothing_of_the_machine(home: Path, tmp_path: Path) -> None:
    """The oracle: whether a submit is refused told whether the link's target is there, for root's eyes."""
    answers = set()
    targets = (
        "/etc/shadow",
        "/etc/none",
        str(tmp_path / "homes/bob/thesis.txt"),
        "/root/.bashrc",
        "/proc/1/cwd/none",
    )
    for target in targets:
        place = _installed(home, "torch")
        place.mkdir(exist_ok=True)
        link = place / "__init__.py"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        answers.add(_lacks(home))
    assert answers == {False}
    link.unlink()
    place.rmdir()
    for target in ("/etc", "/none"):
        place.symlink_to(target)
        answers.add(_lacks(home))
        place.unlink()
    assert answers == {False}


def test_an_entry_behind_a_link_tells_nothing_of_the_machine(home: Path, tmp_path: Path) -> None:
    said = set()
    workspace = workspace_of(home)
    for target in (
        "/etc/shadow",
        "/etc/none",
        str(tmp_path / "homes/bob/thesis.txt"),
        "/proc/1/root",
        "../bob",
    ):
        (home / "x.py").unlink(missing_ok=True)
        (home / "x.py").symlink_to(target)
        with pytest.raises(Refused) as refused:
            asyncio.run(entry_in(workspace, "ann", "x.py"))
        said.add(str(refused.value))
    assert said == {"Invalid: entry x.py leaves your home directory; give a path below it, such as train.py"}


def test_an_entry_behind_a_link_inside_the_home_is_taken(home: Path) -> None:
    (home / "x.py").symlink_to("/home/ann/code/train.py")
    assert asyncio.run(entry_in(workspace_of(home), "ann", "x.py")) == "x.py"


def test_a_home_is_seen_where_ranks_see_it_whatever_its_users_name(tmp_path: Path) -> None:
    home = tmp_path / "homes/ann b"
    (home / "code").mkdir(parents=True)
    (home / "code/train.py").touch()
    (home / "x.py").symlink_to("/home/ann_b/code/train.py")
    workspace = workspace_of(home)
    for entry in ("x.py", "/home/ann_b/x.py"):
        assert asyncio.run(entry_in(workspace, "ann b", entry)) == "x.py"


def test_a_directory_that_becomes_a_link_while_one_is_in_it_leads_nowhere(home: Path, tmp_path: Path) -> None:
    with DirHandle.at(home) as top, top.inside("code") as code:
        (home / "code").rename(home / "old")
        (home / "code").symlink_to(tmp_path / "homes" / "bob")
        with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
            top.inside("code")
        with code.create("new", 0o600) as file:
            file.write(b"x")
        assert (home / "old" / "new").read_bytes() == b"x"
        with pytest.raises(OSError, match="No such file"):
            code.read("thesis.txt")
    assert [path.name for path in (tmp_path / "homes" / "bob").iterdir()] == ["thesis.txt"]


def test_links_pipes_and_what_is_there_are_neither_read_nor_written(home: Path, tmp_path: Path) -> None:
    secret = tmp_path / "homes" / "bob" / "thesis.txt"
    (home / "link").symlink_to(secret)
    with DirHandle.at(home) as top:
        for name in ("link", "pipe", "code"):
            with pytest.raises(OSError, match=r"link|symbolic|not a plain file|Is a directory"):
                top.read(name)
            with pytest.raises(FileExistsError):
                top.create(name, 0o600)
        secret.chmod(0o640)
        (home / "shut").symlink_to(secret.parent)
        top.open_up("shut")
        top.open_up("link")
    assert secret.stat().st_mode & 0o777 == 0o640
    assert secret.parent.stat().st_mode & 0o777 != 0o700
