/* SPDX-License-Identifier: BSD-2-Clause */
/* Lies of a target that joins a link, resolves addresses, and answers in datagrams. */
#include "lies/ipoib/world.h"
#include <string.h>

#define NO_TRAP "no InformInfo for trap"
#define ONLY	"the target is in no group but that of broadcasts"

/* The join of the broadcast group. */
static bool is_first(const struct said *s)
{
	return s->kind == K_SA && s->m[M_METHOD] == SA_SET && ci_attr(s->m) == SA_MCMEMBER &&
	       !is_join(s);
}

#define LINK_LIES(X)                                                                               \
	X(FAILS, EARLY, "link-join", K_SA, "component mask", if (is_first(s)) m[SA_MASK + 7] ^= 1) \
	X(FAILS, EARLY, "link-join", K_SA, "is no full member", if (is_first(s)) m[MC_SCOPE] ^= 5) \
	X(FAILS, EARLY, "link-join", K_SA, "P_Key fffe", if (is_first(s)) m[MC_PKEY + 1] ^= 1)     \
	X(FAILS, EARLY, "link-join", K_SA, "ARP has another",                                      \
	  if (is_first(s)) ALSO(s, o[MC_PORT + 15] ^= 1))                                          \
	X(FAILS, EARLY, "link-join-first", K_SA, "it joins",                                       \
	  if (is_first(s)) ALSO(s, o[MC_MGID + 15] ^= 1))                                          \
	X(PASSES, EARLY, "link-join-first", K_SA, "",                                              \
	  if (is_first(s)) ALSO(s, (o[MC_MGID + 15] ^= 1, other.from = STRANGER)))                 \
	X(FAILS, EARLY, "link-mgids", K_SA, "T or scope", if (is_join(s)) m[MC_MGID] = 0xfe)       \
	X(FAILS, EARLY, "link-mgids", K_SA, "T or scope", if (is_join(s)) m[MC_MGID + 1] = 0x15)   \
	X(FAILS, EARLY, "link-mgids", K_SA, "signature", if (is_join(s)) m[MC_MGID + 3] ^= 1)      \
	X(FAILS, EARLY, "link-mgids", K_SA, "P_Key", if (is_join(s)) m[MC_MGID + 5] ^= 1)          \
	X(FAILS, EARLY, "link-mgids", K_SA, "more than 28 bits",                                   \
	  if (is_join(s)) m[MC_MGID + 12] |= 0xe0)                                                 \
	X(FAILS, EARLY, "link-mgids", K_SA, "more than 28 bits",                                   \
	  if (is_join(s)) m[MC_MGID + 10] |= 1)                                                    \
	X(SKIPS, EARLY, "link-mgids", K_SA, ONLY, s->drop = is_join(s))                            \
	X(SKIPS, EARLY, "link-like-broadcast", K_SA, ONLY, if (is_join(s)) s->from = STRANGER,     \
	  m[MC_PORT + 15] = STRANGER)                                                              \
	X(FAILS, EARLY, "link-like-broadcast", K_SA, "without octet 32 of the",                    \
	  if (is_join(s)) m[SA_MASK + 7] &= 0xfb)                                                  \
	X(FAILS, EARLY, "link-like-broadcast", K_SA, "octets 44 of the record",                    \
	  if (is_join(s)) m[MC_SL] ^= 0x10)                                                        \
	X(FAILS, EARLY, "link-all-hosts", K_SA, "the target has not joined", s->drop = is_join(s)) \
	X(FAILS, EARLY, "link-all-hosts", K_SA, "is no full member",                               \
	  if (is_join(s)) m[MC_SCOPE] = (m[MC_SCOPE] & 0xf0) | 2)                                  \
	X(FAILS, EARLY, "link-all-nodes", K_SA, "the target has not joined",                       \
	  if (is_join(s)) m[M_METHOD] = SA_GET)                                                    \
	X(SKIPS, 0, "link-all-nodes", K_START, "needs an IPv6 address",                            \
	  memset(world.o.target6, 0, 16))                                                          \
	X(FAILS, EARLY, "link-traps", K_SA, NO_TRAP " 66", s->drop = is_inform(s, 66))             \
	X(FAILS, EARLY, "link-traps", K_SA, NO_TRAP " 67",                                         \
	  if (is_inform(s, 67)) m[M_METHOD] = SA_GET)                                              \
	X(FAILS, EARLY, "link-traps", K_SA, NO_TRAP " 66",                                         \
	  if (is_inform(s, 66)) s->from = STRANGER)                                                \
	X(FAILS, EARLY, "link-traps", K_SA, NO_TRAP " 66",                                         \
	  if (is_inform(s, 66)) m[II_SUBSCRIBE] = 0)                                               \
	X(PASSES, EARLY, "link-traps", K_SA, "",                                                   \
	  if (is_inform(s, 66)) memset(m + II_TRAP, 0xff, 2);                                      \
	  s->drop = is_inform(s, 67))                                                              \
	X(                                                                                         \
		FAILS, EARLY, "link-path", K_SA | BOTH, "without having asked for the path to us", \
		if (is_path(s)) {                                                                  \
			ALSO(s, (o[PR_DGID + 15] ^= 0x40, o[M_TID + 7] ^= 0x80));                  \
			ALSO(s, (o[M_ATTR + 1] = SA_PORT_INFO, o[M_TID + 7] ^= 0x80));             \
			ALSO(s, (other.from = STRANGER, o[M_TID + 7] ^= 0x80));                    \
			memcpy(m + PR_DGID, m + PR_SGID, CI_GID);                                  \
		} else if (ci_attr(m) == SA_PATH) { m[PR_DGID + 15] = m[PR_DLID + 1] = SUITE; })   \
	X(FAILS, EARLY, "link-path", K_SA, "SGID", if (is_path(s)) m[PR_SGID + 15] ^= 1)           \
	X(FAILS, EARLY, "link-path", K_SA, "mask", if (is_path(s)) m[SA_MASK + 7] ^= 4)            \
	X(FAILS, EARLY, "link-path", K_SA, "P_Key fffe", if (is_path(s)) m[PR_PKEY + 1] ^= 1,      \
	  m[SA_MASK + 6] |= 0x20)                                                                  \
	X(PASSES, EARLY, "link-path", K_SA, "", if (is_path(s)) m[SA_MASK + 6] &= 0xdf)

