"""Callers, their scopes and rights: each request and socket passes the gatekeeper."""
