# SPDX-License-Identifier: BSD-2-Clause
"""Both ends in one program: one offers memory, the other writes into it.  usage: hello.py [URI]"""
import asyncio
import sys

import ddpsess


async def serve(listener):
    async with await listener.accept() as session:
        memory = bytearray(15)
        with session.region(memory, remote_write=True) as region:
            await session.send(bytes(region.advert))
            await session.recv()  # it arrives behind the Write
            print(f'{listener.uri}: "{memory.decode()}"')


async def main(uri="tcp://127.0.0.1:0"):
    async with ddpsess.listen(uri) as listener:
        server = asyncio.create_task(serve(listener))
        async with ddpsess.connect(listener.uri) as session:
            target = ddpsess.Advert.parse(await session.recv())
            await session.write(b"hello over RDMA", target)
            await session.send(b"done")
        await server


asyncio.run(main(*sys.argv[1:2]))
