# SPDX-License-Identifier: BSD-2-Clause
"""A peer of sessctl listen that takes what it can get.  usage: stranger.py URI WHAT..., a line of what it saw each"""
import asyncio
import struct
import sys

import ddpsess

MAGIC, VERSION = 0x5343, 1
PUT, GET, PING, GO, FILE, CHUNK, READY, CREDIT, DONE, OK, REFUSE, ERROR = range(1, 13)
OTHER = {"local": "127.0.0.2:0"}
PATIENCE = 60


def message(kind, body=b""):
    return struct.pack(">HBB", MAGIC, VERSION, kind) + body


def put(name, size):
    return message(PUT, struct.pack(">BQH", 0, size, len(name)) + name)


def ping(op, octets, pause_ms=0):
    return message(PING, struct.pack(">BII", op, octets, pause_ms))


def read(data):
    """Kind, and the sentence of a refusal."""
    kind = data[3]
    return kind, data[6:].decode() if kind in (REFUSE, ERROR) else ""


async def asked(uri, first, **options):
    session = await ddpsess.connect(uri, **options)
    await session.send(first)
    return session, *read(await asyncio.wait_for(session.recv(), PATIENCE))


async def pause(uri):
    """A ping an hour: the peer does not choose the listener's patience."""
    session, kind, why = await asked(uri, ping(0, 64, 3600000))
    print("pause", kind == REFUSE and "60 s" in why, why)
    session.abort()


async def windows(uri):
    """All of the windows' memory."""
    held = []
    why = "everything was given"
    for _ in range(70):
        session, kind, why = await asked(uri, ping(1, 16 << 20))
        held.append(session)
        if kind != GO:
            break
    other, kind, _ = await asked(uri, ping(1, 64), **OTHER)
    print("windows", kind == GO and len(held) == 33 and "share" in why, len(held), kind, why)
    for session in held + [other]:
        session.abort()


async def sessions(uri):
    """All sessions, idle."""
    held = []
    why = b"everybody was let in"
    for _ in range(2000):
        try:
            held.append(await ddpsess.connect(uri))
        except ddpsess.Rejected as e:
            why = e.private_data
            break
    other, kind, _ = await asked(uri, ping(1, 64), **OTHER)
    print("sessions", kind == GO and b"share" in why, len(held), kind, why)
    for session in held + [other]:
        session.abort()


async def space(uri, octets):
    """The disk's room, without a word of data."""
    mine, kind, _ = await asked(uri, put(b"mine", int(octets)))
    other, answer, why = await asked(uri, put(b"other", 6), **OTHER)
    print("space", (kind, answer) == (GO, GO), kind, answer, why)
    mine.abort()
    other.abort()


async def pieces(session, octets):
    """So much of a file in pieces of 4 KiB.  Return: why not, or None."""
    for off in range(0, octets, 4096):
        await session.send(message(CHUNK, struct.pack(">BIQ", 0, 4096, off)))
        kind, why = read(await asyncio.wait_for(session.recv(), PATIENCE))
        if kind != CREDIT:
            return why
    return None


async def hoard(uri, octets):
    """The disk's room, by files that are never whole."""
    room = int(octets)
    mine, _, _ = await asked(uri, put(b"mine", room))
    first = await pieces(mine, room // 2 // 4096 * 4096)
    more, _, _ = await asked(uri, put(b"more", room * 7 // 16))
    second = await pieces(more, room * 7 // 16 // 4096 * 4096)
    other, _, _ = await asked(uri, put(b"other", 8192), **OTHER)
    third = await pieces(other, 8192)
    print("hoard", first is None and second and "other addresses" in second and third is None, first, second, third)
    for session in (mine, more, other):
        session.abort()


async def slow(uri):
    """A file, octet by octet, each in time."""
    session, kind, _ = await asked(uri, put(b"slow", 100))
    sent = 0
    try:
        while sent < 100:
            await session.send(message(CHUNK, struct.pack(">BIQ", 0, 1, sent)))
            sent += 1
            await asyncio.wait_for(session.recv(), PATIENCE)
            await asyncio.sleep(0.5)
    except (ddpsess.Error, EOFError):
        pass
    print("slow", kind == GO and 0 < sent < 100, sent)
    session.abort()


async def liar(_):
    """As a listener: a file that fills the disk of who gets it."""
    async with ddpsess.listen("tcp://127.0.0.1:0") as listener:
        print(listener.uri, flush=True)
        session = await listener.accept()
        await session.recv()
        await session.send(message(FILE, struct.pack(">Q", 1 << 40)))
        await asyncio.wait_for(session.close(), PATIENCE)


asyncio.run(globals()[sys.argv[2]](sys.argv[1], *sys.argv[3:]))
