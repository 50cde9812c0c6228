/* SPDX-License-Identifier: BSD-2-Clause */
/* A port of a fabric that cannot do what it is asked to, and what comes by it. */
#include "lies/ipoib/world.h"
#include <string.h>

static void make_lies_port_liar_mad(const uint8_t *m, size_t len)
{
	void *user;
	const struct ddps_ipoib_up *up = port_up(&user);

	up->mad(user, 1, m, len, world.now);
}

static void make_lies_port_liar_message(uint32_t qpn, const void *b, size_t len)
{
	void *user;
	const struct ddps_ipoib_up *up = port_up(&user);

	up->qp(user, qpn, b, len, world.now);
}

static void put_lies_port_liar_frame(uint32_t qpn, uint8_t lid, const void *b, size_t len)
{
	struct ddps_ipoib_ud_from from = { .qpn = qpn, .has_gid = lid, .slid = lid };
	void *user;
	const struct ddps_ipoib_up *up = port_up(&user);

	memcpy(from.gid, world.ci->target.lla + 4, sizeof from.gid);
	from.gid[15] = lid;
	up->ud(user, &from, b, len, world.now);
}

static void note_lies_port_liar_failed(uint32_t qpn, int err)
{
	void *user;
	const struct ddps_ipoib_up *up = port_up(&user);

	up->qp_error(user, qpn, err, world.now);
}

static void take_lies_port_liar_down(void)
{
	void *user;
	const struct ddps_ipoib_up *up = port_up(&user);

	up->link(user, true, world.now);
	up->link(user, false, world.now);
}

static void flood_lies_port_liar(void)
{
	for (unsigned k = 0; k < 5000; k++)
		put_lies_port_liar_frame(0x77, STRANGER, "\x08", 1);
	make_lies_port_liar_message(1, "\x08", 1);
	note_lies_port_liar_failed(1, DDPS_E_TIMEDOUT);
}

#define BAD_ENCAP "encapsulation header 08 00 "

