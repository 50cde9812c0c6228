# SPDX-License-Identifier: BSD-2-Clause
"""RDMA sessions over TCP and SCTP for asyncio.

    async with ddpsess.listen("tcp://127.0.0.1:0") as listener: ...
    async with await listener.accept() as session: ...
    async with ddpsess.connect("tcp://127.0.0.1:7174") as session: ...

A session sends messages, and reads and writes memory of its peer.  Memory is anything with the
buffer protocol: bytearray, mmap, array, NumPy arrays; what is only read may be bytes too.  All
objects belong to the event loop that made them and are used from its thread only.

Both sides may speak first (RFC 6581's peer-to-peer model) unless `p2p=False` is given.
"""
from __future__ import annotations

import asyncio
import ctypes as c
from collections import deque
from types import TracebackType
from typing import Any, Callable, Generator, Optional, Union

from . import _headers as h
from . import _lib as l
from ._context import (RECEIVE_SIZE, RECEIVES, SEND_DEPTH, Advert, Buffer, Closed, Error, Info, Lost,
                       Refused, Rejected, Terminated, TimedOut, Untrusted, _Context, _error, _members,
                       _Memory, _must, _must_reach, version)
from ._secure import PeerId, Secure, _check_wire, _peer_id

__all__ = ["Advert", "Closed", "Error", "Info", "Listener", "Lost", "PeerId", "Refused", "Region", "Rejected",
           "Request", "Secure", "Session", "Terminated", "TimedOut", "Untrusted", "connect", "listen", "version"]

for _public in (Advert, Closed, Error, Info, Lost, PeerId, Refused, Rejected, Secure, Terminated, TimedOut,
                Untrusted, version):
    _public.__module__ = __name__  # where programs find them


_NAMES = {h.OP_SEND: "send", h.OP_WRITE: "write", h.OP_READ: "read"}


def _settle(future: "asyncio.Future[None]") -> None:
    """It has come, unless whoever waited has gone."""
    if not future.done():
        future.set_result(None)


