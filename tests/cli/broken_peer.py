# SPDX-License-Identifier: BSD-2-Clause
"""An iWARP responder that is broken in one way: prints its port, and serves until it is killed.

usage: broken_peer.py KIND
over TCP:
  echo     sends back what it gets: no iWARP at all
  echo1    the same, each octet for itself
  chargen  says much, and reads nothing
  ssh      says which version of SSH it has
  http     answers as a web server does
  tls      answers as a TLS server does whom nobody greets in TLS
  close    closes every connection at the set-up
  silent   accepts, and says nothing
  dead     sets a session up, and says nothing in it
  dies     sets a session up, and is gone at the first message
  leaves   closes behind its MPA Reply
  crashes  sets three sessions up, and its program ends in the last
  once     answers one Read of a session, and nothing else
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
  sctp-text    answers each packet with a line of text
  sctp-deaf    knows DDP, acknowledges what it gets, and answers nothing
  sctp-dead    sets a session up, and says nothing in it
  sctp-mirror  knows DDP, and sends back the messages that it gets
  sctp-leaves  ends the association behind its Accept
  sctp-rejects rejects every session
"""

import os
import socket
import struct
import sys
import threading
import zlib

seen, counted = [], threading.Lock()
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


def answer_reads(conn, checksum, looks=False, most=1 << 30):
    """Until a checksum is wrong, if it looks at them, or as many were answered."""
    while most:
        head = read(conn, 2)
        length = struct.unpack(">H", head)[0]
        body = read(conn, length + (-(length + 2) % 4) + 4)
        segment = body[:length]
        if looks and struct.unpack("<I", body[-4:])[0] != checksum(head + body[:-4]):
            return
        if segment[1] & 15 == 1 and length >= 46:
            sink = segment[18:30]
            conn.sendall(make_fpdu(bytes([0xC1, 0x42]) + sink, checksum))
            most -= 1


def serve(conn, kind):
    try:
        if kind == "echo":
            while data := conn.recv(4096):
                conn.sendall(data)
        elif kind == "echo1":
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := conn.recv(1):
                conn.sendall(data)
        elif kind == "chargen":
            while True:
                conn.sendall(bytes(range(0x20, 0x68)) + b"\r\n")
        elif kind == "ssh":
            conn.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")
            conn.recv(4096)
            conn.sendall(b"Invalid SSH identification string.\r\n")
        elif kind == "http":
            conn.recv(4096)
            conn.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        elif kind == "tls":
            conn.recv(4096)
            conn.sendall(bytes([21, 3, 3, 0, 2, 2, 10]))
        elif kind == "silent":
            drain(conn)
        elif kind == "dead":
            set_up(conn)
            drain(conn)
        elif kind == "dies":
            set_up(conn)
            read(conn, 2)
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif kind == "leaves":
            set_up(conn)
        elif kind == "crashes":
            set_up(conn)
            read(conn, 2)
            with counted:
                seen.append(conn)
                if len(seen) == 3:
                    os._exit(1)
        elif kind == "once":
            set_up(conn)
            answer_reads(conn, crc32c, most=1)
            drain(conn)
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


KNOW_DDP = ("sctp-deaf", "sctp-dead", "sctp-mirror", "sctp-leaves", "sctp-rejects")
CONTROL = 17  # the PPID of session control


def make_data(tsn, stream, ssn, ppid, message):
    return struct.pack(">IHHI", tsn, stream, ssn, ppid) + message


def answer_message(kind, stream, ppid, message):
    """What such a peer says to a message: chunks of type, flags, value without TSNs; and whether it ends then."""
    if kind == "sctp-mirror":
        return [(stream, ppid, message)], False
    if kind == "sctp-deaf" or ppid != CONTROL:
        return [], False
    code = struct.unpack(">H", message[2:4])[0]
    if code not in (1, 5):
        return [], False
    code += 2 if kind == "sctp-rejects" else 1
    return [(stream, ppid, struct.pack(">HH", 0, code) + (message[4:8] if code > 4 else b""))], kind == "sctp-leaves"


class Association:
    def __init__(self, tag):
        self.tag, self.tsn = tag, 1

    def answers(self, packet, kind):
        """To all chunks of a packet."""
        at, out = 12, []
        while at + 4 <= len(packet):
            chunk, flags, length = struct.unpack(">BBH", packet[at : at + 4])
            value = packet[at + 4 : at + length]
            at += max(length, 4) + -length % 4
            if chunk == 10:
                out.append((11, 0, b""))
            elif chunk == 7:
                out.append((8, 0, b""))
            elif chunk == 0:
                tsn, stream, _, ppid = struct.unpack(">IHHI", value[:12])
                out.append((3, 0, struct.pack(">IIHH", tsn, 65536, 0, 0)))
                messages, ends = answer_message(kind, stream, ppid, value[12:])
                for stream, ppid, message in messages:
                    out.append((0, 7, make_data(self.tsn, stream, 0, ppid, message)))
                    self.tsn += 1
                if ends:
                    out.append((6, 0, b""))
        return [sctp_packet(packet, self.tag, chunk, flags, value, crc32c) for chunk, flags, value in out]


def answer_packet(packet, kind, associations):
    """The packets that a peer of this kind sends for one."""
    chunk = packet[12] if len(packet) >= 16 else 0
    checksum = zlib.crc32 if kind == "sctp-sum" else crc32c
    if kind == "sctp-silent":
        return []
    if kind == "sctp-echo":
        return [packet]
    if kind == "sctp-text":
        return [b"500 this is no command of mine\r\n"]
    if chunk == 1:
        made = associations[packet[:4]] = Association(struct.unpack(">I", packet[16:20])[0])
        if kind == "sctp-abort":
            return [sctp_packet(packet, made.tag, 6, 0, b"", checksum)]
        init = struct.pack(">IIHHI", 0x01020304, 65536, 16, 16, 1) + struct.pack(">HH", 7, 12) + b"a cookie"
        if kind in KNOW_DDP:
            init += struct.pack(">HHI", 0xC006, 8, 1)
        return [sctp_packet(packet, made.tag, 2, 0, init, checksum)]
    if packet[:4] in associations and (chunk == 10 and kind == "sctp-plain" or kind in KNOW_DDP):
        return associations[packet[:4]].answers(packet, kind)
    return []


def serve_packets(kind):
    conn = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    conn.bind(("127.0.0.1", 0))
    print(conn.getsockname()[1], flush=True)
    associations = {}
    while True:
        packet, peer = conn.recvfrom(65536)
        for answer in answer_packet(packet, kind, associations):
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
