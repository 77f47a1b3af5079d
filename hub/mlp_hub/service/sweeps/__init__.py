"""Sweeps: their use by people, and the worker that makes their trials, which are jobs like all others."""