class Region:
    """Memory that the peer may use, as long as this is not closed: a context manager."""

    def __init__(self, session: "Session", memory: _Memory, access: int, whose: Optional[int]) -> None:
        ptr = c.c_void_p()
        _must(l.lib.ddps_mr_reg(session._ctx.pd, memory.address, memory.length, access, whose,
                                c.byref(ptr)), "region")
        self._ptr: Optional[int] = ptr.value
        self._memory: Optional[_Memory] = memory
        self.advert = Advert(l.lib.ddps_mr_stag(self._ptr), l.lib.ddps_mr_to(self._ptr),
                             memory.length)
        session._regions.add(self)
        self._session = session

    def close(self) -> None:
        """Nothing reads or writes the memory when this returns."""
        if self._ptr is not None:
            _must(l.lib.ddps_mr_dereg(self._ptr), "region")
            self._ptr = self._memory = None
            self._session._regions.discard(self)

    def __enter__(self) -> "Region":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Session:
    """One session.  Not made by programs: `connect` and `Request.accept` give it."""

    def __init__(self, ctx: _Context, receives: int, receive_size: int) -> None:
        if receives < 1 or receive_size < 1:
            raise ValueError("receives and receive_size are 1 or more")
        self._ctx = ctx
        self._regions: set[Region] = set()
        self._pending: dict[int, tuple[Optional[asyncio.Future[int]], Optional[Region], str]] = {}
        self._flushed: list[int] = []  # Reads that ended without an answer
        self._next = 0
        self._room = asyncio.Semaphore(SEND_DEPTH)
        self._messages: deque[tuple[int, int]] = deque()  # slot, octets
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._up: asyncio.Future[None] = ctx.loop.create_future()
        self._over: asyncio.Future[None] = ctx.loop.create_future()
        self._end: Optional[Error] = None  # in order, if there is none when it is over
        self._sent = False  # something that arrives or does not
        self._told = False  # a call has raised the end
        self._closing = self._aborted = False
        self._peer_done = False
        self._info = h.ConnInfo()
        self._secured = False
        self.private_data = b""  # of the peer, with its request or its answer
        self._entries = SEND_DEPTH + receives
        self._queue = ctx.queue(self._entries)
        attr = h.EpAttr()
        l.lib.ddps_ep_attr_init_sized(c.byref(attr), c.sizeof(attr))
        attr.pd, attr.send_cq, attr.recv_cq = ctx.pd, self._queue[0], self._queue[0]
        attr.sq_depth, attr.rq_depth, attr.no_recv = SEND_DEPTH, receives, h.NO_RECV_STALL
        ptr = c.c_void_p()
        _must(l.lib.ddps_ep_new(ctx.ptr, c.byref(attr), c.byref(ptr)), "endpoint")
        self._ptr: Optional[int] = ptr.value
        ctx.sessions[self._ptr or 0] = self
        self._size = receive_size
        self._inbox = bytearray(receives * receive_size)
        self._inbox_region = Region(self, _Memory(self._inbox, True), h.LOCAL_WRITE, None)
        for slot in range(receives):
            self._post_receive(slot)

    # ---- what the context brings ----

    def _event(self, ev: h.Event) -> None:
        data = bytes(ev.private_data[: ev.private_data_len])
        if ev.type == h.EV_ESTABLISHED:
            self._info = h.ConnInfo.from_buffer_copy(ev.info)  # @ev is used again
            self._secured = self.peer_id is not None
            self.private_data = data or self.private_data
            _settle(self._up)
        elif ev.type == h.EV_PEER_CLOSED:
            self._peer_done = True
            for wr_id in self._flushed:
                self._done(wr_id, self._gone)
            self._wake()
        elif ev.type == h.EV_PEER_CLOSING:
            pass  # what it sent goes on waiting for receives
        elif ev.type == h.EV_TERMINATED:
            self._end = _error(ev.error)
        else:
            self._over_by(_error(ev.error, data) if ev.error.code else None)

    def _over_by(self, why: Optional[Error]) -> None:
        """It has ended: in order if @why is None."""
        self._end = self._end or why
        if self._end is None and not self._closing:
            self._peer_done = True
        if not self._up.done():
            self._up.set_exception(self._gone("set-up"))
        _settle(self._over)
        for wr_id in list(self._pending):
            self._done(wr_id, self._gone)
        self._wake()

    def _gone(self, what: str = "") -> Error:
        """Why nothing goes any more, for a call that raises it."""
        if self._end is not None:
            self._told = True
            return self._end
        who = "the peer has ended the session" if self._peer_done else "the session is closed"
        return Closed(h.E_CLOSED, f"{what}: {who}" if what else who)

    def _wake(self) -> None:
        while self._waiters:
            _settle(self._waiters.popleft())

    def _completed(self, wc: h.Wc) -> None:
        if wc.op == h.OP_RECV:
            if wc.status == h.WC_SUCCESS:
                self._messages.append((wc.wr_id, wc.len))
                if self._waiters:
                    _settle(self._waiters.popleft())
            return
        if wc.status == h.WC_SUCCESS:
            self._done(wc.wr_id, None, wc.len)
        elif wc.op == h.OP_READ and self._peer_done:
            self._done(wc.wr_id, self._gone)
        elif wc.op == h.OP_READ:
            self._flushed.append(wc.wr_id)
        # what else did not succeed is explained by the event that follows

    def _done(self, wr_id: int, why: Optional[Callable[[str], Error]], length: int = 0) -> None:
        """Work has ended: its memory and its place are free."""
        future, region, what = self._pending.pop(wr_id, (None, None, ""))
        if future is None:
            return
        if region:
            region.close()
        self._room.release()
        if future.done():
            return  # whoever waited has gone
        if why:
            future.set_exception(why(what))
        else:
            future.set_result(length)

    # ---- work ----

    def _post_receive(self, slot: int) -> None:
        memory = self._inbox_region._memory
        sge = h.Sge(((memory and memory.address) or 0) + slot * self._size, self._size,
                    self._inbox_region.advert.stag)
        result = l.lib.ddps_post_recv(self._ptr, slot, c.byref(sge), 1)
        if result != h.E_STATE:  # the end has come; its event says why
            _must(result, "receive")

    def _ended(self) -> bool:
        return self._ptr is None or self._over.done()

    def _alive(self, what: str) -> None:
        if self._ended():
            raise self._gone(what)

    async def _work(self, op: int, buffer: Buffer, writable: bool, at: Optional[Advert],
                    flags: int) -> int:
        memory = _Memory(buffer, writable)
        if at is not None and memory.length > at.length:
            raise ValueError(f"{memory.length} octets do not fit into {at.length}")
        await self._room.acquire()
        region = None
        try:
            self._alive(_NAMES[op])
            if memory.length:
                region = Region(self, memory, h.LOCAL_WRITE if writable else 0, None)
            future = self._post(op, memory, region, at, flags)
        except BaseException:
            if region:
                region.close()
            self._room.release()
            raise
        return await future  # if that is cancelled, the work still has its memory until it ends

    def _post(self, op: int, memory: _Memory, region: Optional[Region], at: Optional[Advert],
              flags: int) -> "asyncio.Future[int]":
        sge = h.Sge(memory.address, memory.length, region.advert.stag if region else 0)
        wr = h.SendWr(op=op, flags=flags, sge=c.pointer(sge), nsge=1 if memory.length else 0)
        self._next += 1
        wr.wr_id = self._next
        if at is not None:
            wr.stag, wr.to = at.stag, at.to
        result = l.lib.ddps_post_send(self._ptr, c.byref(wr))
        if result == h.E_STATE:
            self._ctx.turn()  # an event says why
            if self._ended() or self._peer_done or self._closing:
                raise self._gone(_NAMES[op])
        _must(result, _NAMES[op])
        self._sent |= op != h.OP_READ
        future: asyncio.Future[int] = self._ctx.loop.create_future()
        self._pending[wr.wr_id] = future, region, _NAMES[op]
        self._ctx.soon()
        return future

    async def send(self, data: Buffer, *, solicited: bool = False) -> None:
        """Send a message.  Done when its memory is free again; the peer may not have it yet."""
        await self._work(h.OP_SEND, data, False, None, h.WR_SOLICITED if solicited else 0)

    async def write(self, source: Buffer, at: Advert) -> None:
        """RDMA Write: `source` into the peer's memory.  A message sent later arrives after it."""
        await self._work(h.OP_WRITE, source, False, at, 0)

    async def read(self, sink: Buffer, at: Advert) -> int:
        """RDMA Read: fill `sink` from the peer's memory.  Return: octets."""
        return await self._work(h.OP_READ, sink, True, at, 0)

    async def recv(self) -> bytes:
        """The next message.  `EOFError`: the peer has ended the session in order."""
        while not self._messages:
            if self._ptr is None or self._aborted or (self._end and self._end.code != h.E_CLOSED and
                                                      self._over.done()):
                self._alive("recv")
            if self._peer_done or self._over.done():
                raise EOFError("the peer has ended the session")
            waiter: asyncio.Future[None] = self._ctx.loop.create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled() and self._messages and self._waiters:
                    self._waiters.popleft().set_result(None)
                raise
        slot, length = self._messages.popleft()
        begin = slot * self._size
        data = bytes(self._inbox[begin:begin + length])
        if not self._ended():
            self._post_receive(slot)
            self._ctx.soon()
        return data

    def __aiter__(self) -> "Session":
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self.recv()
        except EOFError:
            raise StopAsyncIteration from None

    def region(self, buffer: Buffer, *, remote_write: bool = False,
               remote_read: bool = False) -> Region:
        """Memory for the peer of this session.  Send it `bytes(region.advert)`."""
        self._alive("region")
        access = (h.REMOTE_WRITE | h.LOCAL_WRITE if remote_write else 0) | \
            (h.REMOTE_READ if remote_read else 0)
        view = memoryview(buffer)
        if view.readonly:
            raise TypeError("memory of a region is writable, so that it is not a copy")
        return Region(self, _Memory(buffer, True), access, self._ptr)

    @property
    def peer_id(self) -> Optional[PeerId]:
        """Who the peer is; None: the wire is not secured."""
        return _peer_id(l.lib.ddps_ep_peer_id, self._ptr, "peer")

    @property
    def info(self) -> Info:
        i = self._info
        names = {h.TRANSPORT_TCP: ("tcp", "tls"), h.TRANSPORT_SCTP: ("sctp", "sctps"), h.TRANSPORT_SHM: ("shm", "shm")}
        transport = names.get(i.transport, ("none", "none"))[self._secured]
        return Info(transport, i.initiator, i.local.decode(), i.peer.decode(), i.ird, i.ord, i.mulpdu,
                    bool(i.mpa.crc))

    # ---- end ----

    def abort(self) -> None:
        """End the session immediately; work under way is lost, and `close` raises nothing."""
        self._aborted = True
        if not self._ended():
            _must(l.lib.ddps_abort(self._ptr), "abort")
            self._ctx.soon()

    async def close(self) -> None:
        """End the session in order: work already posted is carried out first.

        Raise the error that ended the session instead, if something was sent or written, so that it
        may not have arrived, and no other call has raised that error.
        """
        if self._ptr is None:
            return
        self._closing = True
        try:
            if not self._over.done():
                _must(l.lib.ddps_disconnect(self._ptr), "close")
                self._ctx.soon()
                await asyncio.shield(self._over)
        finally:
            await self._free()
        if self._end and self._sent and not self._told and not self._aborted:
            raise self._gone()

    async def _free(self) -> None:
        ptr, self._ptr = self._ptr, None
        if ptr is None:
            return
        self._ctx.sessions.pop(ptr, None)
        l.lib.ddps_ep_free(ptr)
        self._up.cancel()  # nobody waits for it any more
        if not self._over.done():
            self._over_by(Closed(h.E_CLOSED, "the session is closed"))
        for region in list(self._regions):
            region.close()
        self._wake()
        self._queue[1] += self._entries
        await self._ctx.give_back()

    async def __aenter__(self) -> "Session":
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        if kind is not None:
            self.abort()  # what is on its way is raised, nothing else
        await self.close()


