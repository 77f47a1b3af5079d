"""The part of the platform that holds datasets' files: WebDAV at `/data/{user}/{dataset}/`, a process of its own.

It decides nothing: the service says with each token who may read and write what, and lets it write byte by byte.
"""
