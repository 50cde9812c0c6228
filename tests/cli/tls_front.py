#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""TLS in front of a plain listener, with a fault: a FIN is taken for an end in order.

tls_front.py CERT KEY CA PORT: prints its own port; ends with its standard input.
"""
import select
import socket
import ssl
import sys


def carry(t, s):
    """Octets both ways, until one of them ends; then the other is ended in order."""
    while True:
        ready = [t] if t.pending() else select.select([t, s], [], [])[0]
        for at, to in ((t, s), (s, t)):
            if at not in ready:
                continue
            octets = at.recv(65536)  # nothing for close_notify, and for a FIN without it
            if octets:
                to.sendall(octets)
            elif at is s:
                t.unwrap().close()
                return
            else:
                s.shutdown(socket.SHUT_WR)
                while s.recv(65536):
                    pass
                try:
                    t.unwrap()
                except (ssl.SSLError, OSError):
                    pass  # close_notify went, and none comes
                t.close()
                return


def main(cert, key, authority, port):
    """One connection after the other."""
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.minimum_version = ssl.TLSVersion.TLSv1_3
    c.load_cert_chain(cert, key)
    c.load_verify_locations(authority)
    c.verify_mode = ssl.CERT_REQUIRED
    c.num_tickets = 0
    c.options |= 0x80  # SSL_OP_IGNORE_UNEXPECTED_EOF: the fault
    c.set_alpn_protocols(["x-iwarp-mpa"])
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while listener in select.select([listener, sys.stdin], [], [])[0]:
        t = c.wrap_socket(listener.accept()[0], server_side=True, suppress_ragged_eofs=True)
        with socket.create_connection(("127.0.0.1", int(port))) as s:
            carry(t, s)


main(*sys.argv[1:])
