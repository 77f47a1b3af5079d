"""JupyterHub spawners that take part in MLP Hub's quota ledger."""

from mlp_spawner.local import LocalSpawner

__all__ = ["LocalSpawner"]
