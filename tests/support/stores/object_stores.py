"""Object stores for tests: a real one (moto's server, in an environment of its own), and one that lies.

python -m support.stores.object_stores fetch      # what `make test-tools` does, in `tests`
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from support.own_environments import OwnEnvironment
from support.programs import running_program

MOTO = OwnEnvironment("moto-5.2.5", ("moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"))
KEYS = {"access_key_id": "AKIATEST", "secret_access_key": "s3cr3t-of-ann"}
_SERVE = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", int(sys.argv[1]), verbose=False)
server.start()
sys.stdin.read()
"""


class RealStore:
    """A store with one bucket, `photos`, and what is in it."""

    def __init__(self, address: str) -> None:
        from minio import Minio

        self.host = address
        self.url = f"http://{self.host}"
        self._client = Minio(
            self.host, KEYS["access_key_id"], KEYS["secret_access_key"], secure=False, region="us-east-1"
        )

    def make(self, bucket: str) -> None:
        """Make a bucket."""
        self._client.make_bucket(bucket)

    def put(self, bucket: str, key: str, data: bytes) -> None:
        """Store an object."""
        self._client.put_object(bucket, key, BytesIO(data), len(data))

    def remove(self, bucket: str, key: str) -> None:
        """Remove one."""
        self._client.remove_object(bucket, key)


@contextlib.contextmanager
def real_store() -> Iterator[RealStore]:
    """Give a real one; it ends with its standard input."""
    python = MOTO.fetch()

    def words(address: str) -> list[str | Path]:
        return [python, "-c", _SERVE, address.rpartition(":")[2]]

    with running_program("moto", None, words, RealStore, ready="/moto-api/") as found:
        yield found


Answer = tuple[int, dict[str, str], bytes]


class FalseStore:
    """A store that lists what it is told to, and answers for objects as it is told to."""

    def __init__(self) -> None:
        self.listed: list[tuple[str, int, str]] = []
        self.answer: Callable[[str, dict[str, str]], Answer] = lambda _key, _headers: (404, {}, b"")
        self.asked: list[str] = []
        self.authorizations: list[str] = []
        self.hang = threading.Event()
        self.hangs = False
        self.elsewhere = ""
        self.pages: Callable[[dict[str, list[str]]], bytes] | None = None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.host}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang.set()
        self._server.shutdown()
        self._server.server_close()

    def page(self, after: str) -> bytes:
        """Return a page of the list."""
        begin = int(after or 0)
        some = self.listed[begin : begin + 1000]
        more = begin + 1000 < len(self.listed)
        items = "".join(
            f"<Contents><Key>{escape(quote(key))}</Key><Size>{size}</Size><ETag>&quot;{tag}&quot;</ETag>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for key, size, tag in some
        )
        token = f"<NextContinuationToken>{begin + 1000}</NextContinuationToken>" if more else ""
        return (
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>photos</Name><Prefix></Prefix><MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType><IsTruncated>{str(more).lower()}</IsTruncated>{token}{items}</ListBucketResult>"
        ).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                store.asked.append(self.path)
                store.authorizations.append(self.headers.get("Authorization", ""))
                if store.hangs:
                    store.hang.wait()
                    self.close_connection = True
                    return
                found = urlsplit(self.path)
                query = parse_qs(found.query, keep_blank_values=True)
                key = unquote(found.path).strip("/").partition("/")[2]
                if store.elsewhere:
                    status, headers, body = 307, {"Location": store.elsewhere}, b""
                elif "location" in query:
                    status, headers, body = 200, {}, b"<LocationConstraint/>"
                elif not key and store.pages is not None:
                    status, headers, body = 200, {}, store.pages(query)
                elif not key:
                    status, headers, body = 200, {}, store.page(query.get("continuation-token", [""])[0])
                else:
                    status, headers, body = store.answer(key, dict(self.headers))
                headers = {"Content-Type": "application/xml", "Content-Length": str(len(body)), **headers}
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)
                if int(headers["Content-Length"]) != len(body):
                    self.close_connection = True

            do_HEAD = do_GET  # noqa: N815 - as http.server has it

            def log_message(self, *_: object) -> None:
                pass

        return Handler


if __name__ == "__main__":
    MOTO.main()
