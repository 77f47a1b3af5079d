"""Sweeps: what people do with them, and the worker that makes their trials, which are jobs like all others."""
