/* SPDX-License-Identifier: BSD-2-Clause */
/* Kinds of peers: what becomes of a message or frame of our node on its way out, or in. */
#include "ipoib/conform/self_in.h"
#include <string.h>

/* Octets of CM messages, from the first one (IBA volume 1, 12.6). */
enum {
	ATTR = 17,
	REQ = 0x10,
	MRA = 0x11,
	REJ = 0x12,
	REP = 0x13,
	RTU = 0x14,
	DREQ = 0x15,
	DREP = 0x16,
	SID = 32,
	REQ_PRIV = 164,
	REP_PRIV = 60,
	REJ_PRIV = 108,
	RTU_PRIV = 32
};

static size_t priv_at(const uint8_t *m)
{
	return m[ATTR] == REQ	? REQ_PRIV
	       : m[ATTR] == REP ? REP_PRIV
	       : m[ATTR] == REJ ? REJ_PRIV
	       : m[ATTR] == RTU ? RTU_PRIV
				: 0;
}

/* X(name, what it does, message it alters or 0 for all, statement on uint8_t m[256]) */
#define MADS(X)                                                                                    \
	X("lie-qpn", "a UD QPN in private data that is not its own", 0,                            \
	  if (priv_at(m)) m[priv_at(m) + 3] ^= 0x40)                                               \
	X("lie-reserved", "a reserved octet in private data", 0,                                   \
	  if (priv_at(m)) m[priv_at(m)] = 1)                                                       \
	X("lie-mtu", "a Receive MTU of 0", 0, if (priv_at(m)) memset(m + priv_at(m) + 4, 0, 4))    \
	X("lie-rej-private", "REJs without private data", REJ, memset(m + REJ_PRIV, 0, 8))         \
	X("lie-rej-reason", "another reason in a REJ", REJ, m[35] ^= 1)                            \
	X("lie-rej-message", "a REJ for another message", REJ, m[32] ^= 0x80)                      \
	X("lie-service-id", "a service ID of another type", REQ, m[SID + 1] = 1)                   \
	X("lie-tid", "another transaction ID in an answer", 0, if (m[ATTR] != REQ) m[15] ^= 1)     \
	X("lie-id", "another communication ID in a DREP", DREP, m[27] ^= 1)                        \
	X("lie-gid", "another GID in a REQ", REQ, m[95] ^= 1)                                      \
	X("lie-lid", "another LID in a REQ", REQ, m[77] ^= 1)                                      \
	X("lie-method", "the response bit in MADs", 0, m[3] = 0x83)                                \
	X("lie-reserved-cm", "reserved bits of a REP", REP, m[51] |= 1)                            \
	X("lie-dreq", "another queue pair in a DREQ", DREQ, m[34] ^= 1)                            \
	X("lie-silent", "no DREP", DREP, m[3] = 0)                                                 \
	X("dead-cm", "no message about connections", 0, m[3] = 0)                                  \
	X("dead-connected", "no end of a connection, nor data on one", 0,                          \
	  if (m[ATTR] == REP) m[38] ^= 0x55;                                                       \
	  else if (m[ATTR] == REQ || m[ATTR] >= RTU) m[3] = 0)

/* X(name, what it does, statement on a datagram f of len octets, to a group or not) */
#define FRAMES(X)                                                                                  \
	X("lie-encap", "reserved octets in front of datagrams", f[2] = 1)                          \
	X("lie-flags", "reserved flags in its address", if (arp) f[12] |= 1)                       \
	X("lie-arp-qpn", "the queue pair of another in ARP", if (arp) f[15] ^= 1)                  \
	X("lie-arp-type", "Ethernet's hardware type in ARP", if (arp) f[5] = 1)                    \
	X("dead-arp", "no answer to ARP", if (arp) f[11] = 9)                                      \
	X("lie-nd", "padding behind the address in neighbour discovery",                           \
	  if (nd) memmove(f + 70, f + 72, 20))

#define NAME_MAD(name, what, attr, act) { name, what },
#define NAME_FRAME(name, what, act)	{ name, what },

static const struct {
	const char *name, *what;
} kind[] = { { "ours", "this build's node as it is" },
	     { "illumos", "service ID 0x10 first, connections used in one direction" },
	     { "letter", "service ID of RFC 4755 only, asked for and listened on" },
	     MADS(NAME_MAD) FRAMES(NAME_FRAME) };

const char *self_name(unsigned i, const char **what)
{
	if (i >= sizeof kind / sizeof *kind)
		return NULL;
	*what = kind[i].what;
	return kind[i].name;
}

int self_find(const char *name)
{
	for (unsigned i = 0; i < sizeof kind / sizeof *kind; i++)
		if (!strcmp(kind[i].name, name))
			return (int)i;
	return -1;
}

void self_mad_out(int who, uint8_t m[256])
{
	int i = SELF_LIES;

	if (who == SELF_ILLUMOS && m[ATTR] == RTU)
		memset(m + RTU_PRIV, 0, 8);
#define ALTER(name, what, attr, act)                                                               \
	if (who == i++ && (!(attr) || m[ATTR] == (attr))) {                                        \
		act;                                                                               \
	}
	MADS(ALTER)
#undef ALTER
}

void self_mad_in(int who, uint8_t m[256])
{
	/* nobody listens on the other form */
	if (who == SELF_LETTER && m[ATTR] == REQ && m[SID] == 0x10)
		m[SID] = 0x11;
}

void self_frame_out(int who, uint8_t *f, size_t len)
{
#define ONE(name, what, attr, act) 0,
	static const char mads[] = { MADS(ONE) };
	int i = SELF_LIES + (int)sizeof mads;
	bool arp = len == 60 && f[0] == 0x08 && f[1] == 0x06;
	bool nd = len >= 92 && f[0] == 0x86 && f[44] == 136;

#undef ONE
#define ALTER(name, what, act)                                                                     \
	if (who == i++ && len >= 4) {                                                              \
		act;                                                                               \
	}
	FRAMES(ALTER)
#undef ALTER
}
