"""Makes the catalogues and the pages of the documentation while the wheel is built, or the editable environment."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Files beside their sources; git does not know of them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write them."""
        del version, build_data
        sys.path[:0] = [str(Path(self.root, "languages")), str(Path(self.root, "tools"))]
        import export  # noqa: PLC0415 - found since the line before
        from docsite import build  # noqa: PLC0415 - as above

        export.for_python()
        build.for_hub()
