"""Backup, restore and upgrade of a state directory."""
