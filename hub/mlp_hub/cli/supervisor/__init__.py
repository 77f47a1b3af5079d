"""Supervisor of the components, and its view for an operator's command. The modules that the supervisor imports are small."""

from mlp_hub.cli.supervisor.keeper import Supervisor, run

__all__ = ["Supervisor", "run"]
