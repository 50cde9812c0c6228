# SPDX-License-Identifier: BSD-2-Clause
"""libddpsess by ctypes: its structures, functions and errors as the headers declare them."""
from __future__ import annotations

import ctypes as c
import os
from typing import Any

LIBRARY = "libddpsess.so.1"

lib = c.CDLL(os.environ.get("DDPSESS_LIBRARY", LIBRARY), use_errno=True)

PD_MAX = 512
E_INVAL, E_ADDRESS, E_NOMEM, E_SYSTEM, E_TIMEDOUT = -1, -4, -20, -22, -31
E_CLOSED, E_RESET, E_REFUSED, E_REJECTED, E_TERMINATED = range(-40, -45, -1)

# enum ddps_event_type
(CONNECT_REQUEST, ESTABLISHED, REJECTED, FAILED, TERMINATED, PEER_CLOSED, CLOSED, LISTENER_FAILED,
 REQUEST_GONE, SRQ_LIMIT, PEER_CLOSING) = range(11)

# enum ddps_op, enum ddps_wc_status
OP_SEND, OP_WRITE, OP_READ, OP_RECV = range(4)
WC_SUCCESS, WC_LOCAL_ACCESS, WC_LENGTH, WC_REMOTE, WC_FLUSHED = range(5)

LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ = 1, 2, 4
WR_SOLICITED, WR_INVALIDATE, WR_FENCE, WR_PLACED = 2, 4, 8, 0x20
NO_RECV_TERMINATE, NO_RECV_STALL = range(2)


class Triple(c.Structure):
    _fields_ = [("layer", c.c_uint8), ("etype", c.c_uint8), ("code", c.c_uint8)]


class CError(c.Structure):
    _fields_ = [("code", c.c_int), ("sys_errno", c.c_int), ("has_triple", c.c_bool),
                ("by_peer", c.c_bool), ("triple", Triple), ("peer", c.c_char * 72),
                ("text", c.c_char * 200), ("reserved", c.c_uint64 * 2)]


class Mpa(c.Structure):
    _fields_ = [("rev", c.c_uint8), ("crc", c.c_bool), ("markers_tx", c.c_bool),
                ("markers_rx", c.c_bool)]


class Sctp(c.Structure):
    _fields_ = [("backend", c.c_char * 12), ("stream", c.c_uint16), ("encap", c.c_uint16)]


class ConnInfo(c.Structure):
    _fields_ = [("transport", c.c_int), ("initiator", c.c_bool), ("local", c.c_char * 72),
                ("peer", c.c_char * 72), ("enhanced", c.c_bool), ("ird", c.c_uint16),
                ("ord", c.c_uint16), ("peer_ird", c.c_uint16), ("peer_ord", c.c_uint16),
                ("p2p", c.c_bool), ("rtr", c.c_uint), ("peer_rtr", c.c_uint),
                ("mulpdu", c.c_uint32), ("mpa", Mpa), ("sctp", Sctp), ("reserved", c.c_uint64 * 4)]


class Event(c.Structure):
    _fields_ = [("type", c.c_int), ("ep", c.c_void_p), ("request", c.c_void_p),
                ("listener", c.c_void_p), ("srq", c.c_void_p), ("user", c.c_void_p),
                ("info", ConnInfo), ("error", CError), ("reserved", c.c_void_p * 4),
                ("private_data_len", c.c_size_t), ("private_data", c.c_uint8 * PD_MAX)]


class ConnParam(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("ird", c.c_uint16), ("ord", c.c_uint16),
                ("ulp_ird", c.c_uint16), ("ulp_ord", c.c_uint16), ("need_ord", c.c_uint16),
                ("ird_hard", c.c_bool), ("plain", c.c_bool), ("p2p", c.c_bool), ("rtr", c.c_uint),
                ("rtr_strict", c.c_bool), ("legacy_retry", c.c_bool), ("crc", c.c_bool),
                ("markers", c.c_bool), ("private_data", c.c_char_p),
                ("private_data_len", c.c_size_t), ("connect_ms", c.c_uint32),
                ("refused_retry_ms", c.c_uint32), ("setup_ms", c.c_uint32),
                ("first_fpdu_ms", c.c_uint32), ("close_ms", c.c_uint32),
                ("max_mulpdu", c.c_uint32), ("nudge_ms", c.c_uint32), ("reserved", c.c_uint32),
                ("local", c.c_char_p), ("keepalive_ms", c.c_uint32), ("unacked_ms", c.c_uint32)]


