# SPDX-License-Identifier: BSD-2-Clause
"""libddpsess by ctypes; _headers.py has what its headers declare."""
from __future__ import annotations

import ctypes as c
import os

from ._headers import FUNCTIONS

LIBRARY = "libddpsess.so.1"
OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundle", "lib", LIBRARY)  # of the wheel

lib = c.CDLL(os.environ.get("DDPSESS_LIBRARY") or (OWN if os.path.exists(OWN) else LIBRARY), use_errno=True)

for _name, (_arguments, _result) in FUNCTIONS.items():
    _f = getattr(lib, _name, None)  # an older library does not have the newest
    if _f is not None:
        _f.argtypes, _f.restype = _arguments, _result


def strerror(code: int) -> str:
    return bytes(lib.ddps_strerror(code)).decode()
