"""The supervisor of the components, and its view for an operator's command. What the supervisor imports is small."""

from mlp_hub.cli.supervisor.keeper import Supervisor, run

__all__ = ["Supervisor", "run"]
