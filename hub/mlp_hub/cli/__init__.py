"""The operator's command, `mlp-hub`."""


def main() -> int:
    """Run the command; return its exit status."""
    import gc  # noqa: PLC0415 - the supervisor imports this package and needs none of it

    from mlp_hub.cli.main import run  # noqa: PLC0415
    from mlp_hub.gc_tuning import spare_the_collector  # noqa: PLC0415

    spare_the_collector()
    status = run()
    gc.freeze()  # all of it goes with the process: there is nothing to look for
    return status
