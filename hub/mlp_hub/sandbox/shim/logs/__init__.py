"""Files of the ranks' output."""
