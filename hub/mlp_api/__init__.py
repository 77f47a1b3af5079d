"""Wire types of MLP Hub: what crosses the wire, nothing else."""
