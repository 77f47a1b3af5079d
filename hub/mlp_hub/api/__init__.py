"""Tornado handlers of the REST and WebSocket contract."""
