# SPDX-License-Identifier: BSD-2-Clause
"""Made by tools/reference/python.py of err_codes.h, err.h, ctx.h, wr.h, session.h, secure.h, version.h: make python."""
from __future__ import annotations

import ctypes as c
from typing import Any

E_INVAL = -1
E_STATE = -2
E_TOO_LONG = -3
E_ADDRESS = -4
E_ACCESS = -5
E_UNSUPPORTED = -6
E_FORKED = -7
E_NOMEM = -20
E_LIMIT = -21
E_SYSTEM = -22
E_BUSY = -23
E_AGAIN = -30
E_TIMEDOUT = -31
E_CLOSED = -40
E_RESET = -41
E_REFUSED = -42
E_REJECTED = -43
E_TERMINATED = -44
E_TRUNCATED = -60
E_PROTOCOL = -61
E_KEY = -62
E_REVISION = -63
E_CRC = -64
E_MARKER = -65
E_NO_DDP = -66
E_IRD = -67
E_RTR = -68
E_NO_TLS = -80
E_CONFIG = -81
E_KEY_OPEN = -82
E_KEY_MISMATCH = -83
E_CERT = -84
E_NO_CERT = -85
E_CERT_EXPIRED = -86
E_CERT_NOT_YET = -87
E_CERT_CA = -88
E_CERT_NAME = -89
E_CERT_USAGE = -90
E_CERT_REVOKED = -91
E_CERT_WEAK = -92
E_CRL = -93
E_NOT_LISTED = -94
E_PSK_UNKNOWN = -95
E_PSK_WRONG = -96
E_CERT_REFUSED = -97
E_TLS = -100
E_PLAIN_PEER = -101
E_TLS_OLD = -102
E_TLS_SUITE = -103
E_TLS_ALPN = -104
E_CUT_SHORT = -110
E_FORGED = -111
E_ALERT = -112
RD_MAX = 16382
RD_ULP = 16383
PD_MAX = 512
PD_MAX_ENHANCED = 508
RTR_SEND = 1
RTR_WRITE = 2
RTR_READ = 4
RTR_ALL = 7
TRANSPORT_NONE = 0
TRANSPORT_TCP = 1
TRANSPORT_SCTP = 2
TRANSPORT_SHM = 3
LOG_ERROR = 0
LOG_WARN = 1
LOG_INFO = 2
LOG_DEBUG = 3
EV_CONNECT_REQUEST = 0
EV_ESTABLISHED = 1
EV_REJECTED = 2
EV_FAILED = 3
EV_TERMINATED = 4
EV_PEER_CLOSED = 5
EV_CLOSED = 6
EV_LISTENER_FAILED = 7
EV_REQUEST_GONE = 8
EV_SRQ_LIMIT = 9
EV_PEER_CLOSING = 10
LOCAL_WRITE = 1
REMOTE_WRITE = 2
REMOTE_READ = 4
REMOTE_ATOMIC = 16
ZERO_BASED = 8
BIND = 32
FLUSHABLE = 64
PERSISTENT = 128
CHANGE_ACCESS = 1
CHANGE_MEMORY = 2
CHANGE_PD = 4
IMM_OCTETS = 8
SEND_IMM_OCTETS = 4
WR_SILENT = 1
WR_SOLICITED = 2
WR_INVALIDATE = 4
WR_FENCE = 8
WR_MORE = 16
WR_PLACED = 32
FLUSH_VISIBLE = 1
FLUSH_PERSISTENT = 2
FLUSH_REGION = 4
COPY_SGE_MAX = 16
WC_SUCCESS = 0
WC_LOCAL_ACCESS = 1
WC_LENGTH = 2
WC_REMOTE = 3
WC_FLUSHED = 4
WC_UNANSWERED = 5
OP_SEND = 0
OP_WRITE = 1
OP_READ = 2
OP_RECV = 3
OP_IMM = 4
OP_WRITE_IMM = 5
OP_FETCH_ADD = 6
OP_CMP_SWAP = 7
OP_BIND = 8
OP_LOCAL_INV = 9
OP_SEND_IMM = 10
OP_ATOMIC_WRITE = 11
OP_FLUSH = 12
MUTE_SENDS = 1
MUTE_RECVS = 2
NO_RECV_TERMINATE = 0
NO_RECV_STALL = 1
PEER_NAME = 256
PEER_NAMES = 1024
SECURE_STALE_CRL = 1
PEER_NONE = 0
PEER_X509 = 1
PEER_PSK = 2


