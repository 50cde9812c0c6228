# SPDX-License-Identifier: BSD-2-Clause
"""python -m ddpsess ARGUMENT...: the sessctl of this package, or the one in PATH."""
import os
import shutil
import sys


def main() -> None:
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundle", "bin", "sessctl")
    program = own if os.path.exists(own) else shutil.which("sessctl")
    if program is None:
        sys.exit("python -m ddpsess: only the wheel has a sessctl inside, and none is in PATH\n"
                 "  try: install the wheel (make wheel), or sessctl")
    os.execv(program, ["sessctl", *sys.argv[1:]])


if __name__ == "__main__":
    main()
