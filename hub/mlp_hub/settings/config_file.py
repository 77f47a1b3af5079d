"""Reads the `c.MLPHub` section of a traitlets file. Imported only where such a file is named."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from traitlets.config.loader import Config, LazyConfigValue, PyFileConfigLoader

from mlp_hub.settings.values import SettingsError


def read_section(path: Path, known: Sequence[str]) -> dict[str, object]:
    """Execute the file and return what it sets in `c.MLPHub`.

    Raises SettingsError where the file cannot be read or executed, or sets a key that is not in `known`.
    """
    if not path.is_file():
        raise SettingsError(f"MLP_CONFIG is {path}; there is no such file")
    try:
        loaded = PyFileConfigLoader(path.name, path=str(path.parent)).load_config()
    except Exception as error:
        raise SettingsError(f"{path} cannot be read: {type(error).__name__}: {error}") from error
    section = loaded.get("MLPHub", Config())
    found: dict[str, object] = {}
    for name, value in section.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=3)
            hint = f"; close to it: {', '.join(close)}" if close else f"; known: {', '.join(known)}"
            raise SettingsError(f"{path} sets c.MLPHub.{name}, which is no setting{hint}")
        if isinstance(value, LazyConfigValue):
            raise SettingsError(f"{path} changes c.MLPHub.{name} in place; assign it instead")
        found[name] = value
    return found