class Triple(c.Structure):
    _fields_ = [
        ("layer", c.c_uint8),
        ("etype", c.c_uint8),
        ("code", c.c_uint8),
    ]


class Error(c.Structure):
    _fields_ = [
        ("code", c.c_int),
        ("sys_errno", c.c_int),
        ("has_triple", c.c_bool),
        ("by_peer", c.c_bool),
        ("triple", Triple),
        ("peer", c.c_char * 72),
        ("text", c.c_char * 200),
        ("reserved", c.c_uint64 * 2),
    ]


class Packet(c.Structure):
    _fields_ = [
        ("transport", c.c_int),
        ("sent", c.c_bool),
        ("local", c.c_void_p),
        ("peer", c.c_void_p),
        ("iov", c.c_void_p),
        ("niov", c.c_int),
        ("len", c.c_size_t),
        ("reserved", c.c_void_p * 4),
    ]


class CtxAttr(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("thread", c.c_bool),
        ("poll_drives", c.c_bool),
        ("max_ird", c.c_uint16),
        ("max_ord", c.c_uint16),
        ("max_regions", c.c_uint32),
        ("log", c.c_void_p),
        ("log_user", c.c_void_p),
        ("verbs_rules", c.c_bool),
        ("gather", c.c_bool),
        ("reserved", c.c_uint8 * 6),
        ("capture", c.c_void_p),
        ("capture_user", c.c_void_p),
        ("secure", c.c_void_p),
    ]


class Addr(c.Structure):
    _fields_ = [
        ("ip", c.c_uint8 * 16),
        ("scope", c.c_uint32),
        ("port", c.c_uint16),
        ("family", c.c_uint8),
        ("reserved", c.c_uint8),
    ]


class ConnInfoMpa(c.Structure):
    _fields_ = [
        ("rev", c.c_uint8),
        ("crc", c.c_bool),
        ("markers_tx", c.c_bool),
        ("markers_rx", c.c_bool),
    ]


class ConnInfoSctp(c.Structure):
    _fields_ = [
        ("backend", c.c_char * 12),
        ("stream", c.c_uint16),
        ("encap", c.c_uint16),
    ]


