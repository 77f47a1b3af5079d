"""A torture chamber for a whole hub: a steady load of real jobs, faults chosen by a seed, and a check from ground truth.

`make torture MINUTES=60 SEED=1` runs it, `python -m torture --help` says how else. `program` is what the jobs run and write
down, `load` submits them, `faults` breaks things, `verify` compares what the hub tells with what the programs wrote.
"""
