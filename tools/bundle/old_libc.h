/* SPDX-License-Identifier: BSD-2-Clause */
/* What Debian 11's C library does not declare; the bundle is compiled with this in front of each source. */
#ifndef DDPSESS_BUNDLE_OLD_LIBC_H
#define DDPSESS_BUNDLE_OLD_LIBC_H

#define SYS_openat2 437 /* on every processor */

#ifndef __ASSEMBLER__
const char *strerrorname_np(int err);
#endif

#endif