class ConnInfoShm(c.Structure):
    _fields_ = [
        ("pid", c.c_uint32),
        ("uid", c.c_uint32),
        ("gid", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class ConnInfo(c.Structure):
    _fields_ = [
        ("transport", c.c_int),
        ("initiator", c.c_bool),
        ("local", c.c_char * 72),
        ("peer", c.c_char * 72),
        ("enhanced", c.c_bool),
        ("ird", c.c_uint16),
        ("ord", c.c_uint16),
        ("peer_ird", c.c_uint16),
        ("peer_ord", c.c_uint16),
        ("p2p", c.c_bool),
        ("rtr", c.c_uint),
        ("peer_rtr", c.c_uint),
        ("mulpdu", c.c_uint32),
        ("mpa", ConnInfoMpa),
        ("sctp", ConnInfoSctp),
        ("shm", ConnInfoShm),
        ("local_addr", Addr),
        ("peer_addr", Addr),
        ("reserved", c.c_uint64 * 2),
    ]


class Event(c.Structure):
    _fields_ = [
        ("type", c.c_int),
        ("ep", c.c_void_p),
        ("request", c.c_void_p),
        ("listener", c.c_void_p),
        ("srq", c.c_void_p),
        ("user", c.c_void_p),
        ("info", ConnInfo),
        ("error", Error),
        ("reserved", c.c_void_p * 4),
        ("private_data_len", c.c_size_t),
        ("private_data", c.c_uint8 * 512),
    ]


class MrChange(c.Structure):
    _fields_ = [
        ("pd", c.c_void_p),
        ("addr", c.c_void_p),
        ("len", c.c_size_t),
        ("access", c.c_uint),
        ("reserved", c.c_uint32),
    ]


class WcU(c.Union):
    _fields_ = [
        ("imm", c.c_uint8 * 8),
        ("original", c.c_uint64),
    ]


class Wc(c.Structure):
    _anonymous_ = ('u',)
    _fields_ = [
        ("wr_id", c.c_uint64),
        ("ep", c.c_void_p),
        ("user", c.c_void_p),
        ("op", c.c_int),
        ("status", c.c_int),
        ("len", c.c_uint32),
        ("inv_stag", c.c_uint32),
        ("u", WcU),
        ("solicited", c.c_bool),
        ("invalidated", c.c_bool),
        ("has_imm", c.c_bool),
        ("term", Triple),
        ("reserved", c.c_uint8 * 2),
        ("time_ns", c.c_uint64),
    ]


class Sge(c.Structure):
    _fields_ = [
        ("addr", c.c_void_p),
        ("len", c.c_uint32),
        ("lkey", c.c_uint32),
    ]


class Atomic(c.Structure):
    _fields_ = [
        ("data", c.c_uint64),
        ("mask", c.c_uint64),
        ("compare", c.c_uint64),
        ("compare_mask", c.c_uint64),
    ]


class Bind(c.Structure):
    _fields_ = [
        ("window", c.c_void_p),
        ("access", c.c_uint),
        ("reserved", c.c_uint32),
    ]


class SendWr(c.Structure):
    _fields_ = [
        ("wr_id", c.c_uint64),
        ("op", c.c_int),
        ("flags", c.c_uint),
        ("sge", c.POINTER(Sge)),
        ("nsge", c.c_uint32),
        ("stag", c.c_uint32),
        ("to", c.c_uint64),
        ("imm", c.c_uint8 * 8),
        ("atomic", Atomic),
        ("bind", Bind),
    ]


class ConnParam(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("ird", c.c_uint16),
        ("ord", c.c_uint16),
        ("ulp_ird", c.c_uint16),
        ("ulp_ord", c.c_uint16),
        ("need_ord", c.c_uint16),
        ("ird_hard", c.c_bool),
        ("plain", c.c_bool),
        ("p2p", c.c_bool),
        ("rtr", c.c_uint),
        ("rtr_strict", c.c_bool),
        ("legacy_retry", c.c_bool),
        ("crc", c.c_bool),
        ("markers", c.c_bool),
        ("private_data", c.c_char_p),
        ("private_data_len", c.c_size_t),
        ("connect_ms", c.c_uint32),
        ("refused_retry_ms", c.c_uint32),
        ("setup_ms", c.c_uint32),
        ("first_fpdu_ms", c.c_uint32),
        ("close_ms", c.c_uint32),
        ("max_mulpdu", c.c_uint32),
        ("nudge_ms", c.c_uint32),
        ("reserved", c.c_uint32),
        ("local", c.c_char_p),
        ("keepalive_ms", c.c_uint32),
        ("unacked_ms", c.c_uint32),
        ("shm", c.c_bool),
        ("reserved2", c.c_uint8 * 3),
        ("address_ms", c.c_uint32),
    ]


class ListenParam(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("backlog", c.c_uint),
        ("max_half_open", c.c_uint),
        ("setup_ms", c.c_uint32),
        ("rtr", c.c_uint),
        ("rtr_mismatch_accept", c.c_bool),
        ("user", c.c_void_p),
    ]


class EpAttr(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("pd", c.c_void_p),
        ("send_cq", c.c_void_p),
        ("recv_cq", c.c_void_p),
        ("sq_depth", c.c_uint32),
        ("rq_depth", c.c_uint32),
        ("max_sge", c.c_uint32),
        ("rfc7306", c.c_bool),
        ("flush_late", c.c_bool),
        ("user", c.c_void_p),
        ("no_recv", c.c_int),
        ("srq_share", c.c_uint32),
        ("srq", c.c_void_p),
        ("send_imm", c.c_bool),
        ("flush", c.c_bool),
        ("reserved", c.c_uint8 * 6),
    ]


class PeerId(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("not_before", c.c_int64),
        ("not_after", c.c_int64),
        ("how", c.c_uint32),
        ("depth", c.c_uint32),
        ("fingerprint", c.c_uint8 * 32),
        ("name", c.c_char * 256),
        ("names", c.c_char * 1024),
        ("issuer", c.c_char * 256),
        ("serial", c.c_char * 48),
        ("version", c.c_char * 16),
        ("suite", c.c_char * 40),
        ("group", c.c_char * 24),
        ("alpn", c.c_char * 32),
    ]


class SecureAttr(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("settings", c.c_char_p),
        ("cert", c.c_char_p),
        ("key", c.c_char_p),
        ("ca", c.c_char_p),
        ("crl", c.c_char_p),
        ("psk", c.c_char_p),
        ("psk_identity", c.c_char_p),
        ("peers", c.c_char_p),
        ("hosts", c.c_char_p),
        ("peer", c.c_char_p),
        ("judge", c.c_void_p),
        ("judge_user", c.c_void_p),
        ("flags", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class SecureFinding(c.Structure):
    _fields_ = [
        ("code", c.c_int),
        ("warning", c.c_uint32),
        ("what", c.c_char_p),
        ("file", c.c_char_p),
        ("text", c.c_char_p),
        ("reserved", c.c_void_p * 2),
    ]


class SecureMake(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("names", c.POINTER(c.c_void_p)),
        ("ca_cert", c.c_char_p),
        ("ca_key", c.c_char_p),
        ("ca_key_len", c.c_size_t),
        ("not_before", c.c_int64),
        ("not_after", c.c_int64),
    ]


# name: arguments, result
FUNCTIONS: dict[str, tuple[list[Any], Any]] = {
    "ddps_strerror": ([c.c_int], c.c_char_p),
    "ddps_triple_name": ([c.POINTER(Triple)], c.c_char_p),
    "ddps_ctx_attr_init_sized": ([c.POINTER(CtxAttr), c.c_size_t], None),
    "ddps_ctx_new": ([c.POINTER(c.c_void_p), c.POINTER(CtxAttr)], c.c_int),
    "ddps_ctx_free": ([c.c_void_p], None),
    "ddps_ctx_settle": ([c.c_void_p, c.c_int], c.c_int),
    "ddps_ctx_flush": ([c.c_void_p, c.c_int], c.c_int),
    "ddps_ctx_fd": ([c.c_void_p], c.c_int),
    "ddps_progress": ([c.c_void_p, c.c_int], c.c_int),
    "ddps_event_fd": ([c.c_void_p], c.c_int),
    "ddps_event_get": ([c.c_void_p, c.POINTER(Event)], c.c_int),
    "ddps_event_wait": ([c.c_void_p, c.POINTER(Event), c.c_int], c.c_int),
    "ddps_event_name": ([c.c_int], c.c_char_p),
    "ddps_pd_new": ([c.c_void_p, c.POINTER(c.c_void_p)], c.c_int),
    "ddps_pd_free": ([c.c_void_p], c.c_int),
    "ddps_mr_reg": ([c.c_void_p, c.c_void_p, c.c_size_t, c.c_uint, c.c_void_p, c.POINTER(c.c_void_p)], c.c_int),
    "ddps_mr_place": ([c.c_void_p, c.c_uint64], c.c_int),
    "ddps_mr_change": ([c.c_void_p, c.c_uint, c.POINTER(MrChange)], c.c_int),
    "ddps_mw_new": ([c.c_void_p, c.c_bool, c.POINTER(c.c_void_p)], c.c_int),
    "ddps_mr_dereg": ([c.c_void_p], c.c_int),
    "ddps_mr_stag": ([c.c_void_p], c.c_uint32),
    "ddps_mr_to": ([c.c_void_p], c.c_uint64),
    "ddps_cq_new": ([c.c_void_p, c.c_uint32, c.POINTER(c.c_void_p)], c.c_int),
    "ddps_cq_free": ([c.c_void_p], c.c_int),
    "ddps_cq_resize": ([c.c_void_p, c.c_uint32], c.c_int),
    "ddps_cq_stamp": ([c.c_void_p], c.c_int),
    "ddps_cq_overflowed": ([c.c_void_p], c.c_int),
    "ddps_cq_fd": ([c.c_void_p], c.c_int),
    "ddps_cq_arm": ([c.c_void_p, c.c_bool], c.c_int),
    "ddps_cq_arm_next": ([c.c_void_p, c.c_bool], c.c_int),
    "ddps_cq_on_notify": ([c.c_void_p, c.c_void_p, c.c_void_p], c.c_int),
    "ddps_cq_poll": ([c.c_void_p, c.POINTER(Wc), c.c_int], c.c_int),
    "ddps_cq_wait": ([c.c_void_p, c.POINTER(Wc), c.c_int, c.c_int], c.c_int),
    "ddps_post_send": ([c.c_void_p, c.POINTER(SendWr)], c.c_int),
    "ddps_post_recv": ([c.c_void_p, c.c_uint64, c.POINTER(Sge), c.c_uint32], c.c_int),
    "ddps_sge_gather": ([c.c_void_p, c.POINTER(Sge), c.c_uint32, c.c_void_p, c.c_void_p], c.c_int),
    "ddps_sge_scatter": ([c.c_void_p, c.POINTER(Sge), c.c_uint32, c.c_char_p, c.c_size_t], c.c_int),
    "ddps_srq_new": ([c.c_void_p, c.c_uint32, c.c_uint32, c.c_void_p, c.POINTER(c.c_void_p)], c.c_int),
    "ddps_srq_free": ([c.c_void_p], c.c_int),
    "ddps_post_srq_recv": ([c.c_void_p, c.c_uint64, c.POINTER(Sge), c.c_uint32], c.c_int),
    "ddps_srq_arm": ([c.c_void_p, c.c_uint32], c.c_int),
    "ddps_srq_posted": ([c.c_void_p], c.c_int),
    "ddps_take_srq_recv": ([c.c_void_p, c.c_void_p, c.POINTER(Sge), c.c_void_p], c.c_int),
    "ddps_op_name": ([c.c_int], c.c_char_p),
    "ddps_wc_status_name": ([c.c_int], c.c_char_p),
    "ddps_conn_param_init_sized": ([c.POINTER(ConnParam), c.c_size_t], None),
    "ddps_uri_check": ([c.c_char_p, c.c_void_p, c.c_size_t], c.c_int),
    "ddps_listen_param_init_sized": ([c.POINTER(ListenParam), c.c_size_t], None),
    "ddps_listen": ([c.c_void_p, c.c_char_p, c.POINTER(ListenParam), c.POINTER(c.c_void_p)], c.c_int),
    "ddps_listener_uri": ([c.c_void_p, c.c_void_p, c.c_size_t], c.c_int),
    "ddps_listener_free": ([c.c_void_p], None),
    "ddps_ep_attr_init_sized": ([c.POINTER(EpAttr), c.c_size_t], None),
    "ddps_ep_new": ([c.c_void_p, c.POINTER(EpAttr), c.POINTER(c.c_void_p)], c.c_int),
    "ddps_ep_free": ([c.c_void_p], None),
    "ddps_ep_allow": ([c.c_void_p, c.c_uint], c.c_int),
    "ddps_ep_reads_max": ([c.c_void_p, c.c_uint16], c.c_int),
    "ddps_ep_answer_within": ([c.c_void_p, c.c_uint32], c.c_int),
    "ddps_ep_mute": ([c.c_void_p, c.c_uint], c.c_int),
    "ddps_connect": ([c.c_void_p, c.c_char_p, c.POINTER(ConnParam)], c.c_int),
    "ddps_accept": ([c.c_void_p, c.c_void_p, c.POINTER(ConnParam)], c.c_int),
    "ddps_reject": ([c.c_void_p, c.c_char_p, c.c_size_t], c.c_int),
    "ddps_disconnect": ([c.c_void_p], c.c_int),
    "ddps_abort": ([c.c_void_p], c.c_int),
    "ddps_ep_info": ([c.c_void_p, c.POINTER(ConnInfo)], c.c_int),
    "ddps_ep_number": ([c.c_void_p], c.c_uint64),
    "ddps_ep_unfetched": ([c.c_void_p], c.c_int),
    "ddps_request_peer_id": ([c.c_void_p, c.POINTER(PeerId)], c.c_int),
    "ddps_ep_peer_id": ([c.c_void_p, c.POINTER(PeerId)], c.c_int),
    "ddps_secure_attr_init_sized": ([c.POINTER(SecureAttr), c.c_size_t], None),
    "ddps_secure_open": ([c.POINTER(c.c_void_p), c.POINTER(SecureAttr), c.POINTER(Error)], c.c_int),
    "ddps_secure_reload": ([c.c_void_p, c.POINTER(Error)], c.c_int),
    "ddps_secure_close": ([c.c_void_p], None),
    "ddps_secure_check": ([c.POINTER(SecureAttr), c.c_int64, c.c_void_p, c.c_void_p], c.c_int),
    "ddps_secure_make": ([c.POINTER(SecureMake), c.c_void_p, c.c_size_t, c.c_void_p, c.c_size_t, c.POINTER(Error)], c.c_int),
    "ddps_version": ([], c.c_char_p),
    "ddps_has_backend": ([c.c_char_p], c.c_int),
}
