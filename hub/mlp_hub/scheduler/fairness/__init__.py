"""Usage with decay, shares, and whose turn it is between tenants and their members."""
