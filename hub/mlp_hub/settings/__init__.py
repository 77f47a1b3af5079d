"""Settings of the platform: one table of all of them, each part in a module of its subject."""

from mlp_hub.settings.definition import FIRST_UID, SettingDoc, Settings, SettingsError, table, variable_of

__all__ = ["FIRST_UID", "SettingDoc", "Settings", "SettingsError", "table", "variable_of"]