def _param(options: dict[str, Any]) -> tuple[h.ConnParam, Any]:
    p = h.ConnParam()
    l.lib.ddps_conn_param_init_sized(c.byref(p), c.sizeof(p))
    p.p2p = True
    keep = []
    for name, value in options.items():
        if name not in _OPTIONS:
            raise TypeError(f"no option is called {name!r}; there are {', '.join(sorted(_OPTIONS))}")
        if name == "private_data":
            value = bytes(value)
            p.private_data_len = len(value)
        elif name == "local":
            value = value.encode()
        keep.append(value)
        setattr(p, name, value)
    return p, keep


# members of struct ddps_conn_param
_OPTIONS = _members(h.ConnParam, "struct_size", "private_data_len")


class _Opening:
    """`await` it, or `async with` it."""

    async def _open(self) -> Any:
        raise NotImplementedError

    def __await__(self) -> Generator[Any, None, Any]:
        return self._open().__await__()

    async def __aenter__(self) -> Any:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(self, *exc: Any) -> None:
        await self._opened.__aexit__(*exc)


class connect(_Opening):
    """Open a session: `async with connect(uri) as session`, or `session = await connect(uri)`.

    Options are members of struct ddps_conn_param by name: ird, ord, p2p, plain, crc, markers,
    private_data, connect_ms and others.  `secure` is who this side is: a Secure for tls:// and sctps://,
    and none for the other wires; ValueError otherwise.
    """

    def __init__(self, uri: str, *, receives: int = RECEIVES, receive_size: int = RECEIVE_SIZE,
                 secure: Optional[Secure] = None, **options: Any) -> None:
        _check_wire(uri, secure)
        self._uri, self._receives, self._size, self._secure = uri, receives, receive_size, secure
        self._options = options

    async def _open(self) -> Session:
        param, _keep = _param(self._options)
        return await _establish(
            _Context.take(self._secure), self._receives, self._size,
            lambda ep: _must_reach(l.lib.ddps_connect(ep, self._uri.encode(), c.byref(param)),
                                   self._uri))


