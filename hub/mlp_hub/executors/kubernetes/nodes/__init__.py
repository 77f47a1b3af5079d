"""The nodes of a cluster, as the scheduler's core sees them: kept up to date in proportion to what changes."""
