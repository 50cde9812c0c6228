/* SPDX-License-Identifier: BSD-2-Clause */
/* Lies of a target that asks for connections, also while it is asked itself. */
#include "lies/ipoib/world.h"
#include <string.h>

#define NO_RC	 "the target takes no reliable connections"
#define NOT_USED "the answer does not use the connection"

#define REQ_LIES(X)                                                                                \
	X(SKIPS, 0, "req-fields", K_ARP, NO_RC, m[12] = 0)                                         \
	X(FAILS, 0, "req-fields", K_REQ, "the target does not connect", s->drop = true)            \
	X(FAILS, 0, "req-fields", K_REQ, "communication ID 0", memset(m + CM_LOCAL, 0, 4))         \
	X(FAILS, 0, "req-fields", K_REQ, "CA GUID 0", memset(m + REQ_GUID, 0, 8))                  \
	X(FAILS, 0, "req-fields", K_REQ, "queue pair 000001", ci_put24(m + REQ_QPN, 1))            \
	X(FAILS, 0, "req-fields", K_REQ, "queue pair 300001", ci_put24(m + REQ_QPN, TARGET_QPN))   \
	X(FAILS, 0, "req-fields", K_REQ, "queue pair ffffff", ci_put24(m + REQ_QPN, 0xffffff))     \
	X(FAILS, 0, "req-fields", K_REQ, "transport type 1, not RC", m[REQ_TYPE] |= 2)             \
	X(FAILS, 0, "req-fields", K_REQ, "P_Key fffe", m[REQ_PKEY + 1] ^= 1)                       \
	X(FAILS, 0, "req-path", K_REQ, "LIDs 3 and 1", m[REQ_LLID + 1] = 3)                        \
	X(FAILS, 0, "req-path", K_REQ, "LIDs 2 and 3", m[REQ_RLID + 1] = 3)                        \
	X(FAILS, 0, "req-path", K_REQ, "local GID", m[REQ_LGID + 15] ^= 1)                         \
	X(FAILS, 0, "req-path", K_REQ, "remote GID", m[REQ_RGID + 15] ^= 1)                        \
	X(FAILS, 0, "req-path", K_REQ, "path MTU 5, the path has 4", m[REQ_MTU] ^= 0x10)           \
	X(FAILS, 0, "req-path", K_REQ, "path MTU 0", m[REQ_MTU] &= 0x0f)                           \
	X(FAILS, 0, "req-path", K_REQ, "path MTU 6", m[REQ_MTU] = 0x67)                            \
	X(FAILS, 0, "req-path", K_REQ, "rate 2", m[REQ_RATE] = 2)                                  \
	X(FAILS, 0, "req-path", K_REQ, "not within the subnet", m[REQ_SL] &= 0xf7)                 \
	X(FAILS, 0, "req-path", K_REQ, "ACK timeout 12", m[REQ_ACK_TIME] = 12 << 3)                \
	X(FAILS, 0, "req-path", K_REQ, "an alternate path", m[REQ_ALT + 9] = 1)                    \
	X(FAILS, 0, "req-private", K_REQ, "Receive MTU 0", memset(m + REQ_PRIV + 4, 0, 4))         \
	X(FAILS, 0, "req-private", K_REQ, "Receive MTU 4294967295",                                \
	  memset(m + REQ_PRIV + 4, 0xff, 4))                                                       \
	X(FAILS, 0, "req-service-id", K_REQ, "it begins with 10", m[REQ_SID] = 0x10)               \
	X(FAILS, 0, "req-service-id-rest", K_REQ, "type 1", m[REQ_SID + 1] = 1)                    \
	X(FAILS, 0, "req-service-id-rest", K_REQ, "reserved octets", m[REQ_SID + 4] = 1)           \
	X(FAILS, 0, "req-service-id-rest", K_REQ, "the target does not connect",                   \
	  m[REQ_SID + 7] ^= 1)                                                                     \
	X(FAILS, 0, "req-again", K_REQ, "no second REQ", s->drop = s->n > 1)                       \
	X(FAILS, 0, "req-again", K_REQ, "it is not the same message", m[CI_MAD - 1] ^= s->n == 2)  \
	X(FAILS, 0, "req-again", K_REQ, "after ",                                                  \
	  m[REQ_TYPE] = (uint8_t)(26 << 3 | (m[REQ_TYPE] & 7)))                                    \
	X(FAILS, 0, "req-mra", IN | K_MRA, "a REQ comes though an MRA asked for time",             \
	  s->drop = true)                                                                          \
	X(FAILS, 0, "req-refused", K_ECHO, "datagrams do not reach a node that refuses",           \
	  s->drop = true)                                                                          \
	X(FAILS, FOR_LONG, "req-refused", K_ECHO | K_REQ, "datagrams do not reach",                \
	  if (s->kind == K_ECHO) s->drop = true;                                                   \
	  else if (s->n > 1) as_cm(s, CI_MRA))                                                     \
	X(FAILS, 0, "req-refused", K_ECHO, "the answer comes on a connection", as_message(s))      \
	X(FAILS, 0, "req-refused-stale", K_REQ, "the same communication ID",                       \
	  if (s->n > 1) memcpy(m + CM_LOCAL, s->first + CM_LOCAL, 4))                              \
	X(                                                                                         \
		FAILS, 0, "req-not-wanted", K_DREP, "REQ comes where nothing is due",              \
		if (s->n == 1) {                                                                   \
			ALSO(s, (as_cm(&other, CI_REQ),                                            \
				 ci_put24(o + REQ_SID + 5, world.ci->me.qpn)));                    \
		})                                                                                 \
	X(FAILS, 0, "req-one-per-peer", K_RC, NOT_USED, as_datagram(s))

