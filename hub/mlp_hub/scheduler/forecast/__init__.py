"""Forecasts: when a waiting workload starts, why it waits, and what smaller request would start earlier."""
