#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A client of kv_server: it puts a value, or gets one and prints it.

usage: kv_client.py URI put KEY VALUE | kv_client.py URI get KEY
Exit status 0: done; 1: no such key, or no room for it; 2: an error.
"""
import asyncio
import sys

import ddpsess


async def ask(session, kind, key, value=b""):
    """The advert of the key's value; its length is 0 if there is none."""
    await session.send(kind + bytes([len(key)]) + key + value)
    return ddpsess.Advert.parse(await session.recv())


async def main(uri, what, key, value=""):
    async with ddpsess.connect(uri) as session:
        if what == "put":
            at = await ask(session, b"P", key.encode(), value.encode())
        else:
            at = await ask(session, b"G", key.encode())
            if at.length:
                memory = bytearray(at.length)
                await session.read(memory, at)
                print(memory.decode())
    if not at.length:
        print("kv_client: the server has no", "room for it" if what == "put" else "such key", file=sys.stderr)
    return 0 if at.length else 1


try:
    sys.exit(asyncio.run(main(*sys.argv[1:])))
except (ddpsess.Error, EOFError) as error:
    print(f"kv_client: {error}", file=sys.stderr)
    sys.exit(2)
