"""Makes the catalogues that Python reads while the wheel is built, or the editable environment."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Catalogues beside their sources; git does not know of them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write them."""
        del version, build_data
        sys.path.insert(0, str(Path(self.root, "languages")))
        import export  # noqa: PLC0415 - found since the line before

        export.for_python()
