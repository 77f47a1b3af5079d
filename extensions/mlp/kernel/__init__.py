"""The magics in a notebook's kernel."""
