/* SPDX-License-Identifier: BSD-2-Clause */
/* Lies on connections: messages, acknowledgements, and who they are for. */
#include "lies/ipoib/world.h"
#include <string.h>

/* Nobody is informed that our connection serves both ways, and the target does not ask for one. */
static void one_way(struct said *s)
{
	if (s->kind == (IN | K_RTU))
		memset(s->m + RTU_PRIV, 0, 8);
	else if (s->kind == K_REQ)
		s->drop = true;
}

/* The large echo's answer, all of which there was no room for. */
static void large_answer(struct said *s)
{
	if (s->p.syndrome >> 5 == 3)
		piece(s, 64, 0, 64);
}

/* A NAK for a queue pair of ours that this case does not look at. */
static void stray_ack(const struct said *s)
{
	struct said other = *s;
	struct ci_qp *qp = &world.ci->qp[CI_QPS - 1];

	qp->used = true;
	qp->qpn = 0x77;
	other.p = (struct ci_pkt){ .op = CI_ACK,
				   .pkey = 0xffff,
				   .qpn = qp->qpn,
				   .psn = 1,
				   .syndrome = CI_NAK_OPERATION,
				   .data = other.m };
	ahead(&other);
}

#define MESSAGE_LIES(X)                                                                            \
	X(FAILS, 0, "rc-echo", K_RC | K_ECHO, "no answer to an echo of 84 octets", s->drop = true) \
	X(FAILS, 0, "rc-echo", K_RC, "80 octets in 1 pieces", longer(s, -4))                       \
	X(FAILS, 0, "rc-pads", K_RC, "81 octets, not 85", if (s->n == 2) longer(s, -4))            \
	X(FAILS, 0, "rc-packets", K_RC, "2039 octets, not 2043", if (s->n == 1) longer(s, -4))     \
	X(FAILS, 0, "rc-packets", K_RC, "no answer to an echo",                                    \
	  if (s->p.op == CI_LAST) s->p.len = 2000)                                                 \
	X(FAILS, 0, "rc-large", K_REP, "a Receive MTU of 60", cf_put32(m + REP_PRIV + 4, 60))      \
	X(PASSES, 0, "rc-large", K_REP, "", cf_put32(m + REP_PRIV + 4, 3000))                      \
	X(                                                                                         \
		FAILS, 0, "rc-large", K_RC, "65516 octets, not 65520",                             \
		if (s->p.op == CI_FIRST || s->p.op == CI_LAST) {                                   \
			if (s->p.op == CI_FIRST)                                                   \
				longer(s, -4);                                                     \
			else                                                                       \
				s->p.len -= 4;                                                     \
		})                                                                                 \
	X(SKIPS, 0, "rc-too-large", K_REP, "the target takes 2147483648 octets",                   \
	  cf_put32(m + REP_PRIV + 4, 0x80000000))                                                  \
	X(FAILS, 0, "rc-too-large", K_ACK, "it is answered", large_answer(s))                      \
	X(PASSES, 0, "rc-too-large", K_ACK, "", s->drop = s->p.syndrome >> 5 == 3)                 \
	X(PASSES, 0, "rc-too-large", K_ACK | K_DREQ, "",                                           \
	  s->drop = s->kind == K_DREQ || s->p.syndrome >> 5 == 3)                                  \
	X(FAILS, 0, "rc-mtu", IN | K_REQ, "a message of 5001 octets, we take 5000",                \
	  cf_put32(m + REQ_PRIV + 4, 9000))                                                        \
	X(FAILS, 0, "rc-mtu", K_RC, "4991 octets, not 4995",                                       \
	  if (s->p.op == CI_FIRST) longer(s, -4);                                                  \
	  else if (s->p.op == CI_LAST) s->p.len -= 4)                                              \
	X(FAILS, 0, "rc-mtu-used", IN | K_REQ, "4995 octets in 3 pieces",                          \
	  cf_put32(m + REQ_PRIV + 4, 2044))                                                        \
	X(FAILS, 0, "rc-mtu-used", K_REQ | K_RTU | BOTH, "4995 octets in 3 pieces", one_way(s))    \
	X(FAILS, 0, "rc-duplicate", IN | K_RC | K_ACK | BOTH,                                      \
	  "a packet that was repeated is answered",                                                \
	  if (s->kind == (IN | K_RC) && s->n > 1) s->p.psn = (s->p.psn + 1) & 0xffffff;            \
	  if (s->kind == K_ACK && s->n > 1) s->p.psn = (s->p.psn - 1) & 0xffffff)                  \
	X(FAILS, 0, "rc-duplicate", K_RC, "no answer to an echo", s->drop = s->n > 1)              \
	X(FAILS, 0, "rc-gap", K_ACK, "the NAK has PSN", s->p.psn ^= s->p.syndrome >> 5 == 3)       \
	X(FAILS, 0, "rc-gap", K_ACK, "NAK 61, not 60", s->p.syndrome |= s->p.syndrome >> 5 == 3)   \
	X(FAILS, 0, "rc-gap", K_ACK, "no NAK 60", s->drop = true)                                  \
	X(FAILS, 0, "rc-gap", K_ACK, "no NAK 60", s->p.syndrome = CI_AETH_ACK)                     \
	X(FAILS, 0, "rc-gap", K_ACK, "where an ACK is due",                                        \
	  if (s->n > 1) s->p.syndrome = CI_NAK_ACCESS)                                             \
	X(FAILS, 0, "rc-spoiled", IN | K_RC, "a packet that cannot be is answered",                \
	  if (s->n == 1) s->p.spoil = 0, s->p.reserved = 0x40)                                     \
	X(FAILS, 0, "rc-write", K_ACK, "syndrome 60", s->p.syndrome = CI_NAK_PSN)                  \
	X(FAILS, 0, "rc-order", K_ACK, "syndrome 62", s->p.syndrome = CI_NAK_ACCESS)               \
	X(PASSES, 0, "rc-read", K_ACK, "", s->p.syndrome = CI_NAK_ACCESS)                          \
	X(FAILS, 0, "rc-read", K_ACK, "no NAK", s->drop = true)                                    \
	X(FAILS, 0, "rc-wrap", K_ACK, "no ACK of PSN", s->drop = true)                             \
	X(FAILS, 0, "rc-wrap", K_ACK, "was the last one sent",                                     \
	  s->p.psn = (s->p.psn + 1) & 0xffffff)                                                    \
	X(FAILS, 0, "rc-wrap", K_ACK, "no ACK of PSN", s->p.psn = (s->p.psn - 1) & 0xffffff)       \
	X(FAILS, 0, "rc-arp-stays", K_ARP, "no answer to an ARP request in a datagram",            \
	  s->drop = s->n > 1)                                                                      \
	X(FAILS, 0, "rc-nd-stays", K_NA, "no neighbour advertisement", s->drop = true)             \
	X(FAILS, 0, "rc-nd-stays", K_NA, "a neighbour advertisement on a connection",              \
	  as_message(s))                                                                           \
	X(PASSES, 0, "rc-nd-stays", K_NA, "", s->lid = SUITE; m[1] ^= 1; ahead(s); m[1] ^= 1)      \
	X(PASSES, 0, "rc-read", K_ACK, "", stray_ack(s))                                           \
	X(PASSES, 0, "rc-gap", K_ACK, "", stray_ack(s))                                            \
	X(PASSES, 0, "rc-wrap", K_ACK, "", stray_ack(s))                                           \
	X(PASSES, 0, "rc-spoiled", K_ARP, "", if (s->n > 1) stray_ack(s))                          \
	X(PASSES, 0, "end-dead", K_ARP, "", if (s->n > 1) stray_ack(s))                            \
	X(PASSES, 0, "rc-nd-stays", K_NA, "", s->drop = s->n == 1)                                 \
	X(FAILS, 0, "rc-reserved", K_RC, "no answer to an echo", s->drop = s->n > 1)               \
	X(FAILS, 0, "rc-bad-frames", IN | K_RC, "one is answered",                                 \
	  if (cf_get16(m) == 0x1234) cf_put16(m, CI_IP4))                                          \
	X(PASSES, QUICKLY, "rc-bad-frames", K_RC, "", (void)s)                                     \
	X(PASSES, QUICKLY, "flipped-rtu", K_RC, "", (void)s)

LIES(lies_data, MESSAGE_LIES);
