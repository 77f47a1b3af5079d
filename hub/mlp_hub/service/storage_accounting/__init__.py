"""Storage of homes and jobs' directories in their tenants' quotas, and the consequences of too much."""
