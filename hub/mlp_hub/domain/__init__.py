"""Frozen types, state machines and errors; pure."""
