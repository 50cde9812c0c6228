# SPDX-License-Identifier: BSD-2-Clause
"""The library from a language that sees no inline functions.  usage: ctypes_user.py LIBRARY"""
import ctypes
import sys

lib = ctypes.CDLL(sys.argv[1])
lib.ddps_strerror.restype = lib.ddps_version.restype = ctypes.c_char_p


class ListenParam(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("backlog", ctypes.c_uint),
        ("max_half_open", ctypes.c_uint),
        ("setup_ms", ctypes.c_uint32),
        ("rtr", ctypes.c_uint),
        ("rtr_mismatch_accept", ctypes.c_bool),
        ("user", ctypes.c_void_p),
    ]


def must(result, what):
    if result < 0:
        sys.exit(f"{what}: {lib.ddps_strerror(result).decode()}")
    return result


param = ListenParam()
size = ctypes.c_size_t(ctypes.sizeof(param))
lib.ddps_listen_param_init_sized(ctypes.byref(param), size)
assert param.struct_size == size.value and param.backlog == 1024, "defaults"

ctx, listener = ctypes.c_void_p(), ctypes.c_void_p()
must(lib.ddps_ctx_new(ctypes.byref(ctx), None), "context")
must(
    lib.ddps_listen(ctx, b"tcp://127.0.0.1:0", ctypes.byref(param), ctypes.byref(listener)),
    "listen",
)
uri = ctypes.create_string_buffer(128)
length = must(lib.ddps_listener_uri(listener, uri, ctypes.c_size_t(len(uri))), "uri")
assert length == len(uri.value) and uri.value.startswith(b"tcp://127.0.0.1:"), uri.value
lib.ddps_listener_free(listener)
lib.ddps_ctx_free(ctx)
print("ctypes:", lib.ddps_version().decode())