/* What the administration is asked besides, and what it says to that. */
#define SA_LIES(X)                                                                                 \
	X(                                                                                         \
		PASSES, EARLY, "link-*all-hosts", K_SA, "", if (is_join(s)) {                      \
			ALSO(s, o[M_METHOD] = SA_GET);                                             \
			ALSO(s, o[M_METHOD] = SA_DELETE);                                          \
			ahead(s);                                                                  \
			ALSO(s, o[M_METHOD] = SA_GET);                                             \
			ALSO(s, o[M_METHOD] = SA_DELETE);                                          \
			ALSO(s, o[M_METHOD] = 2);                                                  \
			ALSO(s, o[M_METHOD] = SA_REPORT);                                          \
			ALSO(s, o[M_ATTR + 1] = SA_INFORM);                                        \
			ALSO(s, (o[M_ATTR + 1] = SA_PORT_INFO, o[M_METHOD] = SA_GET));             \
			ALSO(s, (o[M_ATTR + 1] = 0x77, o[M_METHOD] = SA_GET));                     \
			ALSO(s, o[M_METHOD] = SA_GET_RESP);                                        \
			ALSO(s, (o[MC_MGID + 9] = 7, o[MC_SCOPE] &= 0xf0));                        \
			for (unsigned k = 0; k < CI_GROUPS; k++)                                   \
				ALSO(s, (o[MC_MGID + 9] = 9, o[MC_MGID + 10] = (uint8_t)k));       \
		})                                                                                 \
	X(                                                                                         \
		FAILS, EARLY, "link-mgids", K_SA, "28 bits", if (is_join(s)) {                     \
			for (unsigned k = 0; k < CI_LOG; k++)                                      \
				ALSO(s, (o[MC_MGID + 9] = 9, o[MC_MGID + 10] = (uint8_t)k));       \
		})                                                                                 \
	X(                                                                                         \
		PASSES, EARLY, "link-path", K_SA, "", if (is_path(s)) {                            \
			ALSO(s, (memset(o + PR_DGID, 7, CI_GID), o[M_TID + 7] ^= 0x80));           \
			ALSO(s, (memcpy(o + PR_DGID, o + PR_SGID, CI_GID), o[M_TID + 7] ^= 0x80)); \
		})                                                                                 \
	X(                                                                                         \
		PASSES, EARLY, "link-join", K_SA, "", if (is_first(s)) {                           \
			ahead(s);                                                                  \
			for (unsigned k = 0; k < CI_NODES; k++)                                    \
				ALSO(s, (other.from = (uint16_t)(100 + k),                         \
					 o[MC_PORT + 15] = (uint8_t)(100 + k)));                   \
			s->drop = true;                                                            \
		})                                                                                 \
	X(REFUSED, EARLY, "link-join", K_SA, "nobody joins the link", s->drop = true)              \
	X(                                                                                         \
		REFUSED, EARLY, "link-join", K_SA, "has not joined",                               \
		if (is_first(s)) { m[MC_PORT + 15] ^= 1; } else s->drop = !is_path(s))             \
	X(REFUSED, EARLY | AS_CLIENT, "ud-echo", IN | K_SA,                                        \
	  "the broadcast group: the subnet administration does not answer", s->drop = true)        \
	X(REFUSED, EARLY | AS_CLIENT, "ud-echo", IN | K_SA, "the path to the target: status 0",    \
	  if (ci_attr(m) == SA_PATH) memset(m + PR_DGID, 7, CI_GID))

