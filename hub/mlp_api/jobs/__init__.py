"""Jobs on the wire, with their runs, sweeps, metrics, streams and runtimes."""
