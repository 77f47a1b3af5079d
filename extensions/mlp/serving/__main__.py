"""Runs a replica by hand: `python -m mlp.serving --model-dir DIR`."""

from mlp.serving.launch import main

main()
