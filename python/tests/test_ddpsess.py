# SPDX-License-Identifier: BSD-2-Clause
"""The Python package against the library, over both wires."""
import array
import asyncio
import contextlib
import errno
import gc
import mmap
import socket
import unittest

import ddpsess
from ddpsess import _headers, _lib

TCP, SCTP = "tcp://127.0.0.1:0", "sctp://127.0.0.1:0?backend=native&encap=0"
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


def wires(test):
    """The test over TCP and over SCTP; it may not take long."""

    async def both(self):
        for uri in (TCP, SCTP):
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

    async def test_nobody_listens(self):
        async with ddpsess.listen(TCP) as listener:
            uri = listener.uri
        with self.assertRaises(ConnectionRefusedError) as caught:
            async with ddpsess.connect(uri):
                pass
        self.assertIn("refused", str(caught.exception))
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
                await ddpsess.connect(f"tcp://127.0.0.1:{silent.getsockname()[1]}", connect_ms=200)
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
        with self.assertRaises(TypeError):
            await ddpsess.connect("tcp://127.0.0.1:1", crcs=True)
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
        self.assertEqual(members - ddpsess._OPTIONS, {"struct_size", "private_data_len", "reserved"})

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


if __name__ == "__main__":
    unittest.main()