#define PORT_LIES(X)                                                                               \
	X(REFUSED, BY_PORT, "ud-echo", K_START, "the cable is out", world.port.blind = true)       \
	X(REFUSED, BY_PORT, "ud-echo", K_START, "the broadcast group cannot be joined",            \
	  world.port.join = DDPS_E_LIMIT)                                                          \
	X(REFUSED, BY_PORT, "ud-echo", K_START, "the broadcast group: the fabric gives no answer", \
	  world.port.deaf = true)                                                                  \
	X(REFUSED, BY_PORT, "ud-echo", K_START, "cannot be joined (error -21",                     \
	  world.port.refused = true)                                                               \
	X(REFUSED, BY_PORT, "ud-echo", K_START, "cannot be asked for",                             \
	  world.port.resolve = DDPS_E_LIMIT)                                                       \
	X(REFUSED, BY_PORT, "ud-echo", K_START, "the path to the target: the fabric gives no",     \
	  world.port.no_answer = true)                                                             \
	X(REFUSED, BY_PORT, "ud-echo", K_START, "there is no path to the target's GID",            \
	  world.port.no_path = true)                                                               \
	X(FAILS, BY_PORT, "cm-rep", K_BEGIN, "the port gives no queue pair",                       \
	  world.port.create = DDPS_E_LIMIT)                                                        \
	X(FAILS, BY_PORT, "cm-rep", K_BEGIN, "is not made ready", world.port.ready = DDPS_E_LIMIT) \
	X(PASSES, BY_PORT, "cm-rep", K_BEGIN, "", world.port.mad_again = 3)                        \
	X(FAILS, BY_PORT, "cm-rep", K_BEGIN, "the port does not send a MAD",                       \
	  world.port.mad_again = 100000)                                                           \
	X(PASSES, BY_PORT, "ud-echo", K_BEGIN, "", world.port.again = 3)                           \
	X(FAILS, BY_PORT, "ud-echo", K_BEGIN, "does not answer ARP", world.port.again = 1000000)   \
	X(PASSES, BY_PORT, "rc-echo", K_REP, "", world.port.again = 3)                             \
	X(FAILS, BY_PORT, "rc-echo", K_REP, "no answer to an echo", world.port.again = 1000000)    \
	X(FAILS, BY_PORT, "arp-moved", K_BEGIN, "the same queue pair", world.port.qpn = 0x123456)  \
	X(SKIPS, BY_PORT, "cm-rep", K_BEGIN, "no queue pair number is", world.port.says = 1)       \
	X(SKIPS, BY_PORT, "cm-rep", K_BEGIN, "no queue pair number is",                            \
	  world.port.says = 0xffffff)                                                              \
	X(SKIPS, BY_PORT, "cross-smaller", K_BEGIN, "no queue pair number is smaller than",        \
	  world.port.qpn = 0x400000)                                                               \
	X(SKIPS, BY_PORT, "cross-larger", K_BEGIN, "no queue pair number is larger than",          \
	  world.port.qpn = 0x200000)                                                               \
	X(PASSES, BY_PORT, "cross-smaller", K_BEGIN, "", world.port.qpn = 0x200000)                \
	X(FAILS, BY_PORT, "cm-second", K_BEGIN, "not all that was sent is acknowledged",           \
	  world.port.never = true)                                                                 \
	X(FAILS, BY_PORT, "cm-second", K_REP, "fails before all is acknowledged",                  \
	  if (s->n == 2) note_lies_port_liar_failed(world.ci->qp[1].qpn, DDPS_E_TIMEDOUT))         \
	X(FAILS, BY_PORT, "end-dead", K_ACK | K_DREQ | K_DREP | K_ECHO | BOTH,                     \
	  "is over acknowledges", s->drop = s->kind == K_ECHO;                                     \
	  if (s->kind == (IN | K_DREQ) && s->n == 1) m[CM_REMOTE] ^= 0x40;                         \
	  if (s->kind == K_DREP && s->n == 1) m[CM_LOCAL] ^= 0x40)                                 \
	X(FAILS, BY_PORT, "ud-echo", K_ECHO, "the port went down", take_lies_port_liar_down())     \
	X(FAILS, BY_PORT, "ud-echo", K_ECHO, "more comes from the fabric than can be kept",        \
	  flood_lies_port_liar())                                                                  \
	X(FAILS, BY_PORT, "ud-echo", K_ECHO, "more comes from the target than can be kept",        \
	  for (unsigned k = 0; k < 2 * CI_KEPT; k++)                                               \
		  put_lies_port_liar_frame(TARGET_QPN, TARGET, m, 84))                             \
	X(                                                                                         \
		PASSES, BY_PORT | EARLY, "ud-echo", K_ARP, "", if (s->n == 1) {                    \
			static uint8_t b[CI_MAD];                                                  \
			ci_mad(b, 7, 3, CI_REP, 1);                                                \
			make_lies_port_liar_mad(b, sizeof b);                                      \
		})                                                                                 \
	X(PASSES, BY_PORT, "rc-echo", K_RC, "",                                                    \
	  make_lies_port_liar_message(0x77, "\x08\0\0\0", 4);                                      \
	  note_lies_port_liar_failed(0x77, DDPS_E_TIMEDOUT); make_lies_port_liar_mad(m, 100))      \
	X(FAILS, BY_PORT, "whole-encapsulation", K_RC, BAD_ENCAP "01 00", m[2] = 1)                \
	X(FAILS, BY_PORT, "whole-encapsulation", K_RC, BAD_ENCAP "00 01", m[3] = 1)                \
	X(FAILS, BY_PORT, "whole-encapsulation", K_RC, "encapsulation header 08",                  \
	  make_lies_port_liar_message(world.ci->qp[0].qpn, "\x08", 1))                             \
	X(FAILS, BY_PORT, "whole-encapsulation", K_ECHO, BAD_ENCAP "01 00", m[2] = 1)              \
	X(FAILS, BY_PORT, "whole-encapsulation", K_ECHO, BAD_ENCAP "00 01", m[3] = 1)              \
	X(FAILS, BY_PORT, "whole-encapsulation", K_ECHO, "encapsulation header 08",                \
	  put_lies_port_liar_frame(TARGET_QPN, TARGET, "\x08", 1))                                 \
	X(FAILS, BY_PORT, "whole-source", K_ECHO, "a datagram from queue pair 000077",             \
	  put_lies_port_liar_frame(0x77, TARGET, m, s->p.len))                                     \
	X(PASSES, BY_PORT, "whole-source", K_ECHO, "",                                             \
	  put_lies_port_liar_frame(0x77, STRANGER, m, s->p.len);                                   \
	  put_lies_port_liar_frame(0x77, 0, m, s->p.len))                                          \
	X(                                                                                         \
		PASSES, BY_PORT, "ud-echo", K_ECHO, "", if (s->n == 1) {                           \
			static uint8_t b[5000];                                                    \
			put_lies_port_liar_frame(TARGET_QPN, TARGET, b, sizeof b);                 \
		})                                                                                 \
	X(                                                                                         \
		PASSES, BY_PORT, "req-fields", K_REQ, "", if (s->n == 1) {                         \
			m[REQ_LGID + 15] ^= 1;                                                     \
			ahead(s);                                                                  \
			m[REQ_LGID + 15] ^= 1;                                                     \
		})                                                                                 \
	X(PASSES, BY_PORT, "req-fields", K_REQ, "", m[REQ_MTU] = 0x57)                             \
	X(FAILS, BY_PORT | FOR_LONG, "end-own-dreq", K_DREQ, "queue pair ", m[DREQ_QPN] ^= 1)      \
	X(FAILS, BY_PORT, "rtu", K_RTU, "another transaction ID", m[15] ^= 1)                      \
	X(FAILS, BY_PORT, "nd-advertisement", K_NA, "no neighbour advertisement", s->drop = true)

LIES(lies_port, PORT_LIES);
