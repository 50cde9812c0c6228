# SPDX-License-Identifier: BSD-2-Clause
"""What sessions stand on: errors, memory, and a context for each event loop."""
from __future__ import annotations

import asyncio
import ctypes as c
import errno
import os
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _headers as h
from . import _lib as l

if TYPE_CHECKING:
    from . import Listener, Request, Session

Buffer = Any  # what has the buffer protocol

SEND_DEPTH = 32  # work requests of a session under way; more wait for their turn
RECEIVES = 16  # messages that the library keeps before the peer has to wait
RECEIVE_SIZE = 4096
_QUEUE = 4096  # completions of one queue; more sessions make another
_BATCH = 64
_SETTLE_MS = 5000


_ERRNO = {h.E_INVAL: errno.EINVAL, h.E_ADDRESS: errno.EINVAL, h.E_NOMEM: errno.ENOMEM,
          h.E_TIMEDOUT: errno.ETIMEDOUT, h.E_RESET: errno.ECONNRESET, h.E_REFUSED: errno.ECONNREFUSED,
          h.E_REJECTED: errno.ECONNREFUSED, h.E_TERMINATED: errno.ECONNABORTED, h.E_CLOSED: errno.EPIPE,
          h.E_CUT_SHORT: errno.ECONNRESET, h.E_FORGED: errno.ECONNRESET, h.E_ALERT: errno.ECONNRESET}


class Error(OSError):
    """A call or a session failed.  `code` is DDPS_E_*, `str()` says what, where and why.

    `errno` is the system's error, or the one that is nearest to `code`, or None.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        if code in _ERRNO:
            self.errno = _ERRNO[code]


class Refused(Error, ConnectionRefusedError):
    """Nobody listens there, or the peer's transport refused."""


class Lost(Error, ConnectionResetError):
    """The connection was lost: the peer's program or host has gone, or ended it, or somebody on the way did."""


class Untrusted(Error, PermissionError):
    """Over a secured wire: one of the two sides does not let the other in; `code` and `str()` say why."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.errno = errno.EACCES


class Closed(Error, BrokenPipeError):
    """The session, the request or the listener has ended, by this side or by the peer."""


class TimedOut(Error, TimeoutError):
    """A deadline passed."""


class Rejected(Error, ConnectionRefusedError):
    """The peer's application said no; `private_data` is what it said with it."""

    def __init__(self, code: int, text: str, private_data: bytes) -> None:
        super().__init__(code, text)
        self.private_data = private_data


class Terminated(Error, ConnectionAbortedError):
    """An RDMAP Terminate ended the session: its layer, type and code."""

    def __init__(self, code: int, text: str, triple: tuple[int, int, int], by_peer: bool) -> None:
        super().__init__(code, text)
        self.triple = triple
        self.by_peer = by_peer


class Info(NamedTuple):
    """What was negotiated."""

    transport: str
    initiator: bool
    local: str
    peer: str
    ird: int
    ord: int
    mulpdu: int
    crc: bool


class Advert(NamedTuple):
    """Where a peer may read or write: 20 octets on the wire when sent as `bytes(advert)`."""

    stag: int
    to: int
    length: int

    def __bytes__(self) -> bytes:
        return struct.pack("!IQQ", *self)

    @classmethod
    def parse(cls, octets: Buffer) -> "Advert":
        """Octets of the peer.  ValueError: they are no advert."""
        data = bytes(octets)
        if len(data) != 20:
            raise ValueError(f"an advert has 20 octets, not {len(data)}")
        advert = cls(*struct.unpack("!IQQ", data))
        if advert.to + advert.length > 1 << 64:
            raise ValueError(f"{advert} runs beyond the last offset")
        return advert

    def at(self, offset: int) -> "Advert":
        """The same, from that octet on."""
        if not 0 <= offset <= self.length:
            raise ValueError(f"offset {offset} is outside of {self.length} octets")
        return Advert(self.stag, self.to + offset, self.length - offset)


