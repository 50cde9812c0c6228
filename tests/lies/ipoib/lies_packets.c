/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that are no right ones, whatever is in them, and system calls that fail. */
#include "lies/ipoib/world.h"
#include <errno.h>
#include <string.h>

/* It comes for a queue pair of ours, out of its turn. */
static void send_odd_packet(struct said *s, unsigned op, int psn, size_t len)
{
	struct said other = *s;

	other.p.data = other.m;
	as_message(&other);
	memset(other.m, 0, CI_ENCAP);
	other.p.op = (uint8_t)op;
	other.p.psn = (other.p.psn + (unsigned)psn) & 0xffffff;
	other.p.len = len;
	ahead(&other);
}

#define PACKET_LIES(X)                                                                             \
	X(FAILS, 0, "whole-icrc", K_ECHO, "a wrong ICRC of", ALSO(s, other.p.spoil = 0x10000))     \
	X(PASSES, 0, "whole-icrc", K_ECHO, "",                                                     \
	  ALSO(s, (other.p.spoil = 0x10000, other.from = STRANGER)))                               \
	X(FAILS, 0, "whole-packets", K_ECHO, "reserved bits of a header", s->at = 1, s->flips = 1) \
	X(FAILS, 0, "whole-packets", K_ECHO, "reserved bits of a header", s->p.reserved = 1)       \
	X(PASSES, 0, "whole-packets", K_ECHO, "", s->p.reserved = 0x80)                            \
	X(FAILS, 0, "whole-packets", K_ECHO, "reserved bits of a header", s->at = 8, s->flips = 1) \
	X(FAILS, 0, "whole-packets", K_ECHO, "a pad octet is 05",                                  \
	  ALSO(s, (other.p.len -= 1, other.at = -5, other.flips = 5)))                             \
	X(FAILS, 0, "whole-packets", K_ECHO, "a packet is shorter than a header and an ICRC",      \
	  ALSO(s, other.cut = 100))                                                                \
	X(FAILS, 0, "whole-packets", K_ECHO, "a packet is shorter than its headers",               \
	  ALSO(s, other.cut = 92))                                                                 \
	X(FAILS, 0, "whole-packets", K_ECHO, "a length that is no multiple of 4",                  \
	  ALSO(s, other.cut = 1))                                                                  \
	X(PASSES, 0, "whole-packets", K_ECHO, "",                                                  \
	  ALSO(s, (other.cut = 100, other.from = STRANGER)))                                       \
	X(PASSES, 0, "whole-packets", K_ECHO, "", ALSO(s, other.from = 0x100 | TARGET))            \
	X(PASSES, 0, "whole-packets", K_ECHO, "", ALSO(s, (other.cut = 1, other.from = 0x104)))    \
	X(PASSES, 0, "whole-packets", K_ECHO, "", ALSO(s, other.from = STRANGER))                  \
	X(PASSES, 0, "whole-packets", K_ECHO, "", ALSO(s, other.p.qpn ^= 1))                       \
	X(PASSES, 0, "whole-packets", K_ECHO, "", ALSO(s, other.p.op = CI_UC | CI_ONLY))           \
	X(PASSES, 0, "whole-packets", K_RC, "", ALSO(s, other.from = STRANGER);                    \
	  ALSO(s, other.p.qpn ^= 1))                                                               \
	X(FAILS, 0, "whole-packets", K_RC, "operation 01 with 16 octets out of its order",         \
	  send_odd_packet(s, CI_MIDDLE, 0, 16))                                                    \
	X(FAILS, 0, "whole-packets", K_RC, "operation 00 with 16 octets out of its order",         \
	  send_odd_packet(s, CI_FIRST, 0, 16))                                                     \
	X(FAILS, 0, "whole-packets", K_RC, "operation 04 with 2052 octets out of its order",       \
	  send_odd_packet(s, CI_ONLY, 0, 2052))                                                    \
	X(FAILS, 0, "whole-packets", K_RC, "operation 04 with 16 octets out of its order",         \
	  send_odd_packet(s, CI_FIRST, 0, 2048);                                                   \
	  send_odd_packet(s, CI_ONLY, 1, 16))                                                      \
	X(FAILS, 0, "whole-packets", K_RC, "operation 01 with 2048 octets out of its order",       \
	  send_odd_packet(s, CI_FIRST, 0, 2048);                                                   \
	  for (int k = 1; k < 40; k++) send_odd_packet(s, CI_MIDDLE, k, 2048))                     \
	X(PASSES, 0, "whole-packets", K_RC, "", send_odd_packet(s, CI_ONLY, -1, 16);               \
	  send_odd_packet(s, CI_ONLY, 1, 16))                                                      \
	X(FAILS, 0, "whole-keys", K_ECHO, "P_Key fffe", s->p.pkey = 0xfffe)                        \
	X(FAILS, 0, "whole-keys", K_ECHO, "P_Key 7fff", s->p.pkey = 0x7fff)                        \
	X(FAILS, 0, "whole-keys", K_ECHO, "a datagram with Q_Key 00000001", s->p.qkey = 1)         \
	X(FAILS, 0, "whole-encapsulation", K_ECHO, "encapsulation header 08 00 01 00", m[2] = 1)   \
	X(FAILS, 0, "whole-encapsulation", K_ECHO, "encapsulation header 08 00 00 01", m[3] = 1)   \
	X(FAILS, 0, "whole-encapsulation", K_ECHO, "encapsulation header 08 00",                   \
	  ALSO(s, other.p.len = 2))                                                                \
	X(FAILS, 0, "whole-encapsulation", K_RC, "encapsulation header 08 00 01 00", m[2] = 1)     \
	X(FAILS, 0, "whole-encapsulation", K_RC, "encapsulation header 08 00 00 01", m[3] = 1)     \
	X(FAILS, 0, "whole-encapsulation", K_RC, "encapsulation header 08 00", s->p.len = 2)       \
	X(FAILS, 0, "whole-source", K_ECHO, "a datagram from queue pair 300000",                   \
	  s->p.src_qpn ^= 1)                                                                       \
	X(FAILS, 0, "whole-source", K_ECHO, "a datagram from queue pair 300002",                   \
	  s->p.src_qpn ^= 1;                                                                       \
	  ALSO(s, other.p.src_qpn ^= 2))                                                           \
	X(FAILS, 0, "whole-mads", K_REP, "a MAD of 252 octets", ALSO(s, other.p.len = 252))        \
	X(FAILS, 0, "whole-mads", K_REP, "with Q_Key 80010001", ALSO(s, other.p.qkey |= 1))        \
	X(FAILS, 0, "whole-mads", K_REP, "its header is", ALSO(s, o[M_METHOD] = 0x83))             \
	X(FAILS, 0, "whole-mads", K_REP, "its header is", ALSO(s, o[M_BASE] = 2))                  \
	X(FAILS, 0, "whole-mads", K_REP, "its header is", ALSO(s, o[M_VERSION] = 1))               \
	X(FAILS, 0, "whole-mads", K_REP, "its header is",                                          \
	  ALSO(s, (cf_put32(o + CM_REMOTE, 1), o[18] = 1)))                                        \
	X(FAILS, 0, "whole-mads", K_REP, "its header is",                                          \
	  ALSO(s, (cf_put32(o + CM_REMOTE, 1), o[M_MOD + 3] = 1)))                                 \
	X(FAILS, 0, "whole-mads", K_REP, "of no known kind",                                       \
	  ALSO(s, (cf_put32(o + CM_REMOTE, 1), o[M_ATTR + 1] = 0x0f)))                             \
	X(FAILS, 0, "whole-mads", K_REP, "of no known kind",                                       \
	  ALSO(s, (cf_put32(o + CM_REMOTE, 1), o[M_ATTR + 1] = 0x1b)))                             \
	X(PASSES, 0, "whole-mads", K_REP, "",                                                      \
	  ALSO(s, (cf_put32(o + CM_REMOTE, 1), o[M_ATTR + 1] = 0x19)))                             \
	X(PASSES, 0, "whole-mads", K_REP, "", ALSO(s, o[M_CLASS] = 4);                             \
	  ALSO(s, other.from = STRANGER))                                                          \
	X(                                                                                         \
		PASSES, 0, "whole-mads", K_DREP, "", if (s->n == 1) {                              \
			ALSO(s, (cf_put32(o + CM_REMOTE, 1), o[M_ATTR + 1] = CI_REP));             \
			ALSO(s, (cf_put32(o + CM_REMOTE, 1), o[M_ATTR + 1] = CI_DREQ));            \
			ALSO(s, (cf_put32(o + CM_REMOTE, 1), o[M_ATTR + 1] = CI_RTU));             \
			ALSO(s, (memset(o + 24, 0, CI_MAD - 24), o[M_ATTR + 1] = CI_REQ));         \
		})                                                                                 \
	X(FAILS, 0, "ud-echo", K_ECHO, "more comes from the target than can be kept",              \
	  for (unsigned k = 0; k < CI_KEPT; k++) ahead(s))                                         \
	X(FAILS, 0, "cm-rep", K_ARP, "the peer is out of queue pairs",                             \
	  for (unsigned k = 0; k < CI_QPS; k++) world.ci->qp[k].used = true)                       \
	X(FAILS, 0, "cm-rep", K_ARP, "the peer is out of connections", world.ci->n_conns = CI_CONNS)

