#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# stdin: a manual page for scdoc; stdout: for man.  The first line says that tables are tbl's, as groff 1.23
# wants it, which scdoc leaves out.
set -eu
page=$(scdoc)
printf "'\\\\\" t\n%s\n" "$page"