class EpAttr(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("pd", c.c_void_p), ("send_cq", c.c_void_p),
                ("recv_cq", c.c_void_p), ("sq_depth", c.c_uint32), ("rq_depth", c.c_uint32),
                ("max_sge", c.c_uint32), ("rfc7306", c.c_bool), ("flush_late", c.c_bool),
                ("user", c.c_void_p), ("no_recv", c.c_int), ("srq_share", c.c_uint32),
                ("srq", c.c_void_p), ("send_imm", c.c_bool), ("reserved", c.c_uint8 * 7)]


class Sge(c.Structure):
    _fields_ = [("addr", c.c_void_p), ("len", c.c_uint32), ("lkey", c.c_uint32)]


class Atomic(c.Structure):
    _fields_ = [("data", c.c_uint64), ("mask", c.c_uint64), ("compare", c.c_uint64),
                ("compare_mask", c.c_uint64)]


class Bind(c.Structure):
    _fields_ = [("window", c.c_void_p), ("access", c.c_uint), ("reserved", c.c_uint32)]


class SendWr(c.Structure):
    _fields_ = [("wr_id", c.c_uint64), ("op", c.c_int), ("flags", c.c_uint),
                ("sge", c.POINTER(Sge)), ("nsge", c.c_uint32), ("stag", c.c_uint32),
                ("to", c.c_uint64), ("imm", c.c_uint8 * 8), ("atomic", Atomic), ("bind", Bind)]


class Wc(c.Structure):
    _fields_ = [("wr_id", c.c_uint64), ("ep", c.c_void_p), ("user", c.c_void_p), ("op", c.c_int),
                ("status", c.c_int), ("len", c.c_uint32), ("inv_stag", c.c_uint32),
                ("imm", c.c_uint8 * 8), ("solicited", c.c_bool), ("invalidated", c.c_bool),
                ("has_imm", c.c_bool), ("term", Triple), ("reserved", c.c_uint8 * 2),
                ("time_ns", c.c_uint64)]


def _declare() -> None:
    p, out, size, u32, i = c.c_void_p, c.POINTER(c.c_void_p), c.c_size_t, c.c_uint32, c.c_int
    ints = {
        "ddps_ctx_new": [out, p], "ddps_ctx_fd": [p], "ddps_event_fd": [p],
        "ddps_progress": [p, i], "ddps_ctx_settle": [p, i], "ddps_event_get": [p, c.POINTER(Event)],
        "ddps_listen": [p, c.c_char_p, p, out], "ddps_listener_uri": [p, p, size],
        "ddps_pd_new": [p, out], "ddps_cq_new": [p, u32, out],
        "ddps_cq_poll": [p, c.POINTER(Wc), i], "ddps_ep_new": [p, c.POINTER(EpAttr), out],
        "ddps_uri_check": [c.c_char_p, p, size],
        "ddps_connect": [p, c.c_char_p, c.POINTER(ConnParam)],
        "ddps_accept": [p, p, c.POINTER(ConnParam)], "ddps_reject": [p, c.c_char_p, size],
        "ddps_disconnect": [p], "ddps_abort": [p],
        "ddps_mr_reg": [p, p, size, c.c_uint, p, out], "ddps_mr_dereg": [p],
        "ddps_post_send": [p, c.POINTER(SendWr)],
        "ddps_post_recv": [p, c.c_uint64, c.POINTER(Sge), u32],
    }
    for name, args in ints.items():
        f = getattr(lib, name)
        f.argtypes, f.restype = args, c.c_int
    others: dict[str, tuple[list[Any], Any]] = {
        "ddps_ctx_free": ([p], None), "ddps_listener_free": ([p], None), "ddps_ep_free": ([p], None),
        "ddps_conn_param_init_sized": ([c.POINTER(ConnParam), size], None),
        "ddps_ep_attr_init_sized": ([c.POINTER(EpAttr), size], None),
        "ddps_mr_stag": ([p], u32), "ddps_mr_to": ([p], c.c_uint64),
        "ddps_strerror": ([i], c.c_char_p), "ddps_version": ([], c.c_char_p),
        "ddps_wc_status_name": ([i], c.c_char_p),
    }
    for name, (args, result) in others.items():
        f = getattr(lib, name)
        f.argtypes, f.restype = args, result


_declare()


def strerror(code: int) -> str:
    return bytes(lib.ddps_strerror(code)).decode()
