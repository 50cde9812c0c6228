# SPDX-License-Identifier: BSD-2-Clause
"""The Python package against the library, over both wires."""
import array
import asyncio
import contextlib
import errno
import gc
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import ddpsess
from ddpsess import _headers, _lib

TCP, SCTP, SHM = "tcp://127.0.0.1:0", "sctp://127.0.0.1:0?backend=native&encap=0", "shm://@"
PATIENCE = 20


@contextlib.asynccontextmanager
async def pair(uri, **options):
    """Both ends of a session: initiator, responder."""
    async with ddpsess.listen(uri) as listener:
        initiator, responder = await asyncio.gather(
            ddpsess.connect(listener.uri)._open(), listener.accept(**options))
        try:
            yield initiator, responder
        finally:
            await asyncio.gather(initiator.close(), responder.close())


@contextlib.asynccontextmanager
async def dumb_peer():
    """A session whose peer is a socket that answers the set-up, and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        opened = asyncio.create_task(ddpsess.connect(
            f"tcp://127.0.0.1:{listener.getsockname()[1]}", plain=True, p2p=False,
            close_ms=1000)._open())
        peer, _ = await loop.sock_accept(listener)
        with peer:
            await loop.sock_recv(peer, 20)
            await loop.sock_sendall(peer, b"MPA ID Rep Frame" + bytes([0x40, 1, 0, 0]))
            session = await opened
            try:
                yield session, peer
            finally:
                await session.close()


def wires(test):
    """The test over TCP, over SCTP and through shared memory; it may not take long."""

    async def both(self):
        for uri in (TCP, SCTP, SHM):
            with self.subTest(uri=uri):
                await asyncio.wait_for(test(self, uri), PATIENCE)

    return both


class Sessions(unittest.IsolatedAsyncioTestCase):
    def tearDown(self):
        self.assertEqual(ddpsess._Context.of_loop, {}, "what is unused is freed")

    @wires
    async def test_messages_go_both_ways(self, uri):
        async with pair(uri) as (a, b):
            self.assertEqual((a.info.transport, a.info.initiator), (uri.split(":")[0], True))
            self.assertEqual(b.info.initiator, False)
            self.assertEqual((a.info.ird, a.info.ord), (16, 16))
            await b.send(b"the responder may speak first")
            self.assertEqual(await a.recv(), b"the responder may speak first")
            for size in (0, 1, 4096):
                await a.send(bytes(size))
                self.assertEqual(await b.recv(), bytes(size))

    @wires
    async def test_memory_is_written_and_read(self, uri):
        async with pair(uri) as (a, b):
            memory = bytearray(100_000)
            with b.region(memory, remote_write=True, remote_read=True) as region:
                await b.send(bytes(region.advert))
                at = ddpsess.Advert.parse(await a.recv())
                self.assertEqual(at, region.advert)
                source = bytes(range(256)) * 300
                await a.write(source, at.at(1000))
                await a.send(b"written")
                await b.recv()
                self.assertEqual(memory[1000:1000 + len(source)], source)
                sink = bytearray(512)
                self.assertEqual(await a.read(sink, at.at(1256)), 512)
                self.assertEqual(sink, source[256:768])
            with self.assertRaises(ValueError):
                await a.write(bytes(100_001), at)
            with self.assertRaises(ValueError):
                at.at(100_001)

    @wires
    async def test_any_buffer_will_do(self, uri):
        async with pair(uri) as (a, b):
            with mmap.mmap(-1, 4096) as m:
                with b.region(m, remote_write=True) as region:
                    await a.write(array.array("H", [0x4142] * 4), region.advert)
                    await a.send(memoryview(b"-x-")[1:2])
                    self.assertEqual(await b.recv(), b"x")
                    self.assertEqual(m[:9], b"BABABABA\0")
            for wrong in (b"bytes cannot be written to", "text"):
                with self.assertRaises(TypeError):
                    b.region(wrong)
            with self.assertRaises(TypeError):
                await a.read(b"nor be a sink", region.advert)

    @wires
    async def test_more_at_a_time_than_the_queues_hold(self, uri):
        async with pair(uri, receives=2) as (a, b):
            sends = [asyncio.create_task(a.send(b"%d" % i)) for i in range(200)]
            got = [int(await b.recv()) for _ in sends]
            await asyncio.gather(*sends)
            self.assertEqual(got, list(range(200)))

    @wires
    async def test_the_end_in_order(self, uri):
        async with pair(uri) as (a, b):
            await a.send(b"last words")
            closing = asyncio.create_task(a.close())
            self.assertEqual([m async for m in b], [b"last words"])
            await b.close()
            await closing
            with self.assertRaises(ddpsess.Error):
                await a.send(b"too late")

    @wires
    async def test_an_abort_ends_what_waits(self, uri):
        async with pair(uri) as (a, b):
            waiting = asyncio.create_task(b.recv())
            await a.send(b"")
            self.assertEqual(await waiting, b"")
            waiting = asyncio.create_task(b.recv())
            await asyncio.sleep(0)
            a.abort()
            with self.assertRaises((ddpsess.Error, EOFError)):
                await waiting

    @wires
    async def test_a_violation_terminates(self, uri):
        async with pair(uri) as (a, b):
            with b.region(bytearray(10), remote_read=True) as region:
                with self.assertRaises(ddpsess.Terminated) as caught:
                    await a.write(b"no right to", region.advert._replace(length=11))
                    await a.recv()
            self.assertEqual(caught.exception.triple[0], 1, "the DDP layer")
            self.assertTrue(caught.exception.by_peer)

    @wires
    async def test_a_rejection_has_its_private_data(self, uri):
        async with ddpsess.listen(uri) as listener:
            asked = asyncio.create_task(
                ddpsess.connect(listener.uri, private_data=b"please")._open())
            request = await listener.request()
            self.assertEqual(request.private_data, b"please")
            request.reject(b"no")
            with self.assertRaises(ddpsess.Rejected) as caught:
                await asked
            self.assertEqual(caught.exception.private_data, b"no")
            with self.assertRaises(ddpsess.Error):
                request.reject()

    @wires
    async def test_cancelled_waits_lose_nothing(self, uri):
        async with pair(uri) as (a, b):
            waiting = asyncio.create_task(b.recv())
            await asyncio.sleep(0)
            waiting.cancel()
            await a.send(b"kept")
            self.assertEqual(await b.recv(), b"kept")
        async with ddpsess.listen(uri) as listener:
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(ddpsess.connect(listener.uri)._open(), 0.05)

    @wires
    async def test_close_raises_what_ended_the_session(self, uri):
        nowhere = ddpsess.Advert(1, 0, 100)
        async with pair(uri) as (a, b):
            await a.write(b"refused", nowhere)
            with self.assertRaises(ConnectionAbortedError) as caught:
                await a.close()
            self.assertIsInstance(caught.exception, ddpsess.Terminated)
            self.assertEqual(caught.exception.errno, errno.ECONNABORTED)
            await a.close()
        async with pair(uri) as (a, b):
            with self.assertRaises(ddpsess.Terminated):
                async with a:
                    await a.write(b"refused", nowhere)
        async with pair(uri) as (a, b):
            with self.assertRaisesRegex(RuntimeError, "my own"):
                async with a:
                    await a.write(b"refused", nowhere)
                    with self.assertRaises(ddpsess.Terminated):
                        await b.recv()
                    raise RuntimeError("my own")
        async with pair(uri) as (a, b):
            await a.write(b"refused", nowhere)
            with self.assertRaises(ddpsess.Terminated):
                await a.recv()
            await a.close()  # it was raised already
        async with pair(uri) as (a, b):
            await a.write(b"refused", nowhere)
            a.abort()
            await a.close()

    async def test_close_says_that_the_connection_was_lost(self):
        async with dumb_peer() as (session, peer):
            await session.send(b"taken by the system, not by the program")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
            with self.assertRaises(ConnectionResetError) as caught:
                await session.close()
            self.assertEqual(caught.exception.errno, errno.ECONNRESET)

    async def test_close_says_that_the_peer_was_killed(self):
        async with ddpsess.listen(SCTP) as listener:
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", f"""
import asyncio, ddpsess
async def main():
    session = await ddpsess.connect({listener.uri!r})
    await session.recv()
    await asyncio.sleep({PATIENCE})
