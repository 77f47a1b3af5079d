"""Tools that know no use case: units, batching, uids."""
