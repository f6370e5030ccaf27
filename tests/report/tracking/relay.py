"""A relay before a real server: it counts requests and calls back when one arrives and when one was answered."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PER_CONNECTION = {"connection", "transfer-encoding", "content-length", "keep-alive"}


class Relay(ThreadingHTTPServer):
    """Passes each request on to a port of loopback.

    Attributes:
        requests: Method and path of each, in the order in which they arrived.
        arrived: Is called before a request is passed on.
        answered: Is called when the server has answered; True breaks the connection off in place of the answer.
    """

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.port, self.requests = port, []
        self.arrived: Callable[[str, str], None] = lambda method, path: None
        self.answered: Callable[[str, str], bool] = lambda method, path: False

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _pass_on(self) -> None:
        relay, path = self.server, self.path.partition("?")[0]
        assert isinstance(relay, Relay)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        relay.requests.append((self.command, path))
        relay.arrived(self.command, path)
        headers = {key: value for key, value in self.headers.items() if key.lower() not in _PER_CONNECTION}
        try:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", relay.port, timeout=60)) as server:
                server.request(self.command, self.path, body=body, headers=headers)
                answer = server.getresponse()
                content = answer.read()
        except OSError:
            self.close_connection = True
            return
        if relay.answered(self.command, path):
            self.close_connection = True
            return
        self.send_response(answer.status)
        for key, value in answer.getheaders():
            if key.lower() not in _PER_CONNECTION:
                self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


@contextlib.contextmanager
def relay_to(port: int) -> Iterator[Relay]:
    """Serve a relay in a thread."""
    with Relay(port) as relay:
        thread = threading.Thread(target=relay.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield relay
        finally:
            relay.shutdown()
            thread.join()