#define ARP_LIES(X)                                                                                \
	X(REFUSED, EARLY, "ud-echo", K_ARP, "does not answer ARP requests", s->drop = true)        \
	X(FAILS, 0, "arp-reply", K_ARP, "no answer to an ARP request", s->drop = s->n > 1)         \
	X(FAILS, 0, "arp-reply", K_ARP, "64 octets", if (s->n > 1) s->p.len += 4)                  \
	X(FAILS, 0, "arp-reply", K_ARP, "no answer to an ARP", if (s->n > 1) s->p.len -= 4)        \
	X(FAILS, 0, "arp-reply", K_ARP, "no answer to an ARP", if (s->n > 1) m[11] = 3)            \
	X(FAILS, 0, "arp-reply", K_ARP, "no answer to an ARP", if (s->n > 1) m[59] ^= 1)           \
	X(FAILS, 0, "arp-reply", K_ARP, "no answer to an ARP", if (s->n > 1) m[35] ^= 1)           \
	X(FAILS, 0, "arp-reply", K_ARP, "encapsulation header 08 06 01", if (s->n > 1) m[2] = 1)   \
	X(FAILS, 0, "arp-reply", K_ARP, "types and lengths", if (s->n > 1) m[5] = 1)               \
	X(FAILS, 0, "arp-reply", K_ARP, "types and lengths", if (s->n > 1) m[7] = 1)               \
	X(FAILS, 0, "arp-reply", K_ARP, "types and lengths", if (s->n > 1) m[8] = 6)               \
	X(FAILS, 0, "arp-reply", K_ARP, "types and lengths", if (s->n > 1) m[9] = 6)               \
	X(FAILS, 0, "arp-reply", K_ARP, "it is for", if (s->n > 1) m[36] ^= 0x80)                  \
	X(FAILS, 0, "arp-reply", K_ARP, "in the address, sent by", if (s->n > 1) m[15] ^= 1)       \
	X(FAILS, 0, "arp-reply", K_ARP, "GID 00 00", if (s->n > 1) memset(m + 16, 0, CI_GID))      \
	X(FAILS, 0, "arp-unicast", K_ARP, "the answer goes to a group", to_group(s))               \
	X(FAILS, 0, "arp-unicast", K_ARP, "the answer to a unicast request goes to a group",       \
	  if (s->n > 1) to_group(s))                                                               \
	X(FAILS, 0, "arp-flags", K_ARP, "flags 81", m[12] |= 1)                                    \
	X(FAILS, 0, "arp-gid", K_ARP, "GID 20", m[16] = 0x20)                                      \
	X(FAILS, 0, "arp-gid", K_ARP, "a GUID of 0", memset(m + 24, 0, 8))                         \
	X(FAILS, 0, "arp-reserved-flags", K_DREP, "REQ comes where nothing is due",                \
	  if (s->n == 1)                                                                           \
		  ALSO(s, (as_cm(&other, CI_REQ), ci_put24(o + REQ_SID + 5, world.ci->me.qpn))))   \
	X(FAILS, 0, "arp-other-address", K_ARP, "an answer comes where none is due",               \
	  if (s->n == 2) ALSO(s, o[59] ^= 1))                                                      \
	X(FAILS, 0, "arp-other-address", K_ARP, "an answer comes where none is due",               \
	  if (s->n == 2) ALSO(s, other.p.len = 40))                                                \
	X(FAILS, 0, "arp-other-address", K_ARP, "an answer comes where none is due",               \
	  if (s->n == 2) ALSO(s, piece(&other, 64, 0, 64)))                                        \
	X(PASSES, 0, "arp-other-address", K_ARP, "",                                               \
	  if (s->n == 2) ALSO(s, (o[59] ^= 1, to_group(&other))))                                  \
	X(PASSES, 0, "arp-other-address", K_ARP, "",                                               \
	  if (s->n == 2) ALSO(s, (o[11] = 1, o[59] ^= 1)))                                         \
	X(FAILS, 0, "arp-other-address", K_ARP, "does not answer ARP requests any more",           \
	  s->drop = s->n > 1)                                                                      \
	X(PASSES, 0, "arp-other-address", K_ARP, "", s->drop = s->n == 2)                          \
	X(FAILS, 0, "arp-moved", K_ARP, "does not answer ARP requests", s->drop = s->n > 1)        \
	X(FAILS, 0, "nd-advertisement", K_NA, "no neighbour advertisement", s->drop = true)        \
	X(PASSES, 0, "nd-advertisement", K_NA, "", s->drop = s->n == 1)                            \
	X(PASSES, 0, "nd-advertisement", K_NA, "", ALSO(s, other.p.len = 60); ALSO(s, o[1] ^= 1);  \
	  ALSO(s, o[CI_ENCAP + 6] = 6); ALSO(s, o[CI_ENCAP + 40] = 135);                           \
	  ALSO(s, o[CI_ENCAP + 63] ^= 1); ALSO(s, o[CI_ENCAP + 39] ^= 1))                          \
	X(FAILS, 0, "nd-advertisement", K_NA, "the answer goes to a group", to_group(s))           \
	X(FAILS, 0, "nd-advertisement", K_NA, "hop limit 64", m[CI_ENCAP + 7] = 64)                \
	X(FAILS, 0, "nd-advertisement", K_NA, "a wrong checksum", m[CI_ENCAP + 42] ^= 1)           \
	X(FAILS, 0, "nd-advertisement", K_NA, "96 octets, one option makes 92",                    \
	  memset(m + s->p.len, 0, 4), s->p.len += 4, m[CI_ENCAP + 43] -= 4)                        \
	X(FAILS, 0, "nd-advertisement", K_NA, "option of type 1", m[CI_ENCAP + 64] = 1,            \
	  m[CI_ENCAP + 42] += 1)                                                                   \
	X(FAILS, 0, "nd-advertisement", K_NA, "option of type 2 and length 4",                     \
	  m[CI_ENCAP + 65] += 1, m[CI_ENCAP + 43] -= 1)                                            \
	X(FAILS, 0, "nd-advertisement", K_NA, "not two octets of zero", m[CI_ENCAP + 66] += 1,     \
	  m[CI_ENCAP + 42] -= 1)                                                                   \
	X(FAILS, 0, "nd-advertisement", K_NA, "not two octets of zero", m[CI_ENCAP + 67] += 1,     \
	  m[CI_ENCAP + 43] -= 1)                                                                   \
	X(FAILS, 0, "nd-advertisement", K_NA, "ARP said", m[CI_ENCAP + 87] += 1,                   \
	  m[CI_ENCAP + 43] -= 1)

