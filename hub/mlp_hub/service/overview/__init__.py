"""Overview of the state of the whole platform."""
