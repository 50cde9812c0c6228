#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A key-value store, as examples/kv_server.c: clients read values out of its memory.  usage: kv_server.py [URI]

It ends when a client puts the key "quit".  examples/kv.h has the messages.
"""
import asyncio
import sys

import ddpsess

values: "dict[bytes, bytearray]" = {}


async def serve(session):
    """One client: its requests in turn.  Regions end with the session."""
    regions = {}  # for this client, by key
    async for request in session:
        kind, size = request[0:1], int.from_bytes(request[1:2], "big")
        key, value = request[2:2 + size], request[2 + size:]
        if kind == b"P":
            values[key] = bytearray(value)  # a new one: whoever reads the old one goes on
        region = regions.get(key)
        if key in values and (region is None or region[0] is not values[key]):
            memory = values[key]
            region = regions[key] = memory, session.region(memory, remote_read=True)
        await session.send(bytes(region[1].advert if region else ddpsess.Advert(0, 0, 0)))


async def accept(listener, quit):
    """Clients, until nobody wants more; an error of one does not concern the others."""
    async def one(request):
        try:
            async with await request.accept() as session:
                await serve(session)
        except ddpsess.Error as error:
            print(f"kv_server: a client: {error}", file=sys.stderr)
        if b"quit" in values:
            quit.set()  # the session has ended: its last answer has arrived

    tasks = set()
    while True:
        task = asyncio.create_task(one(await listener.request()))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def main(uri="tcp://127.0.0.1:0"):
    quit = asyncio.Event()
    async with ddpsess.listen(uri) as listener:
        print("listening on", listener.uri, flush=True)
        accepting = asyncio.create_task(accept(listener, quit))
        await quit.wait()
        accepting.cancel()


asyncio.run(main(*sys.argv[1:2]))