async def _establish(ctx: _Context, receives: int, size: int, start: Any) -> Session:
    """A session whose set-up @start begins; the caller's use of @ctx becomes the session's."""
    try:
        session = Session(ctx, receives, size)
    except BaseException:
        await ctx.give_back()
        raise
    try:
        start(session._ptr)
        ctx.soon()
        await session._up
    except BaseException:
        if session._up.done() and not session._up.cancelled():
            session._up.exception()  # it is on its way to the caller
        await session._free()
        raise
    return session


class Request:
    """A peer that asks for a session: accept it or reject it."""

    def __init__(self, ctx: _Context, ev: h.Event) -> None:
        self._ctx = ctx
        self.ptr: Optional[int] = ev.request
        self.peer = ev.info.peer.decode()
        self.private_data = bytes(ev.private_data[: ev.private_data_len])
        ctx.requests[self.ptr or 0] = self

    @property
    def peer_id(self) -> Optional[PeerId]:
        """Who asks; None: the wire is not secured."""
        if self.ptr is None:
            raise Closed(h.E_CLOSED, f"{self.peer}: the request was answered, or its peer has gone")
        return _peer_id(l.lib.ddps_request_peer_id, self.ptr, self.peer)

    def _answer(self, how: Callable[[int], Any]) -> None:
        """An answer that the library refuses, for what is in it, leaves the request open."""
        if self.ptr is None:
            raise Closed(h.E_CLOSED, f"{self.peer}: the request was answered, or its peer has gone")
        result = how(self.ptr)
        if result in (0, h.E_IRD, h.E_RTR, h.E_CLOSED):
            self._ctx.requests.pop(self.ptr, None)
            self.ptr = None
        _must(result, self.peer)
        self._ctx.soon()

    async def accept(self, *, receives: int = RECEIVES, receive_size: int = RECEIVE_SIZE,
                     **options: Any) -> Session:
        param, _keep = _param(options)
        ctx = _Context.take(self._ctx.secure)
        session = await _establish(
            ctx, receives, receive_size,
            lambda ep: self._answer(lambda ptr: l.lib.ddps_accept(ptr, ep, c.byref(param))))
        session.private_data = self.private_data
        return session

    def reject(self, private_data: Union[bytes, bytearray] = b"") -> None:
        self._answer(lambda ptr: l.lib.ddps_reject(ptr, bytes(private_data), len(private_data)))

    def _refuse(self) -> None:
        """Nobody else will answer it."""
        if self.ptr is not None:
            try:
                self.reject()
            except Closed:
                pass  # its peer has gone meanwhile


