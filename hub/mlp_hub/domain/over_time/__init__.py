"""Samples of use, waits, failures and answers over time, and how they are thinned."""
