"""Connections of clients: sockets, slow clients, and bodies as they arrive."""
