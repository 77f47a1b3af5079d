"""Pages and admin panel."""
