"""Logging in with a provider, in a browser and for `mlp login`."""
