#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Somebody on the way, who has no keys.

tls_between.py HOW PORT: prints its own port, carries one connection, and does to the eighth record of data that the
one who connects sends:
  flip   changes a bit of it
  again  sends it twice
  cut    ends the connection both ways behind half of it
  drop   leaves it out
"""
import socket
import sys
import threading

DATA = 23
WHICH = 8


def take(s, n):
    """@n octets, or those that there are before the end."""
    octets = b""
    while len(octets) < n:
        more = s.recv(n - len(octets))
        if not more:
            break
        octets += more
    return octets


def carry_back(at, to):
    """Everything, as it is."""
    try:
        while octets := at.recv(65536):
            to.sendall(octets)
        to.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def main(how, port):
    """One connection, until its end."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    client = listener.accept()[0]
    server = socket.create_connection(("127.0.0.1", int(port)))
    back = threading.Thread(target=carry_back, args=(server, client))
    back.start()
    seen = 0
    try:
        while len(head := take(client, 5)) == 5:
            record = bytearray(head + take(client, int.from_bytes(head[3:], "big")))
            seen += head[0] == DATA
            if seen == WHICH and head[0] == DATA:
                if how == "cut":
                    server.sendall(record[: len(record) // 2])
                    break
                if how == "flip":
                    record[-1] ^= 1
                if how == "again":
                    record = record + record
                if how == "drop":
                    continue
            server.sendall(record)
        server.shutdown(socket.SHUT_WR)
        if how == "cut":
            client.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    back.join(20)
    client.close()
    server.close()


main(*sys.argv[1:])