asyncio.run(main())""")
            async with await listener.accept() as session:
                await session.send(b"taken")
                os.kill(child.pid, signal.SIGKILL)
                await child.wait()
                with self.assertRaises(ConnectionResetError):
                    await asyncio.wait_for(session.close(), PATIENCE)

    @wires
    async def test_work_after_the_end_of_the_peer_is_told_so(self, uri):
        async with pair(uri) as (a, b):
            with b.region(bytearray(10), remote_read=True) as region:
                closing = asyncio.create_task(b.close())
                with self.assertRaises(EOFError):
                    await a.recv()
                with self.assertRaisesRegex(BrokenPipeError, "read: the peer has ended") as caught:
                    await a.read(bytearray(10), region.advert)
                self.assertIsInstance(caught.exception, ddpsess.Closed)
                self.assertEqual(caught.exception.errno, errno.EPIPE)
            await a.close()
            await closing
            with self.assertRaisesRegex(ddpsess.Closed, "send: "):
                await a.send(b"too late")

    async def test_a_read_that_the_peer_does_not_answer_before_it_ends(self):
        async with dumb_peer() as (session, peer):
            reading = asyncio.create_task(session.read(bytearray(10), ddpsess.Advert(1, 0, 10)))
            await asyncio.get_running_loop().sock_recv(peer, 1)
            peer.shutdown(socket.SHUT_WR)
            with self.assertRaisesRegex(ddpsess.Closed, "read: the peer has ended"):
                await asyncio.wait_for(reading, PATIENCE)

    @wires
    async def test_cancelled_work_ends_no_session(self, uri):
        async with pair(uri) as (a, b):
            memory = bytearray(40 << 18)
            with b.region(memory, remote_read=True, remote_write=True) as region:
                for make in (lambda at: a.read(bytearray(1 << 18), at),
                             lambda at: a.write(bytes(1 << 18), at)):
                    work = [asyncio.create_task(make(region.advert.at(i << 18))) for i in range(40)]
                    await asyncio.sleep(0)
                    for task in work:
                        task.cancel()
                    await asyncio.gather(*work, return_exceptions=True)
                    await asyncio.gather(*(make(region.advert.at(i << 18)) for i in range(40)))
            await a.send(b"the session goes on")
            self.assertEqual(await b.recv(), b"the session goes on")

    @wires
    async def test_what_waits_when_the_session_is_closed_here(self, uri):
        async with pair(uri) as (a, b):
            waiting = asyncio.create_task(a.recv())
            await asyncio.sleep(0)
            a.abort()
            with self.assertRaisesRegex(ddpsess.Closed, "aborted by this side"):
                await waiting

    @wires
    async def test_an_answer_that_is_refused_leaves_the_request(self, uri):
        async with ddpsess.listen(uri) as listener:
            asked = asyncio.create_task(ddpsess.connect(listener.uri)._open())
            request = await listener.request()
            with self.assertRaises(ddpsess.Error):
                await request.accept(private_data=bytes(9999))
            with self.assertRaises(ddpsess.Error):
                request.reject(bytes(9999))
            session = await request.accept()
            await asyncio.gather((await asked).close(), session.close())
            asked = asyncio.create_task(ddpsess.connect(listener.uri)._open())
            with self.assertRaises(TypeError):
                await listener.accept(no_such_option=1)
            with self.assertRaises(ddpsess.Rejected):
                await asked

    @wires
    async def test_a_request_ends_with_its_context(self, uri):
        listener = await ddpsess.listen(uri)
        asked = asyncio.create_task(ddpsess.connect(listener.uri)._open())
        request = await listener.request()
        asked.cancel()
        await listener.close()
        await asyncio.gather(asked, return_exceptions=True)
        with self.assertRaises(ddpsess.Closed):
            await request.accept()

    async def test_a_context_that_fails_says_so(self):
        listener = await ddpsess.listen(TCP)
        a, b = await asyncio.gather(ddpsess.connect(listener.uri)._open(), listener.accept())
        waiting = [asyncio.create_task(x) for x in (a.recv(), listener.request())]
        await asyncio.sleep(0)
        ctx = a._ctx
        with unittest.mock.patch.object(_lib.lib, "ddps_progress", return_value=_headers.E_FORKED):
            ctx.turn()
        for task in waiting:
            with self.assertRaisesRegex(ddpsess.Error, "event loop's sessions"):
                await asyncio.wait_for(task, PATIENCE)
        for x in (a, b, listener):
            await x.close()

    async def test_nobody_listens(self):
        async with ddpsess.listen(TCP) as listener:
            uri = listener.uri
        with self.assertRaises(ConnectionRefusedError) as caught:
            async with ddpsess.connect(uri):
                pass
        self.assertIn("refused", str(caught.exception))
        self.assertIn(uri.split("//")[1], str(caught.exception))
        self.assertIsInstance(caught.exception, ddpsess.Refused)
        self.assertEqual(caught.exception.errno, errno.ECONNREFUSED)

    async def test_errors_have_kinds_of_python(self):
        async with pair(TCP) as (a, b):
            a.abort()
            with self.assertRaises(ConnectionResetError) as caught:
                while True:
                    await b.recv()
            self.assertIsInstance(caught.exception, ddpsess.Lost)
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            with self.assertRaises(TimeoutError) as caught:
                await ddpsess.connect(f"tcp://127.0.0.1:{silent.getsockname()[1]}", connect_ms=200,
                                      setup_ms=200)
            self.assertEqual(caught.exception.errno, errno.ETIMEDOUT)
            with self.assertRaises(OSError) as caught:
                await ddpsess.listen(f"tcp://127.0.0.1:{silent.getsockname()[1]}")
            self.assertEqual(caught.exception.errno, errno.EADDRINUSE)

    async def test_a_bad_uri_is_explained(self):
        for uri, part in (("http://127.0.0.1:1", "http"), ("tcp://127.0.0.1", "port")):
            with self.assertRaises(ddpsess.Error) as caught:
                await ddpsess.connect(uri)
            self.assertIn(part, str(caught.exception).replace(uri, "", 1))
            self.assertEqual(caught.exception.errno, errno.EINVAL)

    async def test_arguments_are_checked(self):
        with self.assertRaises(ddpsess.Error):
            await ddpsess.connect("http://127.0.0.1:1")
        with self.assertRaises(ddpsess.Error):
            await ddpsess.listen("tcp://127.0.0.1")
        with self.assertRaisesRegex(TypeError, "'crcs'; there are .*connect_ms, .*private_data,") as caught:
            await ddpsess.connect("tcp://127.0.0.1:1", crcs=True)
        self.assertNotRegex(str(caught.exception), "reserved|struct_size")
        with self.assertRaises(TypeError):
            await ddpsess.connect("tcp://127.0.0.1:1", reserved2=bytes(3))
        with self.assertRaises(ValueError):
            await ddpsess.connect("tcp://127.0.0.1:1", receives=0)

    async def test_each_member_of_the_parameters_is_an_option(self):
        async with ddpsess.listen(TCP) as listener:
            asked = asyncio.create_task(listener.request())
            some = {"ird": 3, "ord": 4, "rtr": _headers.RTR_READ, "connect_ms": 5000, "nudge_ms": 0,
                    "legacy_retry": False, "private_data": b"all", "max_mulpdu": 1000}
            opened = asyncio.create_task(ddpsess.connect(listener.uri, **some)._open())
            responder = await (await asked).accept(rtr=_headers.RTR_READ)
            initiator = await opened
            self.assertEqual((initiator.info.ird, initiator.info.ord), (3, 4))
            self.assertEqual((responder.private_data, initiator.info.mulpdu), (b"all", 1000))
            await asyncio.gather(initiator.close(), responder.close())
        members = {field[0] for field in _headers.ConnParam._fields_}
        self.assertEqual(members - ddpsess._OPTIONS, {"struct_size", "private_data_len", "reserved", "reserved2"})

    async def test_memory_of_a_region_stays(self):
        async with pair(TCP) as (_, b):
            memory = bytearray(10)
            region = b.region(memory, remote_write=True)
            with self.assertRaises(BufferError):
                memory.extend(b"moved")
            region.close()
            region.close()
            gc.collect()
            memory.extend(b"moved")


class Adverts(unittest.TestCase):
    def test_what_is_no_advert_is_said(self):
        advert = ddpsess.Advert(7, 4096, 10)
        self.assertEqual(ddpsess.Advert.parse(bytes(advert)), advert)
        self.assertEqual(advert.at(3), (7, 4099, 7))
        with self.assertRaisesRegex(ValueError, "an advert has 20 octets, not 0"):
            ddpsess.Advert.parse(b"")
        with self.assertRaisesRegex(ValueError, "beyond the last offset"):
            ddpsess.Advert.parse(bytes(ddpsess.Advert(1, (1 << 64) - 1, 2)))
        ddpsess.Advert.parse(bytes(ddpsess.Advert(1, (1 << 64) - 1, 1)))


class Library(unittest.TestCase):
    def test_version(self):
        self.assertRegex(ddpsess.version(), r"^\d+\.\d+\.\d+$")
        self.assertEqual(_lib.strerror(-42), "refused by the peer's transport")


@unittest.skipUnless(os.environ.get("SESSCTL"), "sessctl makes the keys")
class Secured(unittest.IsolatedAsyncioTestCase):
    """tls:// and sctps:// with keys of sessctl's."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        for words in (["ca"], ["host", "a.example", "127.0.0.1"], ["host", "b.example"], ["psk", "pair"]):
            subprocess.run([os.environ["SESSCTL"], "keys", *words, "--dir", self.dir], check=True, capture_output=True)

    def files(self, name):
        at = os.path.join(self.dir, name)
        return ddpsess.Secure(cert=at + ".pem", key=at + ".key", ca=os.path.join(self.dir, "ca.pem"))

    async def meet(self, a, b, wire="tls"):
        async with ddpsess.listen(wire + "://127.0.0.1:0", secure=a) as listener:
            session, request = await asyncio.gather(
                ddpsess.connect(listener.uri, secure=b)._open(), self.accept(listener))
            try:
                await session.send(b"hello")
                self.assertEqual(await request[1].recv(), b"hello")
                self.assertEqual((session.info.transport, request[1].info.transport), (wire, wire))
                return session.peer_id, request[0], request[1].peer_id
            finally:
                await asyncio.gather(session.close(), request[1].close())

    async def accept(self, listener):
        request = await listener.request()
        asked = request.peer_id
        return asked, await request.accept()

    async def test_certificates(self):
        listener, asked, peer = await self.meet(self.files("a.example"), self.files("b.example"))
        self.assertEqual((listener.name, listener.how), ("ip:127.0.0.1", "x509"))
        self.assertEqual(listener.names, ("dns:a.example", "ip:127.0.0.1"))
        self.assertEqual(asked, peer)
        self.assertEqual((peer.name, peer.version), ("dns:b.example", "TLS 1.3"))
        self.assertEqual(len(peer.sha256), 32)

    async def test_certificates_over_sctps(self):
        _, _, peer = await self.meet(self.files("a.example"), self.files("b.example"), "sctps")
        self.assertEqual((peer.name, peer.version), ("dns:b.example", "DTLS 1.2"))

    async def test_shared_key(self):
        secure = ddpsess.Secure(psk=os.path.join(self.dir, "pair.psk"))
        secure.reload()
        _, asked, peer = await self.meet(secure, secure)
        self.assertEqual((asked.name, peer.how), ("psk:pair", "psk"))

    async def test_untrusted(self):
        with open(os.path.join(self.dir, "peers"), "w") as rules:
            rules.write("allow dns c.example\n")
        a, b = os.path.join(self.dir, "a.example"), self.files("b.example")
        ca = os.path.join(self.dir, "ca.pem")
        strict = ddpsess.Secure(cert=a + ".pem", key=a + ".key", ca=ca, peers=os.path.join(self.dir, "peers"))
        for wire in ("tls", "sctps"):
            async with ddpsess.listen(wire + "://127.0.0.1:0", secure=strict) as listener:
                with self.assertRaises(ddpsess.Untrusted) as caught:  # the peer says no
                    async with ddpsess.connect(listener.uri, secure=b):
                        pass
                self.assertEqual(caught.exception.code, _headers.E_CERT_REFUSED)
                self.assertIsInstance(caught.exception, PermissionError)
                self.assertEqual(caught.exception.errno, errno.EACCES)
            async with ddpsess.listen(wire + "://127.0.0.1:0", secure=b) as listener:
                with self.assertRaises(ddpsess.Untrusted) as caught:  # this side says no
                    async with ddpsess.connect(listener.uri, secure=self.files("a.example")):
                        pass
                self.assertEqual(caught.exception.code, _headers.E_CERT_NAME)

    async def test_cut(self):
        """Somebody on the way ends the connection: lost, never ended in order."""
        async def carry(reader, writer):
            while data := await reader.read(65536):
                writer.write(data)
            writer.close()

        async def between(reader, writer):
            there = await asyncio.open_connection("127.0.0.1", port)
            cut.extend((writer, there[1]))
            await asyncio.gather(carry(reader, there[1]), carry(there[0], writer), return_exceptions=True)

        cut = []
        a, b = self.files("a.example"), self.files("b.example")
        async with ddpsess.listen("tls://127.0.0.1:0", secure=a) as listener:
            port = int(listener.uri.rsplit(":", 1)[1])
            async with await asyncio.start_server(between, "127.0.0.1", 0) as middle:
                uri = f"tls://127.0.0.1:{middle.sockets[0].getsockname()[1]}"
                session, (_, peer) = await asyncio.gather(
                    ddpsess.connect(uri, secure=b)._open(), self.accept(listener))
                for writer in cut:
                    writer.close()
                for end in (session, peer):
                    with self.assertRaises(ddpsess.Lost) as caught:
                        await end.recv()
                    self.assertIn(caught.exception.code, (_headers.E_CUT_SHORT, _headers.E_RESET))
                    await end.close()

    async def test_wrong_files(self):
        with self.assertRaises(ddpsess.Error) as caught:
            ddpsess.Secure(cert="a", key="b", ca="c")
        self.assertEqual(caught.exception.code, _headers.E_CONFIG)
        with self.assertRaisesRegex(TypeError, "no setting certificate: there are ca, cert, crl, hosts, key"):
            ddpsess.Secure(certificate="a")

    async def test_keys_and_a_plain_wire(self):
        secure = self.files("a.example")
        for uri in ("tcp://127.0.0.1:0", "sctp://127.0.0.1:0", "TCP://127.0.0.1:0", "shm://@name"):
            for how in (ddpsess.connect, ddpsess.listen):
                with self.assertRaisesRegex(ValueError, "secure= is for tls:// and sctps://: .* would be plain"):
                    await how(uri, secure=secure)
        for how in (ddpsess.connect, ddpsess.listen):
            for uri in ("tls://127.0.0.1:0", "sctps://127.0.0.1:0"):
                with self.assertRaisesRegex(ValueError, f"secure= is missing: {uri} needs Secure"):
                    await how(uri)
            with self.assertRaisesRegex(TypeError, "secure= takes a Secure, .*, not str"):
                await how("tls://127.0.0.1:0", secure="a.conf")
        with self.assertRaises(ddpsess.Error):  # the library says what is wrong with it
            await ddpsess.connect("udp://127.0.0.1:1", secure=secure)

    async def test_plain(self):
        async with pair(TCP) as (a, b):
            self.assertIsNone(a.peer_id)
            self.assertIsNone(b.peer_id)


if __name__ == "__main__":
    unittest.main()
