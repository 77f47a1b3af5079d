"""The scheduling core in virtual time: what-if on a scenario file, and the replay of traces.

`read(text)` of `scenario.py` gives a `Scenario`, `Simulation(scenario)` of `engine.py` runs it and yields its lines,
`report.py` sums it up and `gantt.py` draws it. Nothing here reads a file or a clock.
"""
