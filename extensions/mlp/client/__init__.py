"""Requests to the service: where it is, the connection, the REST client, its streams and its files."""
