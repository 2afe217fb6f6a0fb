"""A server of finished files on this machine, for a browser: the only place where the program opens a socket."""

from __future__ import annotations

import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = "127.0.0.1"
# Perfetto's UI reads a local trace from this port only.
PERFETTO_PORT = 9001
_PERFETTO = "https://ui.perfetto.dev"


class _File(NamedTuple):
    """A file to serve. `is_for_perfetto` lets Perfetto's UI, a page of another origin, read it."""

    name: str
    content: bytes
    media_type: str
    is_for_perfetto: bool = False


class _Server(ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, files: list[_File]) -> None:
        # Other users of the machine can reach the port. They do not know this part of the address.
        secret = secrets.token_urlsafe(16)
        self.files = {f"/{secret}/{file.name}": file for file in files}
        try:
            super().__init__((HOST, PERFETTO_PORT), _Handler)
        except OSError:
            super().__init__((HOST, 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Send a file."""
        if file := self._find_file():
            self._send_head(file, HTTPStatus.OK)
            self.wfile.write(file.content)

    def do_HEAD(self) -> None:
        """Send the head of a file."""
        if file := self._find_file():
            self._send_head(file, HTTPStatus.OK)

    def do_OPTIONS(self) -> None:
        """Let Perfetto's UI read a file: a browser asks first before a page on the network reads from this machine."""
        if file := self._find_file():
            self._send_head(file, HTTPStatus.NO_CONTENT)

    def log_message(self, *_: Any) -> None:
        """Write nothing: stderr is for notes."""

    def _find_file(self) -> _File | None:
        # A page of another site whose name leads to this machine has its own name as host.
        is_own_name = self.headers.get("Host") == f"{HOST}:{self.server.server_port}"
        file = self.server.files.get(self.path) if is_own_name else None
        if file is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        return file

    def _send_head(self, file: _File, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Content-Type", file.media_type)
        self.send_header("Content-Length", str(len(file.content) if status == HTTPStatus.OK else 0))
        self.send_header("Cache-Control", "no-store")
        if file.is_for_perfetto:
            self.send_header("Access-Control-Allow-Origin", _PERFETTO)
            self.send_header("Access-Control-Allow-Private-Network", "true")
        self.end_headers()


def serve(page: str, timeline: bytes | None, note: Callable[[str], None]) -> None:
    """Serve a page, and the timeline for Perfetto's UI, until Ctrl-C. Open the page in the browser.

    Raises:
        UsageError: The machine does not allow it.
    """
    import webbrowser

    files = [_File("report.html", page.encode(), "text/html; charset=utf-8")]
    if timeline:
        files.append(_File("trace.pftrace", timeline, "application/octet-stream", is_for_perfetto=True))
    try:
        server = _Server(files)
    except OSError as error:
        raise UsageError(f"the page cannot be served on {HOST}: {error.strerror}", "write it: -o report.html") from None
    with server:
        addresses = [f"http://{HOST}:{server.server_port}{path}" for path in server.files]
        note(f"the page is at {addresses[0]} until Ctrl-C")
        if timeline and server.server_port == PERFETTO_PORT:
            note(f"its timeline in Perfetto, whose page your browser loads: {_PERFETTO}/#!/?url={addresses[1]}")
        elif timeline:
            note(f"port {PERFETTO_PORT} is in use, and Perfetto reads from no other: drag {addresses[1]} there instead")
        webbrowser.open(addresses[0])
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
