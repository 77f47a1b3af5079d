"""Budgets of teams: their use cases, notices of levels, and the stop of new work."""
