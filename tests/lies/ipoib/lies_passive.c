/* SPDX-License-Identifier: BSD-2-Clause */
/* Lies of a target that is asked for connections, and of one that ends them. */
#include "lies/ipoib/world.h"
#include <string.h>

#define CM_LIES(X)                                                                                 \
	X(FAILS, 0, "cm-rep", K_REP, "another transaction ID", m[15] ^= 1)                         \
	X(FAILS, 0, "cm-rep", K_REP, "a REP for ID", cf_put32(m + CM_REMOTE, world.ci->next_id++)) \
	X(FAILS, 0, "cm-rep", K_REP, "a REP with ID 0", memset(m + CM_LOCAL, 0, 4))                \
	X(FAILS, 0, "cm-rep", K_REP, "queue pair 000001", ci_put24(m + REP_QPN, 1))                \
	X(FAILS, 0, "cm-rep", K_REP, "queue pair 300001", ci_put24(m + REP_QPN, TARGET_QPN))       \
	X(FAILS, 0, "cm-rep", K_REP, "queue pair ffffff", ci_put24(m + REP_QPN, 0xffffff))         \
	X(FAILS, 0, "cm-rep", K_REP, "CA GUID 0", memset(m + REP_GUID, 0, 8))                      \
	X(FAILS, 0, "cm-rep", K_REP, "end-to-end flow control", m[REP_DELAY] |= 1)                 \
	X(FAILS, 0, "cm-rep", K_REP, "no REP comes", s->drop = true)                               \
	X(FAILS, 0, "cm-rep", K_REP, "REJ 28 of message 1 comes, REP is due", as_cm(s, CI_REJ),    \
	  m[REJ_MSG] = 1 << 6, m[REJ_REASON + 1] = 28)                                             \
	X(FAILS, 0, "cm-rep", K_REP, "DREQ comes, REP is due", as_cm(s, CI_DREQ))                  \
	X(FAILS, 0, "cm-rep", K_REP, "CM message of another kind comes", as_cm(s, 0x19))           \
	X(FAILS, 0, "cm-rep-private", K_REP, "Receive MTU 71", cf_put32(m + REP_PRIV + 4, 71))     \
	X(FAILS, 0, "cm-rep-private", K_REP, "Receive MTU 2147483649",                             \
	  cf_put32(m + REP_PRIV + 4, 0x80000001))                                                  \
	X(FAILS, 0, "cm-rep-private", K_REP, "reserved octet of a REP's private data is 01",       \
	  m[REP_PRIV] = 1)                                                                         \
	X(FAILS, 0, "cm-rep-private", K_REP, "has UD QPN 300000", m[REP_PRIV + 3] ^= 1)            \
	X(FAILS, 0, "cm-rep-private", K_REP, "private data behind octet 8", m[CI_MAD - 1] = 7)     \
	X(FAILS, 0, "cm-service-id", K_REP, "a REQ to service ID 01... gets REJ 8",                \
	  as_cm(s, CI_REJ), m[REJ_REASON + 1] = 8)                                                 \
	X(FAILS, 0, "cm-service-id-type", K_REJ, "RTU comes, REJ 8 is due",                        \
	  m[M_ATTR + 1] = CI_RTU)                                                                  \
	X(FAILS, 0, "cm-service-id-type", K_REJ, "REJ 9, not 8", m[REJ_REASON + 1] = 9)            \
	X(FAILS, 0, "cm-service-id-type", K_REJ, "it refuses message 1", m[REJ_MSG] = 1 << 6)      \
	X(FAILS, 0, "cm-service-id-type", K_REJ, "no answer comes", s->drop = true)                \
	X(FAILS, 0, "cm-rej-private", K_REJ, "has UD QPN 000000", memset(m + REJ_PRIV, 0, 8))      \
	X(FAILS, 0, "cm-rej-private", K_REJ, "the reserved octet of a CM message of another",      \
	  as_cm(s, 0x19))                                                                          \
	X(FAILS, 0, "cm-rep", K_REP, "CM message of another kind comes", as_cm(s, 0x05))           \
	X(FAILS, 0, "cm-rej-ids", K_REJ, "though it has none", m[CM_LOCAL] = 1)                    \
	X(FAILS, 0, "cm-rej-ids", K_REJ, "another transaction ID", m[15] ^= 1)                     \
	X(FAILS, 0, "cm-private-rest", K_REP, "it is refused: REJ 28", as_cm(s, CI_REJ),           \
	  m[REJ_REASON + 1] = 28)                                                                  \
	X(FAILS, 0, "cm-pkey", K_REJ, "RTU comes, a REJ is due", m[M_ATTR + 1] = CI_RTU)           \
	X(FAILS, 0, "cm-pkey", K_REJ, "it refuses message 2", m[REJ_MSG] = 2 << 6)                 \
	X(SKIPS, 0, "cm-uc", K_ARP, "the target takes unreliable connections",                     \
	  m[12] |= CI_UC_FLAG)                                                                     \
	X(                                                                                         \
		PASSES, 0, "cm-second", K_REP, "", if (s->n == 2) {                                \
			as_cm(s, CI_REJ);                                                          \
			ci_put24(m + REJ_PRIV + 1, TARGET_QPN);                                    \
		})                                                                                 \
	X(FAILS, 0, "cm-second", K_REP, "the private data of a REJ has",                           \
	  if (s->n == 2) as_cm(s, CI_REJ))                                                         \
	X(FAILS, 0, "cm-rep-again", K_REP, "not the same message", m[CI_MAD - 1] ^= s->n == 2)     \
	X(FAILS, 0, "cm-rep-again", K_REP, "after ", if (s->n == 1) ahead(s))                      \
	X(FAILS, 0, "cm-rep-count", K_REP, "another REP comes", if (s->n == 3) ahead(s))           \
	X(FAILS, 0, "cm-mra", IN | K_MRA, "a REP comes though", s->drop = true)                    \
	X(                                                                                         \
		PASSES, 0, "cm-mra", K_DREP, "",                                                   \
		if (s->n == 1) { ALSO(s, as_cm(&other, CI_MRA)); })                                \
	X(FAILS, 0, "cm-rep-refused", IN | K_REJ, "a REP comes", s->drop = true)                   \
	X(FAILS, 0, "cm-withdrawn", IN | K_REJ, "a REP comes", s->drop = true)                     \
	X(FAILS, 0, "cm-stale", K_DREQ, "a DREQ of another one",                                   \
	  cf_put32(m + CM_REMOTE, world.ci->conn[1].id))                                           \
	X(FAILS, 0, "cm-stale", K_REJ, "REJ 10 and a DREQ are due", m[REJ_REASON + 1] = 28)        \
	X(FAILS, 0, "cm-stale", K_REJ, "it refuses message 1", m[REJ_MSG] = 1 << 6)                \
	X(                                                                                         \
		FAILS, 0, "cm-unknown", K_DREP, "MRA comes where nothing is due", if (s->n == 1) { \
			ALSO(s, (as_cm(&other, CI_MRA),                                            \
				 cf_put32(o + CM_REMOTE, cf_get32(m + CM_REMOTE))));               \
		})                                                                                 \
	X(FAILS, 0, "cm-unknown", K_DREP, "a DREQ for an unknown connection is not answered",      \
	  s->drop = true)                                                                          \
	X(PASSES, FOR_LONG, "cm-unknown", K_DREP, "", s->drop = s->n == 1)                         \
	X(FAILS, 0, "flipped-req", K_REP, "reserved octet 51 of a REP is e1", m[REP_RNR] |= 1)     \
	X(FAILS, 0, "flipped-req", K_DREP, "the target does not answer any more", s->drop = true)  \
	X(                                                                                         \
		PASSES, 0, "flipped-dreq", K_DREP, "",                                             \
		if (s->n == 3) { ALSO(s, as_cm(&other, CI_DREQ)); })                               \
	X(SKIPS, 0, "flipped-rep", K_ARP, "the target takes no reliable connections", m[12] = 0)

