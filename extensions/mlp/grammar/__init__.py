"""Verbs and options: how a line of words, or Python's arguments, become a call."""