/* Calls that fail, the n-th from the beginning or of the case. */
#define SYSTEM_LIES(X)                                                                             \
	X(REFUSED, 0, "ud-echo", K_START, "UDP port 4791 on 10.77.0.1", world.calls = 1;           \
	  world.call_error = EMFILE)                                                               \
	X(PASSES, 0, "ud-echo", K_START, "", world.calls = 2; world.call_error = EPERM)            \
	X(REFUSED, 0, "ud-echo", K_START, "UDP port 4791 on 10.77.0.1", world.calls = 4;           \
	  world.call_error = EINVAL)                                                               \
	X(REFUSED, 0, "ud-echo", K_START, "UDP port 4791 on 10.77.0.1", world.calls = 5;           \
	  world.call_error = EINVAL)                                                               \
	X(REFUSED, 0, "ud-echo", K_START, "UDP port 4791 on 10.77.0.1", world.calls = 6;           \
	  world.call_error = EADDRINUSE)                                                           \
	X(REFUSED, 0, "ud-echo", K_START, "its broadcast address", world.calls = 7;                \
	  world.call_error = EMFILE)                                                               \
	X(REFUSED, 0, "ud-echo", K_START, "its broadcast address", world.calls = 12;               \
	  world.call_error = EINVAL)                                                               \
	X(PASSES, 0, "ud-echo", K_BEGIN, "", world.calls = 1; world.call_error = EAGAIN)           \
	X(PASSES, 0, "ud-echo", K_BEGIN, "", world.calls = 1; world.call_error = ENOBUFS)          \
	X(PASSES, 0, "ud-echo", K_BEGIN, "", world.calls = 1; world.call_error = ECONNREFUSED)     \
	X(PASSES, 0, "ud-echo", K_BEGIN, "", world.calls = 2; world.call_error = EINTR)            \
	X(PASSES, 0, "ud-echo", K_BEGIN, "", world.calls = 3; world.call_error = ECONNREFUSED)     \
	X(FAILS, 0, "ud-echo", K_BEGIN, "the target does not answer ARP requests",                 \
	  world.call_error = ENETDOWN, world.calls = 1, world.calls_for_good = true)               \
	X(FAILS, 0, "rc-echo", K_REP, "more comes from the target than can be kept",               \
	  world.memory = 2)                                                                        \
	X(FAILS, 0, "whole-packets", K_RC, "out of its order", if (s->n == 1) world.memory = 2)    \
	X(PASSES, 0, "ud-echo", K_BEGIN, "", world.memory = 1)

#define LIST(X) PACKET_LIES(X) SYSTEM_LIES(X)

LIES(lies_packets, LIST);
