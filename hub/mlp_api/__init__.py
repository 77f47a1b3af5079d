"""Wire types of MLP Hub, and nothing else."""
