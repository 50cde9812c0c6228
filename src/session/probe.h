/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_PROBE_H
#define DDPS_PROBE_H
/*
 * Static probes for bpftrace, SystemTap and perf (docs/watching.md).  Each is one no-op instruction
 * until somebody attaches to it, and nothing where <sys/sdt.h> is not installed.
 */
#if defined(__has_include)
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define DDPS_PROBE(name, n, ...) DTRACE_PROBE##n(ddpsess, name, __VA_ARGS__)
#endif
#endif

#ifndef DDPS_PROBE
static inline int ddps_probe_none(int first, ...)
{
	return first;
}
#define DDPS_PROBE(name, n, ...) ((void)sizeof ddps_probe_none(0, __VA_ARGS__))
#endif

#endif