#define END_LIES(X)                                                                                \
	X(FAILS, 0, "end-dreq", K_DREP, "a DREP with IDs", m[CM_LOCAL] ^= 1)                       \
	X(FAILS, 0, "end-dreq", K_DREP, "another transaction ID", m[15] ^= 1)                      \
	X(FAILS, 0, "end-dreq", K_DREP, "no DREP comes", s->drop = true)                           \
	X(FAILS, 0, "end-dead", K_DREQ | K_DREP | K_ECHO | BOTH,                                   \
	  "the queue pair of a connection that is over answers", s->drop = s->kind == K_ECHO;      \
	  if (!s->drop && s->n == 1) m[s->kind & K_DREP ? CM_LOCAL : CM_REMOTE] ^= 0x40)           \
	X(FAILS, 0, "end-dreq-again", K_DREP, "another DREP than the first",                       \
	  m[CI_MAD - 1] ^= s->n == 2)                                                              \
	X(FAILS, 0, "end-unknown", K_DREP, "local ID", m[CM_LOCAL] ^= 1)                           \
	X(FAILS, 0, "end-unknown", K_DREP, "another transaction ID", m[15] ^= 1)                   \
	X(FAILS, 0, "end-qpn-rests", K_REP, "is used again immediately",                           \
	  if (s->n == 2) memcpy(m + REP_QPN, s->first + REP_QPN, 3))                               \
	X(FAILS, 0, "end-qpn-rests", K_REP, "communication ID",                                    \
	  if (s->n == 2) memcpy(m + CM_LOCAL, s->first + CM_LOCAL, 4))                             \
	X(FAILS, 0, "end-late-req", K_REJ, "a REQ of a connection that is over gets REJ 28",       \
	  m[REJ_REASON + 1] = 28)                                                                  \
	X(FAILS, 0, "end-late-req", K_REJ, "is over gets REP 0", m[M_ATTR + 1] = CI_REP)           \
	X(PASSES, 0, "end-late-req", K_REJ, "", s->drop = true)                                    \
	X(FAILS, 0, "end-own-dreq", K_DREQ, "IDs ", m[CM_LOCAL] ^= 1)                              \
	X(FAILS, 0, "end-own-dreq", K_DREQ, "queue pair ", m[DREQ_QPN] ^= 1)                       \
	X(FAILS, 0, "end-own-dreq", K_RC, "the answer does not use the connection",                \
	  if (s->n == 1) as_datagram(s))                                                           \
	X(FAILS, 0, "end-own-dreq", K_DREQ, "no DREQ comes", s->drop = true)                       \
	X(FAILS, 0, "end-own-dreq-again", K_DREQ, "it is not the same message",                    \
	  m[CI_MAD - 1] ^= s->n == 2)                                                              \
	X(FAILS, 0, "end-own-dreq-again", K_DREQ, "an unanswered DREQ does not come again",        \
	  s->drop = s->n > 1)                                                                      \
	X(PASSES, FOR_LONG, "end-own-dreq-again", K_DREQ, "", if (s->n == 2) as_cm(s, CI_MRA))     \
	X(FAILS, 0, "end-comes-back", K_ECHO | K_RC, "no new connection",                          \
	  s->drop = world.ci->accept)                                                              \
	X(FAILS, 0, "end-comes-back", K_REQ, "no new connection", s->drop = s->n > 1)

#define LIST(X) CM_LIES(X) END_LIES(X)

LIES(lies_passive, LIST);