def version() -> str:
    """The version of the library that is loaded."""
    return bytes(l.lib.ddps_version()).decode()


def _members(struct: Any, *but: str) -> set[str]:
    """What a caller may give by name: the members of a struct, not those that are reserved, nor @but."""
    return {field[0] for field in struct._fields_ if not field[0].startswith("reserved")} - set(but)


def _must(result: int, what: str) -> int:
    if result >= 0:
        return result
    if result == h.E_SYSTEM:
        error = Error(result, f"{what}: {os.strerror(c.get_errno())}")
        error.errno = c.get_errno()
        raise error
    raise _KINDS.get(result, Error)(result, f"{what}: {l.strerror(result)}")


_KINDS = {h.E_REFUSED: Refused, h.E_RESET: Lost, h.E_TIMEDOUT: TimedOut, h.E_CLOSED: Closed,
          h.E_CUT_SHORT: Lost, h.E_FORGED: Lost, h.E_ALERT: Lost,
          **dict.fromkeys((h.E_CERT, h.E_NO_CERT, h.E_CERT_EXPIRED, h.E_CERT_NOT_YET, h.E_CERT_CA, h.E_CERT_NAME,
                           h.E_CERT_USAGE, h.E_CERT_REVOKED, h.E_CERT_WEAK, h.E_CRL, h.E_NOT_LISTED,
                           h.E_PSK_UNKNOWN, h.E_PSK_WRONG, h.E_CERT_REFUSED), Untrusted)}


def _must_reach(result: int, uri: str) -> int:
    """_must() of a call with a URI, which is said to be wrong where it is."""
    if result == h.E_ADDRESS:
        why = c.create_string_buffer(256)
        l.lib.ddps_uri_check(uri.encode(), why, len(why))
        if why.value:
            raise Error(result, f"{uri}: {why.value.decode(errors='replace')}")
    return _must(result, uri)


def _error(e: h.Error, private_data: bytes = b"") -> Error:
    text = e.text.decode(errors="replace") or l.strerror(e.code)
    peer = e.peer.decode(errors="replace")
    if peer not in text:
        text += f", peer {peer}"
    if e.code == h.E_REJECTED:
        return Rejected(e.code, text, private_data)
    if e.has_triple and e.code not in _KINDS:  # a reset has a code of a Terminate, too
        t = e.triple
        return Terminated(e.code, text, (t.layer, t.etype, t.code), e.by_peer)
    error = _KINDS.get(e.code, Error)(e.code, text)
    error.errno = e.sys_errno or error.errno
    return error


class _Memory:
    """A buffer that is held in place: its address, its length, and the object itself."""

    def __init__(self, buffer: Buffer, writable: bool) -> None:
        view = memoryview(buffer).cast("B")
        if writable and view.readonly:
            raise TypeError("the buffer cannot be written to")
        if view.readonly:  # ctypes takes addresses of writable memory only
            view = memoryview(bytearray(view))
        self.length = len(view)
        self.held = (c.c_ubyte * self.length).from_buffer(view) if self.length else None
        self.address = c.addressof(self.held) if self.held else None


