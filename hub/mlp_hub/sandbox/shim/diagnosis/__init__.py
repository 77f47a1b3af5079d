"""Causes of an end: exit statuses, the failed rank, and the sentences about them."""
