"""The operator's command, `mlp-hub`."""


def main() -> int:
    """Run the command; return its exit status."""
    from mlp_hub.cli.main import run  # noqa: PLC0415 - the supervisor imports this package and needs none of it

    return run()
