"""How the whole platform stands, at a glance."""
