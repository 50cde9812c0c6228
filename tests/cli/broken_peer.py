# SPDX-License-Identifier: BSD-2-Clause
"""An iWARP responder that is broken in one way: prints its port, and serves until it is killed.

usage: broken_peer.py KIND
over TCP:
  echo     sends back what it gets: no iWARP at all
  close    closes every connection at the set-up
  silent   accepts, and says nothing
  dead     sets a session up, and says nothing in it
  dies     sets a session up, and is gone at the first message
  half     sets a session up, and answers with half an FPDU
  longpd   announces more private data in its MPA Reply than it has
  shortpd  announces less private data in its MPA Reply than it has
  crc      computes another checksum than MPA's, for what it sends
  mute     answers Reads, and ends the session at a wrong checksum without saying why
  hostile  answers with markup and control characters
  partial  stops in the middle of its MPA Reply
  reserved sets reserved bits in its MPA Reply
  rubbish  sets a session up, and answers in it with what is no FPDU
  wrongrev answers the set-up with an MPA revision that does not exist
over SCTP in UDP, whose port it prints:
  sctp-silent  says nothing
  sctp-echo    sends back the packets that it gets
  sctp-abort   ends every association at its set-up
  sctp-half    answers INIT, and nothing else
  sctp-plain   sets an association up, and knows nothing of DDP
  sctp-sum     computes another checksum than SCTP's
"""

import socket
import struct
import sys
import threading
import zlib

RUBBISH = bytes(range(0x7A, 0xBA))
MARKUP = b"<script>alert(1)</script>&\"'\x1b[31m\x00\xff\xef\xbf\xbf]]>"


def read(conn, length):
    data = b""
    while len(data) < length:
        more = conn.recv(length - len(data))
        if not more:
            raise OSError("closed")
        data += more
    return data


def drain(conn):
    while conn.recv(4096):
        pass


def set_up(conn, rev=None, bits=0, announced=0, more=b""):
    frame = read(conn, 20)
    private = read(conn, struct.unpack(">H", frame[18:])[0])
    enhanced = frame[17] == 2 and len(private) >= 4
    flags = 0x40 | (0x10 if enhanced else 0) | bits
    answer = private[:4] if enhanced else b""
    rev = rev or frame[17]
    conn.sendall(b"MPA ID Rep Frame" + bytes([flags, rev]) + struct.pack(">H", len(answer) + announced) + answer + more)


def make_fpdu(segment, checksum):
    fpdu = struct.pack(">H", len(segment)) + segment
    fpdu += bytes(-len(fpdu) % 4)
    return fpdu + struct.pack("<I", checksum(fpdu))


def answer_reads(conn, checksum, looks=False):
    """Until a checksum is wrong, if it looks at them."""
    while True:
        head = read(conn, 2)
        length = struct.unpack(">H", head)[0]
        body = read(conn, length + (-(length + 2) % 4) + 4)
        segment = body[:length]
        if looks and struct.unpack("<I", body[-4:])[0] != checksum(head + body[:-4]):
            return
        if segment[1] & 15 == 1 and length >= 46:
            sink = segment[18:30]
            conn.sendall(make_fpdu(bytes([0xC1, 0x42]) + sink, checksum))


def serve(conn, kind):
    try:
        if kind == "echo":
            while data := conn.recv(4096):
                conn.sendall(data)
        elif kind == "silent":
            drain(conn)
        elif kind == "dead":
            set_up(conn)
            drain(conn)
        elif kind == "dies":
            set_up(conn)
            read(conn, 2)
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif kind == "half":
            set_up(conn)
            read(conn, 2)
            conn.sendall(bytes([0, 100, 0xC1, 0x42]) + bytes(20))
            drain(conn)
        elif kind == "longpd":
            set_up(conn, announced=8)
            drain(conn)
        elif kind == "shortpd":
            set_up(conn, more=b"surprise")
            drain(conn)
        elif kind == "crc":
            set_up(conn)
            answer_reads(conn, zlib.crc32)
        elif kind == "mute":
            set_up(conn)
            answer_reads(conn, crc32c, looks=True)
        elif kind == "hostile":
            conn.sendall(MARKUP)
            drain(conn)
        elif kind == "partial":
            read(conn, 20)
            conn.sendall(b"MPA ID R")
            drain(conn)
        elif kind == "reserved":
            set_up(conn, bits=0x01)
            drain(conn)
        elif kind == "rubbish":
            set_up(conn)
            read(conn, 2)
            conn.sendall(RUBBISH)
            drain(conn)
        elif kind == "wrongrev":
            set_up(conn, rev=9)
            drain(conn)
    except OSError:
        pass
    conn.close()


def crc32c(data):
    crc = 0xFFFFFFFF
    for octet in data:
        crc ^= octet
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def sctp_packet(to, tag, chunk, flags, value, checksum):
    """One chunk, back to where the ports @to came from."""
    body = struct.pack(">BBH", chunk, flags, 4 + len(value)) + value + bytes(-len(value) % 4)
    head = to[2:4] + to[0:2] + struct.pack(">I", tag)
    return head + struct.pack("<I", checksum(head + bytes(4) + body)) + body


def answer_packet(packet, kind, tags):
    """What a peer of this kind sends for a packet, or None."""
    chunk = packet[12] if len(packet) >= 16 else 0
    checksum = zlib.crc32 if kind == "sctp-sum" else crc32c
    if kind == "sctp-silent":
        return None
    if kind == "sctp-echo":
        return packet
    if chunk == 1:
        tags[packet[:4]] = struct.unpack(">I", packet[16:20])[0]
        if kind == "sctp-abort":
            return sctp_packet(packet, tags[packet[:4]], 6, 0, b"", checksum)
        init = struct.pack(">IIHHI", 0x01020304, 65536, 16, 16, 1) + struct.pack(">HH", 7, 12) + b"a cookie"
        return sctp_packet(packet, tags[packet[:4]], 2, 0, init, checksum)
    if chunk == 10 and kind == "sctp-plain":
        return sctp_packet(packet, tags.get(packet[:4], 0), 11, 0, b"", checksum)
    return None


def serve_packets(kind):
    conn = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    conn.bind(("127.0.0.1", 0))
    print(conn.getsockname()[1], flush=True)
    tags = {}
    while True:
        packet, peer = conn.recvfrom(65536)
        answer = answer_packet(packet, kind, tags)
        if answer:
            conn.sendto(answer, peer)


def main():
    if sys.argv[1].startswith("sctp-"):
        serve_packets(sys.argv[1])
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)
    while True:
        conn, _ = listener.accept()
        threading.Thread(target=serve, args=(conn, sys.argv[1]), daemon=True).start()


main()
