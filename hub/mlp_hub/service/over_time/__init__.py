"""Samples over time: taken by the leader, thinned, and shown on the page *Over time*."""