class Listener:
    """Peers that ask for sessions.  `uri` is where, with the port that was chosen."""

    def __init__(self, ctx: _Context, uri: str) -> None:
        self._ctx = ctx
        self._requests: asyncio.Queue[Union[Request, Error]] = asyncio.Queue()
        ptr = c.c_void_p()
        _must_reach(l.lib.ddps_listen(ctx.ptr, uri.encode(), None, c.byref(ptr)), uri)
        self._ptr: Optional[int] = ptr.value
        ctx.listeners[self._ptr or 0] = self
        buf = c.create_string_buffer(1024)
        _must(l.lib.ddps_listener_uri(self._ptr, buf, len(buf)), uri)
        self.uri = buf.value.decode()

    def _event(self, ev: h.Event) -> None:
        if ev.type == h.EV_LISTENER_FAILED:
            self._fail(_error(ev.error))
        else:
            self._requests.put_nowait(Request(self._ctx, ev))

    def _fail(self, why: Error) -> None:
        self._requests.put_nowait(why)

    async def request(self) -> Request:
        """The next peer that asks; those that have gone meanwhile are passed over."""
        while True:
            if self._ptr is None:
                raise self._closed()
            item = await self._requests.get()
            if isinstance(item, Error):
                self._requests.put_nowait(item)
                raise item
            if item.ptr is not None:
                return item

    async def accept(self, **options: Any) -> Session:
        """The next peer's session; `options` as those of `Request.accept`."""
        request = await self.request()
        try:
            return await request.accept(**options)
        except BaseException:
            request._refuse()
            raise

    def _closed(self) -> Error:
        return Closed(h.E_CLOSED, f"{self.uri}: nobody listens any more")

    async def close(self) -> None:
        """Listen no more.  Who waits for an answer is rejected; sessions go on."""
        ptr, self._ptr = self._ptr, None
        if ptr is None:
            return
        while not self._requests.empty():
            item = self._requests.get_nowait()
            if isinstance(item, Request):
                item._refuse()
        self._ctx.listeners.pop(ptr, None)
        self._fail(self._closed())
        l.lib.ddps_listener_free(ptr)
        await self._ctx.give_back()

    async def __aenter__(self) -> "Listener":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class listen(_Opening):
    """Listen: `async with listen("tcp://127.0.0.1:0") as listener`, or `await listen(uri)`.

    `secure` is who this side is: a Secure for tls:// and sctps://, and none for the other wires; ValueError
    otherwise.
    """

    def __init__(self, uri: str, *, secure: Optional[Secure] = None) -> None:
        _check_wire(uri, secure)
        self._uri, self._secure = uri, secure

    async def _open(self) -> Listener:
        ctx = _Context.take(self._secure)
        try:
            return Listener(ctx, self._uri)
        except BaseException:
            await ctx.give_back()
            raise
