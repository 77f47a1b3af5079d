"""Tokens that the hub gives to people and programs."""