class _Context:
    """The library's context of an event loop, which drives it as long as something uses it."""

    of_loop: dict[tuple[asyncio.AbstractEventLoop, Any], "_Context"] = {}

    def __init__(self, loop: asyncio.AbstractEventLoop, secure: Any) -> None:
        self.loop = loop
        self.secure = secure  # its identity; None: it has none
        self.users = 0
        self.sessions: dict[int, Session] = {}
        self.listeners: dict[int, Listener] = {}
        self.requests: dict[int, Request] = {}
        self.queues: list[list[int]] = []  # [queue, completions that are not promised yet]
        self.due = False
        self.wc = (h.Wc * _BATCH)()
        ptr = c.c_void_p()
        attr = h.CtxAttr()
        l.lib.ddps_ctx_attr_init_sized(c.byref(attr), c.sizeof(attr))
        attr.secure = secure._ptr if secure else None
        _must(l.lib.ddps_ctx_new(c.byref(ptr), c.byref(attr)), "context")
        self.ptr = ptr.value
        pd = c.c_void_p()
        _must(l.lib.ddps_pd_new(self.ptr, c.byref(pd)), "protection domain")
        self.pd = pd.value
        self.fds = [_must(l.lib.ddps_ctx_fd(self.ptr), "descriptor"),
                    _must(l.lib.ddps_event_fd(self.ptr), "descriptor")]
        for fd in self.fds:
            loop.add_reader(fd, self.turn)

    @classmethod
    def take(cls, secure: Any = None) -> "_Context":
        loop = asyncio.get_running_loop()
        ctx = cls.of_loop.get((loop, secure))
        if ctx is None:
            ctx = cls.of_loop[loop, secure] = cls(loop, secure)
        ctx.users += 1
        return ctx

    async def give_back(self) -> None:
        self.users -= 1
        if self.users:
            return
        for fd in self.fds:
            self.loop.remove_reader(fd)
        del self.of_loop[self.loop, self.secure]
        for request in self.requests.values():
            request.ptr = None  # it goes with the context
        # both may wait for what is still on its way
        await self.loop.run_in_executor(None, self.end)

    def end(self) -> None:
        # Sessions have ended, and each has said how: this is for what is below them.
        l.lib.ddps_ctx_settle(self.ptr, _SETTLE_MS)
        l.lib.ddps_ctx_free(self.ptr)

    def queue(self, entries: int) -> list[int]:
        for q in self.queues:
            if q[1] >= entries:
                break
        else:
            ptr = c.c_void_p()
            size = max(entries, _QUEUE)
            _must(l.lib.ddps_cq_new(self.ptr, size, c.byref(ptr)), "completion queue")
            q = [ptr.value or 0, size]
            self.queues.append(q)
        q[1] -= entries
        return q

    def soon(self) -> None:
        """Work was posted: it may have completed already."""
        if not self.due:
            self.due = True
            self.loop.call_soon(self.turn)

    def turn(self) -> None:
        self.due = False
        if self.of_loop.get((self.loop, self.secure)) is not self:
            return
        result = l.lib.ddps_progress(self.ptr, 0)
        while self.completions() | self.events():
            pass
        if result >= 0:
            result = l.lib.ddps_ctx_fd(self.ptr)  # what was polled is watched again
        if result < 0:
            self.fail(result)

    def fail(self, result: int) -> None:
        """Nothing goes on here: descriptors were closed, or this is the child of a fork."""
        try:
            _must(result, "the event loop's sessions")
        except Error as error:
            for fd in self.fds:
                self.loop.remove_reader(fd)
            for session in list(self.sessions.values()):
                session._over_by(error)
            for listener in list(self.listeners.values()):
                listener._fail(error)

    def completions(self) -> bool:
        any_ = False
        for q, _ in self.queues:
            n = l.lib.ddps_cq_poll(q, self.wc, _BATCH)
            for i in range(max(n, 0)):
                session = self.sessions.get(self.wc[i].ep or 0)
                if session:
                    session._completed(self.wc[i])
            any_ |= n > 0
        return any_

    def events(self) -> bool:
        ev = h.Event()
        any_ = False
        while l.lib.ddps_event_get(self.ptr, c.byref(ev)) == 1:
            any_ = True
            # what came before an end is looked at before it
            if ev.type in (h.EV_PEER_CLOSED, h.EV_CLOSED, h.EV_TERMINATED):
                self.completions()
            if ev.type == h.EV_REQUEST_GONE:
                gone = self.requests.pop(ev.request or 0, None)
                if gone:
                    gone.ptr = None
            elif ev.type in (h.EV_CONNECT_REQUEST, h.EV_LISTENER_FAILED):
                listener = self.listeners.get(ev.listener or 0)
                if listener:
                    listener._event(ev)
            else:
                session = self.sessions.get(ev.ep or 0)
                if session:
                    session._event(ev)
        return any_