#define RTU_LIES(X)                                                                                \
	X(FAILS, 0, "rtu", K_RTU, "local ID", m[CM_LOCAL] ^= 1)                                    \
	X(FAILS, 0, "rtu", K_RTU, "another transaction ID", m[15] ^= 1)                            \
	X(FAILS, 0, "rtu", K_RC, NOT_USED, as_datagram(s))                                         \
	X(FAILS, 0, "rtu", K_RC, "no answer to an echo", s->drop = true)                           \
	X(FAILS, 0, "rtu-private", K_RTU, "the private data of a RTU has UD QPN 000000",           \
	  memset(m + RTU_PRIV, 0, 8))                                                              \
	X(FAILS, 0, "rtu-again", K_RTU, "another RTU than the first", m[CI_MAD - 1] ^= s->n == 2)  \
	X(FAILS, 0, "rtu-again", K_RTU, "no RTU comes", s->drop = s->n == 3)                       \
	X(FAILS, 0, "rep-mtu-4", K_REJ, "RTU comes, a REJ is due", m[M_ATTR + 1] = CI_RTU)         \
	X(FAILS, 0, "rep-mtu-4", K_REJ, "it refuses message 0, not a REP", m[REJ_MSG] = 0)         \
	X(FAILS, 0, "rep-mtu-4", K_REJ, "REJ 29", m[REJ_REASON + 1] = 29)                          \
	X(FAILS, 0, "rep-rej-private", K_REJ, "has UD QPN 000000", memset(m + REJ_PRIV, 0, 8))     \
	X(FAILS, 0, "rep-stale", K_REJ, "REJ 10 is due", m[REJ_REASON + 1] = 28)                   \
	X(FAILS, 0, "rep-stale", K_REJ, "it refuses message 0", m[REJ_MSG] = 0)                    \
	X(FAILS, 0, "rep-stale", K_REJ, "no answer comes", as_cm(s, CI_DREQ))

#define CROSS_LIES(X)                                                                              \
	X(SKIPS, 0, "cross-larger", K_ARP, NO_RC, m[12] = 0)                                       \
	X(SKIPS, 0, "cross-behind-mra", K_ARP, NO_RC, m[12] = 0)                                   \
	X(SKIPS, 0, "cross-flags", K_ARP, "the target may connect by UC", m[12] |= CI_UC_FLAG)     \
	X(FAILS, 0, "cross-smaller", K_REJ, "RTU comes, REJ 28 is due", m[M_ATTR + 1] = CI_RTU)    \
	X(FAILS, 0, "cross-smaller", K_REJ, "REJ 3, not 28", m[REJ_REASON + 1] = 3)                \
	X(FAILS, 0, "cross-smaller", K_REJ, "it refuses message 1", m[REJ_MSG] = 1 << 6)           \
	X(FAILS, 0, "cross-smaller", K_RC, NOT_USED, as_datagram(s))                               \
	X(FAILS, 0, "cross-smaller-again", K_REJ, "the second REQ gets a RTU",                     \
	  if (s->n == 2) m[M_ATTR + 1] = CI_RTU)                                                   \
	X(FAILS, 0, "cross-larger", K_REP, "REJ 28 comes, a REP is due", as_cm(s, CI_REJ),         \
	  m[REJ_REASON + 1] = 28)                                                                  \
	X(FAILS, 0, "cross-late-rej", K_REJ, "REJ or RTU is due", m[M_ATTR + 1] = CI_DREP)         \
	X(FAILS, 0, "cross-late-rej", K_REJ, NOT_USED, m[M_ATTR + 1] = CI_RTU)                     \
	X(SKIPS, 0, "cross-larger", K_START, "no queue pair number is larger than",                \
	  world.target_qpn = 0xfffffe)                                                             \
	X(PASSES, 0, "cross-larger", K_START, "", world.target_qpn = 0xffffe0)                     \
	X(SKIPS, 0, "cross-smaller", K_START, "no queue pair number is smaller than",              \
	  world.target_qpn = 2)                                                                    \
	X(PASSES, 0, "cross-smaller", K_START, "", world.target_qpn = 3)                           \
	X(PASSES, 0, "cross-smaller", K_START, "", world.target_qpn = 0x1000)                      \
	X(                                                                                         \
		PASSES, 0, "cross-gid-smaller", K_SA, "", if (is_path(s)) {                        \
			ALSO(s, (memcpy(o + PR_DGID, world.o.gid, CI_GID), o[M_TID + 7] ^= 0x80)); \
		})                                                                                 \
	X(FAILS, 0, "cross-behind-mra", K_REJ, "RTU comes, REJ 28 is due", m[M_ATTR + 1] = CI_RTU)

#define LIST(X) REQ_LIES(X) RTU_LIES(X) CROSS_LIES(X)

LIES(lies_active, LIST);
