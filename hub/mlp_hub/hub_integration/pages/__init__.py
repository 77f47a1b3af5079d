"""Pages of the hub for people, in their language."""
