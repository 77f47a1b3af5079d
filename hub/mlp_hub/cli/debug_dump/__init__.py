"""`mlp-hub debug-dump`: one archive with what a maintainer needs to find a fault, without secrets, names or tenants' code."""
