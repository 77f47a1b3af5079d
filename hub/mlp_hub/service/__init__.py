"""Use cases: a room for each kind of thing that people have or ask about, and those of the engine below. Their order is in `pyproject.toml`."""
