"""JupyterHub spawners that take part in MLP Hub's quota ledger."""
