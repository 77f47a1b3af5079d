"""Apps on the wire, and their gateway."""
