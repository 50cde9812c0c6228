# SPDX-License-Identifier: BSD-2-Clause
"""As examples/secured.c: a message to a peer that both sides have judged.  usage: secured.py SETTINGS URI [MESSAGE]"""
import asyncio
import sys

import ddpsess


def say(way, peer, text):
    print(f"{way} {peer.name} over {peer.version}, {peer.suite}: {text}")


async def main(settings, uri, message=None):
    secure = ddpsess.Secure(settings)
    if message is None:
        async with ddpsess.listen(uri, secure=secure) as listener:
            print("listening on", listener.uri, flush=True)
            request = await listener.request()
            peer = request.peer_id  # the program may reject it
            async with await request.accept() as session:
                say("from", peer, (await session.recv()).decode())
    else:
        async with ddpsess.connect(uri, secure=secure) as session:
            peer = session.peer_id
            await session.send(message.encode())
            say("to", peer, message)


try:
    asyncio.run(main(*sys.argv[1:]))
except ddpsess.Untrusted as error:
    sys.exit(f"secured.py: not trusted: {error}")
except ValueError as error:  # the wire would be plain
    sys.exit(f"secured.py: {error}")
