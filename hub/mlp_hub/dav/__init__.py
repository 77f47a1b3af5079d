"""Part of the platform that holds datasets' files: WebDAV at `/data/{user}/{dataset}/`, one process.

It decides nothing. For each token the service answers which files it may read and write, and grants
writes byte by byte.
"""
