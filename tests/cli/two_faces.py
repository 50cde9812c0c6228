#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A TLS listener with another certificate for each connection: it closes the first ones in order after their MPA
Request and answers the last one.  two_faces.py CA CERT,KEY... : its port in the first line, then an octet a name."""
import socket
import ssl
import sys

REPLY = b"MPA ID Rep Frame\0\1\0\0"


def face(pair, ca):
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ctx.minimum_version = ssl.TLSVersion.TLSv1_3
    ctx.num_tickets = 0
    ctx.load_cert_chain(*pair.split(","))
    ctx.load_verify_locations(ca)
    ctx.verify_mode = ssl.CERT_REQUIRED
    return ctx


faces = [face(pair, sys.argv[1]) for pair in sys.argv[2:]]
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    for n, ctx in enumerate(faces):
        peer, _ = listener.accept()
        peer.settimeout(30)
        with ctx.wrap_socket(peer, server_side=True, suppress_ragged_eofs=False) as tls:
            tls.recv(4096)
            try:
                if n + 1 == len(faces):
                    tls.sendall(REPLY)
                    tls.recv(4096)
                tls.unwrap()
            except OSError:
                pass
