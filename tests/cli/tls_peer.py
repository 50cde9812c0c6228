#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A listener that is no iWARP one.

tls_peer.py HOW [CERT KEY CA]: prints its port, then a word for each connection that comes.

HOW, for the first connection (each other one gets a FIN):
  fin       closed behind what came first
  rst       the same with a reset
  words     answered in plain text
  silent    nothing, until the other side leaves
  tls-fin   after TLS's handshake and the Request: a FIN without close_notify
  tls-rst   a reset there
  tls-close close_notify and FIN there
"""
import select
import socket
import ssl
import struct
import sys


def context(cert, key, authority):
    """TLS 1.3, with the protocol that iWARP's listeners agree to."""
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.minimum_version = ssl.TLSVersion.TLSv1_3
    c.load_cert_chain(cert, key)
    c.load_verify_locations(authority)
    c.verify_mode = ssl.CERT_REQUIRED
    c.num_tickets = 0
    c.set_alpn_protocols(["x-iwarp-mpa"])
    return c


def reset(s):
    """Close it with a reset."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def serve_first(s, how, files):
    """What @how says."""
    if how.startswith("tls-"):
        t = context(*files).wrap_socket(s, server_side=True, suppress_ragged_eofs=True)
        t.recv(4096)
        if how == "tls-close":
            t.unwrap().close()
        elif how == "tls-rst":
            reset(t)
        else:
            socket.socket(fileno=t.detach()).close()
        return
    if how != "silent":
        s.recv(4096)
    if how == "words":
        s.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    if how == "rst":
        reset(s)
        return
    if how in ("silent", "words"):
        while s.recv(4096):
            pass
    s.close()


def main(how, *files):
    """Until standard input ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    first = True
    while True:
        ready = select.select([listener, sys.stdin], [], [])[0]
        if listener not in ready:
            break
        s = listener.accept()[0]
        print("came", flush=True)
        try:
            if first:
                serve_first(s, how, files)
            else:
                s.close()
        except OSError as e:
            print(f"over: {e}", file=sys.stderr)
        first = False


main(*sys.argv[1:])
