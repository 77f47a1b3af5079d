"""Commands of `mlp-hub` that ask the running hub: accounts, people, nodes, runtimes, isolation, audit, simulations."""
