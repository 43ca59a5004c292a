"""The server: threads on a loopback port, over a folder of repositories."""

from __future__ import annotations

import errno
import logging
import os
import re
import socket
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from time import sleep
from typing import TYPE_CHECKING, Any, cast

from builder.output import UNWRITABLE
from releases.local_hub.faults import Fault, Faults, Recorded
from releases.local_hub.gitcmd import GitError
from releases.local_hub.http import Body, Reply, Request, error_reply
from releases.local_hub.hub import Hub
from releases.local_hub.limits import Limits
from releases.local_hub.names import HubError
from releases.local_hub.routes import dispatch
from releases.local_hub.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

LOOPBACK = "127.0.0.1"
_LOG = logging.getLogger(__name__)
# A page elsewhere whose name was made to lead to this machine is no client of ours.
_LOCAL_HOST = re.compile(r"(?:127\.0\.0\.1|localhost)(?::\d+)?")
_IDLE_SECONDS = 120
_DRAINED = 64 * 1024
_BLOCK = 64 * 1024


class _Server(ThreadingHTTPServer):
    """Holds what its handlers share."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, hub: Hub, faults: Faults | None) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.hub = hub
        self.faults = faults
        self._connections: set[socket.socket] = set()
        self._lock = Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Keep the connection, so that the end of the server is its end."""
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that ends."""
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End all connections, those that wait for another request among them."""
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error of the server's; anything else is logged, not printed."""
        del request
        _LOG.debug("a connection from %s ended early", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "LocalHub"
    sys_version = ""
    timeout = _IDLE_SECONDS
    # Without it each small reply waits 40 ms for the client's delayed acknowledgement.
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's signature
        _LOG.debug(format, *args)

    def _answer(self) -> None:
        server = cast("_Server", self.server)
        fault = server.faults.match(self.command, self.path) if server.faults is not None else None
        # Looked up without regard to case, as a plain dictionary would not.
        headers = cast("Mapping[str, str]", self.headers)
        body: Body | None = None
        reply: Reply | None = None
        try:
            try:
                body = Body(cast("Any", self.rfile), headers)
                reply = self._reply(server.hub, Request(self.command, self.path, headers, body), fault)
            except HubError as error:
                reply = error_reply(error)
            if reply is not None:
                self._finish_body(body)
        except (ConnectionError, TimeoutError):
            reply = None
        length = 0 if reply is None or self.command == "HEAD" else reply.length
        if fault is not None and fault.cut and fault.cut_after is not None:
            length = min(length, fault.cut_after)
        if server.faults is not None:
            # Before it is sent: who has the answer finds the request on record.
            status = 0 if reply is None else int(reply.status)
            count = 0 if body is None else body.count
            server.faults.record(Recorded(self.command, self.path, status, count, length))
        if reply is None:
            self.close_connection = True
            return
        try:
            self._send(reply, length)
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def _reply(self, hub: Hub, request: Request, fault: Fault | None) -> Reply | None:
        """The reply to send, or None if the connection is to be cut."""
        if fault is None:
            return self._perform(hub, request)
        sleep(fault.delay)
        replaced = fault.cut or fault.status is not None
        reply = self._perform(hub, request) if fault.perform or not replaced else Reply()
        if fault.call is not None:
            fault.call()
        if fault.cut:
            return reply if fault.perform and fault.cut_after is not None else None
        headers = {**reply.headers, **fault.headers}
        if fault.status is not None:
            return Reply(fault.status, fault.headers, fault.body if fault.body is not None else b"{}")
        return Reply(reply.status, headers, fault.body if fault.body is not None else reply.body)

    def _perform(self, hub: Hub, request: Request) -> Reply:
        if _LOCAL_HOST.fullmatch(self.headers.get("Host", "")) is None:
            return error_reply(
                HubError(HTTPStatus.MISDIRECTED_REQUEST, "This Hub answers on the loopback address only")
            )
        try:
            return dispatch(hub, request)
        except HubError as error:
            return error_reply(error)
        except (GitError, OSError) as error:
            if isinstance(error, ConnectionError):
                raise
            # A full disk, perhaps met by git: nothing that the same request a moment later would get over.
            if getattr(error, "errno", None) in UNWRITABLE or os.strerror(errno.ENOSPC) in str(error):
                what = " ".join(str(error).split())
                return error_reply(HubError(HTTPStatus.INSUFFICIENT_STORAGE, f"The store cannot be written: {what}"))
            _LOG.exception("%s %s", self.command, self.path)
            return error_reply(HubError(HTTPStatus.INTERNAL_SERVER_ERROR, f"The store failed: {error}"))

    def _finish_body(self, body: Body | None) -> None:
        """Read what a refusal left unread, if it is little; else the connection ends with this reply."""
        if body is not None and not body.ended:
            left = _DRAINED
            while left > 0 and (block := body.read(left)):
                left -= len(block)
        if body is None or not body.ended:
            self.close_connection = True

    def _send(self, reply: Reply, length: int) -> None:
        """Send the reply, but no more than `length` bytes of its body."""
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in reply.headers:
            self.send_header("Content-Length", str(reply.length))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        left = length
        for block in reply.blocks() if left else ():
            self.wfile.write(block[:left])
            left -= len(block[:left])
            if left == 0:
                break
        # A file that shrank under us, or a cut: what was promised cannot be kept.
        if self.command != "HEAD" and length - left < reply.length:
            self.close_connection = True
        self.wfile.flush()


class LocalHub:
    """A Hub over `root` on a free loopback port, from `with` to the end of its block.

    Args:
        root: the folder of repositories; made if it is not there.
        token: who may write; anyone on this machine without it.
        port: 0 for a free one.
        limits: sizes that are refused.
        faults: what is to go wrong, for tests; it records the requests too.
    """

    def __init__(
        self,
        root: Path,
        *,
        token: str | None = None,
        port: int = 0,
        limits: Limits | None = None,
        faults: Faults | None = None,
    ) -> None:
        self.store = Store(Path(root).resolve())
        self._hub = Hub(self.store, token, limits or Limits())
        self._faults = faults
        self._port = port
        self._server: _Server | None = None
        self._thread: Thread | None = None

    def start(self) -> Self:
        """Bind and answer in a thread of its own.

        Raises:
            OSError: the port is taken.
        """
        self._server = _Server(self._port, self._hub, self._faults)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Answer no more."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.hang_up()
            self._server.server_close()
            self._thread.join()
            self._server = self._thread = None

    @property
    def endpoint(self) -> str:
        """The address for `HF_ENDPOINT`, without a slash at its end.

        Raises:
            RuntimeError: it is not running.
        """
        if self._server is None:
            raise RuntimeError("the local Hub is not running")
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def wait(self) -> None:
        """Until it is stopped."""
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
