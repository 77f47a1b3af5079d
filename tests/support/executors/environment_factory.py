"""Makes environments with uv in real sandboxes of packages that a test writes; no network is used."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.executors.local.environments import LocalEnvironments
from mlp_hub.executors.local.package_index import PackageIndex
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.fence import Fence
from mlp_hub.executors.workspace import Extent, Space, StoredPlace
from mlp_language.message import msg
from support.executors.wheels import build_wheel

PLACE = StoredPlace("environment", "red", "tools-abc", "red")
"""Where it lies."""
OWNER = 300_007 if os.geteuid() == 0 else None


class Steps:
    """Steps that take note of all."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.spaces: list[Space] = []
        self.full = False
        self.lines = ""
        self.stopped: BaseException | None = None
        self.still = 0  # how often it goes on before that

    def admit(self, size: int) -> None:
        self.sizes.append(size)

    def leaves(self, space: Space) -> None:
        self.spaces.append(space)
        if self.full:
            raise Refused(Reason.DISK_FULL, msg("full"))

    def report_output(self, lines: str) -> None:
        self.lines = lines

    def check_cancelled(self) -> None:
        if self.stopped and not self.still:
            raise self.stopped
        self.still = max(self.still - 1, 0)


class Factory:
    """Makes environments of the packages in one directory, for `directories` where that is not `root` too."""

    def __init__(
        self, root: Path, directories: Directories | None = None, place: StoredPlace = PLACE
    ) -> None:
        self.root, self.wheels, self.place = root, root / "wheels", place
        self.wheels.mkdir(mode=0o755, parents=True)
        root.chmod(0o755)
        index = PackageIndex(
            {"UV_FIND_LINKS": str(self.wheels), "UV_NO_INDEX": "1", "UV_OFFLINE": "1"}, (str(self.wheels),)
        )
        self.directories = directories or Directories(root / "homes", root / "jobs")
        self.maker = LocalEnvironments(root / "builds", self.directories, Fence(), sys.executable, index)
        self.steps = Steps()

    @property
    def top(self) -> Path:
        return self.directories.stored(self.place)

    def wheel(self, name: str, files: Mapping[str, str]) -> None:
        """Put a wheel beside the others: uv's, where it is one module, else with whatever files, as hostile ones have."""
        if list(files) == [f"{name}.py"]:
            build_wheel(self.wheels, name, files[f"{name}.py"])
            return
        about = f"{name}-1.0.dist-info"
        every = {
            **files,
            f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
            f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "".join(f"{path},{_digest(text)},{len(text)}\n" for path, text in every.items())
        with zipfile.ZipFile(self.wheels / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            for path, text in {**every, f"{about}/RECORD": f"{record}{about}/RECORD,,\n"}.items():
                wheel.writestr(path, text)

    def lock(self, requirements: str) -> str:
        return asyncio.run(self.maker.lock(self.place, requirements, OWNER, epoch=1, steps=self.steps))

    def make(self, requirements: str) -> Extent:
        lock = self.lock(requirements)
        return asyncio.run(self.maker.install(self.place, lock, OWNER, epoch=1, steps=self.steps))

    def is_clean(self) -> bool:
        """Whether nothing is left of what was being made."""
        return not any((self.root / "builds").iterdir()) and not any(
            (self.top.parent / ".arriving").iterdir()
        )


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + urlsafe_b64encode(digest).decode().rstrip("=")
