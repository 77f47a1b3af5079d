"""Protocols of providers: OpenID Connect and GitHub, and what both answer about a person."""
