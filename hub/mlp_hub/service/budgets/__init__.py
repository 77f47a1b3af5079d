"""Budgets of teams: their use cases, the levels that people are told of, and the stop of new work."""