#define UD_LIES(X)                                                                                 \
	X(FAILS, 0, "ud-echo", K_ECHO, "no answer to echoes of 84 octets", s->drop = true)         \
	X(FAILS, 0, "ud-echo", K_ECHO, "80 octets in 1 pieces", longer(s, -4))                     \
	X(                                                                                         \
		FAILS, 0, "ud-echo", K_ECHO, "84 octets in 2 pieces", if (s->n == 1) {             \
			ALSO(s, piece(&other, 64, 0, 32));                                         \
			piece(s, 64, 32, 32);                                                      \
		})                                                                                 \
	X(                                                                                         \
		FAILS, 0, "ud-echo", K_ECHO, "84 octets in 2 pieces", if (s->n == 1) {             \
			ALSO(s, piece(&other, 64, 32, 32));                                        \
			piece(s, 64, 0, 32);                                                       \
		})                                                                                 \
	X(                                                                                         \
		FAILS, 0, "ud-echo", K_ECHO, "84 octets in 3 pieces", if (s->n == 1) {             \
			ALSO(s, piece(&other, 64, 0, 24));                                         \
			ALSO(s, piece(&other, 64, 48, 16));                                        \
			piece(s, 64, 24, 24);                                                      \
		})                                                                                 \
	X(PASSES, FOR_LONG, "ud-echo", K_ECHO, "", if (s->n == 1) piece(s, 64, 32, 32))            \
	X(FAILS, 0, "ud-echo", K_ECHO, "encapsulation header 08 00 ff", m[2] = 0xff)               \
	X(FAILS, 0, "ud-echo", K_ECHO, "a wrong checksum", m[CI_ENCAP + 8] ^= 1)                   \
	X(FAILS, 0, "ud-echo", K_ECHO, "the echo has other data", m[CI_ENCAP + 40] ^= 1)           \
	X(FAILS, 0, "ud-echo", K_ECHO, "no answer to echoes", s->p.len = 20)                       \
	X(FAILS, 0, "ud-echo", K_ECHO, "no answer to echoes", m[0] = 0x86)                         \
	X(FAILS, 0, "ud-echo", K_ECHO, "no answer to echoes", m[CI_ENCAP] = 0x46)                  \
	X(FAILS, 0, "ud-echo", K_ECHO, "no answer to echoes", m[CI_ENCAP + 9] = 17)                \
	X(FAILS, 0, "ud-echo", K_ECHO, "no answer to echoes", m[CI_ENCAP + 15] ^= 1)               \
	X(FAILS, 0, "ud-echo", K_ECHO, "no answer to echoes", m[CI_ENCAP + 3] ^= 1)                \
	X(FAILS, 0, "ud-echo", K_ECHO, "no answer to echoes", longer(s, -60))                      \
	X(FAILS, 0, "ud-echo", K_ECHO, "no answer to echoes", m[CI_ENCAP + 20] = 8)                \
	X(FAILS, 0, "ud-echo", K_ECHO, "no answer to echoes", m[CI_ENCAP + 25] ^= 1)               \
	X(FAILS, 0, "ud-echo", K_ECHO, "no answer to echoes", m[CI_ENCAP + 27] ^= 1)               \
	X(FAILS, 0, "ud-sizes", K_ECHO, "28 octets, not 32", if (s->n == 5) longer(s, -4))         \
	X(SKIPS, 0, "ud-2044", K_START, "the link's MTU is 1024", memset(world.o.target6, 0, 16),  \
	  world.o.mtu = 3)                                                                         \
	X(FAILS, 0, "ud-2044", K_ECHO, "2040 octets in 1 pieces", longer(s, -4))                   \
	X(FAILS, 0, "ud-fragments", K_ECHO, "in 1 pieces", s->drop = s->n > 1,                     \
	  piece(s, 2025, 0, 2025))                                                                 \
	X(FAILS, 0, "ud-fragments", K_ECHO, "a datagram of 2072 octets on a link of 2048",         \
	  if (s->n == 1) piece(s, 2088, 0, 2048);                                                  \
	  else piece(s, 2088, 2048, 40))                                                           \
	X(FAILS, 0, "ud-reserved", K_ECHO, "no answer to an echo", s->drop = true)                 \
	X(FAILS, 0, "ud-broadcast", K_ARP_ASKS, "no ARP request to the broadcast group",           \
	  s->drop = true)                                                                          \
	X(FAILS, FOR_LONG, "ud-broadcast", K_ARP_ASKS, "no ARP request to the broadcast group",    \
	  ALSO(s, other.p.len = 40);                                                               \
	  ALSO(s, o[1] = 0); ALSO(s, o[11] = 2); m[59] ^= 1)                                       \
	X(FAILS, 0, "ud-broadcast", K_ARP_ASKS, "it goes to MLID 0000", as_datagram(s),            \
	  s->lid = SUITE)                                                                          \
	X(FAILS, 0, "ud-broadcast", K_ARP_ASKS, "from ", m[20] ^= 1)                               \
	X(FAILS, 0, "ud-broadcast", K_ARP_ASKS, "from queue pair 300000", s->p.src_qpn ^= 1)       \
	X(FAILS, 0, "ud-broadcast-connected", K_ARP_ASKS, "a broadcast on a connection",           \
	  as_message(s))

#define LIST(X) LINK_LIES(X) SA_LIES(X) ARP_LIES(X) UD_LIES(X)

LIES(lies_links, LIST);
