"""A server for the page of a run: its files, the run's events by server-sent events, and changes of keys.

It listens on the loopback interface. On another address every request about the run needs the token in the page's URL.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sojourn._core import ExperimentError
from sojourn.live.feed import Feed

PAGE = "served.html"
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
LONGEST = 4096
"""Bytes of a request that changes a key."""
PATIENCE_S = 1.0
"""A stream that has nothing to say says so after this time, so that a reader who has gone is noticed."""
LAST_WORDS_S = 0.5
"""What readers get to hear of the run's end."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], feed: Feed, token: str | None) -> None:
        super().__init__(address, _Request)
        self.feed = feed
        self.token = token

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that goes away is no error."""


class _Request(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *arguments: Any) -> None:
        """Says nothing: the terminal is the program's."""

    def do_GET(self) -> None:
        """Answers with a file of the page, what is known of the run, or its events."""
        name = urlsplit(self.path).path.removeprefix("/") or PAGE
        files = resources.files("sojourn") / "_web"
        if name in ("run", "events"):
            if self._is_allowed():
                self._run() if name == "run" else self._events()
        elif "/" not in name and name.rpartition(".")[2] in TYPES and (files / name).is_file():
            self._answer(HTTPStatus.OK, (files / name).read_bytes(), TYPES[name.rpartition(".")[2]])
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"no such page\n")

    def do_POST(self) -> None:
        """Changes a key: ``{"key": "link.rate", "value": "5 Mbit/s"}``."""
        if not self._is_allowed():
            return
        try:
            if self.headers.get_content_type() != "application/json":
                raise ValueError("must be JSON")
            length = int(self.headers["Content-Length"])
            if not 0 <= length <= LONGEST:
                raise ValueError(f"must have at most {LONGEST} bytes")
            asked = json.loads(self.rfile.read(length))
            if not isinstance(asked, dict) or not {"key", "value"} <= asked.keys():
                raise ValueError('must be {"key": KEY, "value": VALUE}')
            self.server.feed.set(str(asked["key"]), str(asked["value"]))
        except ExperimentError as error:
            self._answer(HTTPStatus.CONFLICT, str(error).encode())
        except json.JSONDecodeError as error:
            self._answer(HTTPStatus.BAD_REQUEST, f"must be JSON: {error}".encode())
        except (ValueError, TypeError) as error:
            self._answer(HTTPStatus.BAD_REQUEST, f"{error}".encode())
        else:
            self._answer(HTTPStatus.NO_CONTENT, b"")

    def _is_allowed(self) -> bool:
        """Refuses those without the token, and pages of others that reach this address by a name of theirs."""
        token = self.server.token
        if token is None:
            allowed = _is_loopback(urlsplit(f"//{self.headers.get('Host', '')}").hostname or "")
        else:
            given = parse_qs(urlsplit(self.path).query).get("token", [""])[0]
            allowed = hmac.compare_digest(given.encode(), token.encode())
        if not allowed:
            self._answer(HTTPStatus.FORBIDDEN, b"not allowed: open the URL that sojourn serve has printed\n")
        return allowed

    def _run(self) -> None:
        self._answer(HTTPStatus.OK, json.dumps(self.server.feed.about).encode(), "application/json")

    def _events(self) -> None:
        self._head(HTTPStatus.OK, "text/event-stream")
        last = self.headers.get("Last-Event-ID", "0")
        number = int(last) if last.isdecimal() else 0
        with suppress(OSError):
            while True:
                number, events = self.server.feed.after(number, PATIENCE_S)
                first = number - len(events) + 1
                for id, event in enumerate(events, first):
                    self.wfile.write(f"id: {id}\ndata: {json.dumps(event)}\n\n".encode())
                if not events:
                    self.wfile.write(b": nothing\n\n")
                self.wfile.flush()

    def _head(self, status: HTTPStatus, type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{type}; charset=utf-8")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()

    def _answer(self, status: HTTPStatus, content: bytes, type: str = "text/plain") -> None:
        with suppress(OSError):
            self._head(status, type)
            self.wfile.write(content)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def served(feed: Feed, host: str, port: int) -> Iterator[str]:
    """Serves the page of a run; the URL to open. Raises ExperimentError if the address cannot be listened on."""
    token = None if _is_loopback(host) else secrets.token_urlsafe(18)
    try:
        server = _Server((host, port), feed, token)
    except (OSError, OverflowError) as error:
        raise ExperimentError(f"--host {host} --port {port}: {error}") from None
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    try:
        yield f"http://{host}:{server.server_address[1]}/" + ("" if token is None else f"?token={token}")
    finally:
        feed.setter = None
        feed.add({"end": True})
        threading.Event().wait(LAST_WORDS_S)
        server.shutdown()
        server.server_close()
