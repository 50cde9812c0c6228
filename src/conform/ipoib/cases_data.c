/* SPDX-License-Identifier: BSD-2-Clause */
/* Data on connections (RFC 4755 sections 4, 5 and 7; IBA volume 1, 9.7). */
#include "conform/ipoib/peer.h"
#include <string.h>

#define ECHO 84u

/* A connection of ours; what the target says comes on it, or on its own, or in datagrams. */
static struct ci_conn *open_connection(struct ci *ci)
{
	ci_meet(ci, CI_RC_FLAG);
	ci->accept = true;
	return ci_connect(ci, true);
}

static void echo_of(struct ci *ci, struct ci_conn *c, size_t ip_len, struct ci_reply *r)
{
	uint64_t until = ci_limit(ci, CI_PART_DATA);

	/* the first ones may be dropped while it connects or learns the MTU */
	while (cf_now() < until) {
		ci_echo_rc(ci, c, ip_len);
		if (ci_replied(ci, ci->seq, ci_part(ci, CI_PART_DATA, 5), r))
			return;
	}
	ci_fail(ci, "no answer to an echo of %zu octets", ip_len);
}

static void check_rc_echo(struct ci *ci)
{
	struct ci_conn *c = open_connection(ci);
	struct ci_reply r;

	echo_of(ci, c, ECHO, &r);
	CI_CHECK(ci, r.len == ECHO && r.pieces == 1, "%zu octets in %u pieces", r.len, r.pieces);
}

static void pads(struct ci *ci)
{
	struct ci_conn *c = open_connection(ci);
	struct ci_reply r;

	for (size_t n = ECHO; n < ECHO + 4; n++) {
		echo_of(ci, c, n, &r);
		CI_CHECK(ci, r.len == n, "%zu octets, not %zu", r.len, n);
	}
}

/* Around one and two packets. */
static void check_rc_packets(struct ci *ci)
{
	struct ci_conn *c = open_connection(ci);
	size_t mtu = c->qp->mtu;
	struct ci_reply r;

	for (size_t n = mtu - 1; n <= 2 * mtu + 1; n = n == mtu + 1 ? 2 * mtu - 1 : n + 1) {
		echo_of(ci, c, n - CI_ENCAP, &r);
		CI_CHECK(ci, r.len == n - CI_ENCAP, "%zu octets, not %zu", r.len, n - CI_ENCAP);
	}
}

static void check_rc_large(struct ci *ci)
{
	struct ci_conn *c = open_connection(ci);
	size_t n = c->rx_mtu < CI_RX_MTU ? c->rx_mtu - CI_ENCAP : CI_RX_MTU - CI_ENCAP;
	struct ci_reply r;

	CI_CHECK(ci, c->rx_mtu >= 72, "a Receive MTU of %u", c->rx_mtu);
	echo_of(ci, c, n, &r);
	CI_CHECK(ci, r.len == n, "%zu octets, not %zu", r.len, n);
}

/* One octet more than it takes: the connection may end, the target may not. */
static void too_large(struct ci *ci)
{
	struct ci_conn *c = open_connection(ci);
	struct ci_ev *e;
	struct ci_reply r;
	uint64_t until;
	uint32_t seq;

	if (c->rx_mtu >= CI_MSG_MAX - 8)
		ci_skip(ci, "the target takes %u octets", c->rx_mtu);
	ci_echo(ci, ci->frame, 65535);
	seq = ci->seq;
	ci_qp_send(ci, c->qp, ci->frame, c->rx_mtu + 1);
	until = cf_now() + 1000000000;
	while ((e = ci_await(ci, CI_EV_ACK | CI_EV_CM, until)))
		if (e->kind == CI_EV_CM || e->syndrome >> 5 == 3)
			break;
	CI_CHECK(ci, !ci_replied(ci, seq, 0, &r), "it is answered");
	ci->accept = false;
	ci_forget(ci);
	ci_meet(ci, 0);
	ci_alive(ci);
}

/* What the target sends obeys our Receive MTU: around it. */
static void rx_mtu(struct ci *ci)
{
	const size_t max = ci->rx_mtu = 5000;
	struct ci_conn *c = open_connection(ci);
	struct ci_reply r;

	for (size_t n = max - CI_ENCAP - 1; n <= max - CI_ENCAP + 1; n++) {
		echo_of(ci, c, n, &r);
		CI_CHECK(ci, r.len == n, "%zu octets, not %zu", r.len, n);
		CI_CHECK(ci, r.largest <= max, "a message of %zu octets, we take %zu", r.largest,
			 max);
	}
}

/* And what fits is not cut. */
static void rx_mtu_used(struct ci *ci)
{
	const size_t max = ci->rx_mtu = 5000;
	struct ci_conn *c = open_connection(ci);
	struct ci_reply r;

	for (size_t n = max - CI_ENCAP - 1; n <= max - CI_ENCAP; n++) {
		for (unsigned tries = 0; tries < 3; tries++) {
			echo_of(ci, c, n, &r);
			if (r.connected)
				break;
		}
		CI_CHECK(ci, r.connected && r.pieces == 1, "%zu octets in %u pieces", r.len,
			 r.pieces);
	}
}

/* ---- reliable connections ---- */

static void check_rc_duplicate(struct ci *ci)
{
	struct ci_conn *c = open_connection(ci);
	struct ci_reply r;
	size_t n;
	uint32_t psn;

	n = ci_echo(ci, ci->frame, ECHO);
	psn = c->qp->psn;
	ci_qp_send(ci, c->qp, ci->frame, n);
	ci_want_acked(ci, c->qp);
	ci_want_reply(ci, ci->seq, &r);
	c->qp->psn = psn;
	n = ci_echo(ci, ci->frame, ECHO); /* another number: an answer shows that it was taken */
	ci->never = ci->seq;
	ci_qp_send(ci, c->qp, ci->frame, n);
	ci_want_acked(ci, c->qp);
	ci_echo_rc(ci, c, ECHO);
	ci_want_reply(ci, ci->seq, &r);
}

static void gap(struct ci *ci)
{
	struct ci_conn *c = open_connection(ci);
	uint32_t psn = c->qp->psn;

	c->qp->psn = (psn + 1) & 0xffffff;
	ci_echo_rc(ci, c, ECHO);
	CI_CHECK(ci, ci_want_nak(ci, c->qp, CI_NAK_PSN) == psn, "the NAK has PSN %06x, not %06x",
		 ci->at->psn, psn);
	c->qp->psn = psn;
	ci_echo_rc(ci, c, ECHO);
	ci_want_acked(ci, c->qp);
}

static void spoiled(struct ci *ci)
{
	struct ci_conn *c = open_connection(ci);
	struct ci_pkt p = { .op = CI_ONLY,
			    .pkey = ci->plan.pkey,
			    .qpn = c->qp->peer,
			    .psn = c->qp->psn,
			    .ack_req = true,
			    .data = ci->frame,
			    .spoil = 1 };
	struct ci_ev *e;

	p.len = ci_echo(ci, ci->frame, ECHO);
	ci_packet(ci, ci->target.lid, &p);
	p.spoil = 0;
	p.pkey ^= 1;
	ci_packet(ci, ci->target.lid, &p);
	ci_ud_quiet(ci);
	while ((e = ci_await(ci, CI_EV_ACK, 0)))
		CI_CHECK(ci, e->qp != c->qp, "a packet that cannot be is answered");
	ci_echo_rc(ci, c, ECHO);
	ci_want_acked(ci, c->qp);
}

/* These end the connection. */
static void check_rc_refused(struct ci *ci, unsigned op, bool access)
{
	struct ci_conn *c = open_connection(ci);
	uint8_t b[64] = { 0 };
	uint64_t until = ci_limit(ci, CI_PART_DATA);
	const struct ci_ev *e;

	ci_qp_packet(ci, c->qp, op, b, op == CI_READ ? 0 : sizeof b);
	while ((e = ci_await(ci, CI_EV_ACK, until)))
		if (e->qp == c->qp) {
			CI_CHECK(ci,
				 e->syndrome == CI_NAK_REQUEST ||
					 (access && e->syndrome == CI_NAK_ACCESS),
				 "syndrome %02x", e->syndrome);
			return;
		}
	ci_fail(ci, "no NAK");
}

CI_CALL(rdma_write, check_rc_refused(ci, CI_WRITE_ONLY, true));
CI_CALL(rdma_read, check_rc_refused(ci, CI_READ, true));
CI_CALL(out_of_order, check_rc_refused(ci, CI_LAST, false));

/* Five hundred messages across the end of the numbers of packets. */
static void wrap(struct ci *ci)
{
	struct ci_conn *c;

	ci_meet(ci, 0);
	c = ci_req(ci);
	c->qp->first = c->qp->epsn = 0xffffe0;
	ci_put24(c->req + REQ_PSN, c->qp->first);
	ci_cm_send(ci, c->req);
	ci_rep_in(ci, c, ci_want(ci, CI_REP));
	ci_rtu(ci, c, true);
	for (unsigned i = 0; i < 80; i++) {
		ci_echo_rc(ci, c, ECHO);
		ci_want_acked(ci, c->qp);
	}
}

/* ---- what comes by which way ---- */

static void arp_stays(struct ci *ci)
{
	struct ci_conn *c = open_connection(ci);
	struct ci_reply r;
	uint8_t b[64];

	echo_of(ci, c, ECHO, &r);
	ci_ud_send(ci, b, ci_arp(ci, b, 1, ci->me.ip, ci->plan.target));
	CI_CHECK(ci, ci_arp_reply(ci, ci->me.ip, ci_limit(ci, CI_PART_LINK), false),
		 "no answer to an ARP request in a datagram");
}

static void nd_stays(struct ci *ci)
{
	struct ci_conn *c = open_connection(ci);
	struct ci_reply r;
	struct ci_ev *e;
	uint8_t b[128];
	uint64_t until;

	echo_of(ci, c, ECHO, &r);
	for (unsigned i = 0; i < 3; i++) {
		ci_ns_send(ci, b, ci_ns(ci, b));
		until = cf_now() + (ci_limit(ci, CI_PART_LINK) - cf_now()) / 3;
		while ((e = ci_await(ci, CI_EV_FRAME | CI_EV_MSG, until)))
			if (ci_na_ok(ci, e->b, e->len)) {
				CI_CHECK(ci, e->kind == CI_EV_FRAME,
					 "a neighbour advertisement on a connection");
				return;
			}
	}
	ci_fail(ci, "no neighbour advertisement");
}

static void check_rc_reserved(struct ci *ci)
{
	struct ci_conn *c = open_connection(ci);
	struct ci_reply r;
	size_t n;

	echo_of(ci, c, ECHO, &r);
	n = ci_echo(ci, ci->frame, ECHO);
	cf_put16(ci->frame + 2, 0xa55a);
	ci_qp_send(ci, c->qp, ci->frame, n);
	ci_want_reply(ci, ci->seq, &r);
}

static void check_rc_bad_frames(struct ci *ci)
{
	struct ci_conn *c = open_connection(ci);
	struct ci_reply r;
	size_t n;

	echo_of(ci, c, ECHO, &r);
	n = ci_echo(ci, ci->frame, ECHO);
	cf_put16(ci->frame, 0x1234);
	ci_qp_send(ci, c->qp, ci->frame, n);
	cf_put16(ci->frame, CI_IP6);
	ci_qp_send(ci, c->qp, ci->frame, n);
	cf_put16(ci->frame, CI_IP4);
	ci_qp_send(ci, c->qp, ci->frame, n - 1);
	ci_qp_send(ci, c->qp, ci->frame, CI_ENCAP + 1);
	if (ci->plan.thorough)
		for (size_t k = 1; k < CI_ENCAP; k++)
			ci_qp_send(ci, c->qp, ci->frame, k);
	ci_want_acked(ci, c->qp);
	CI_CHECK(ci, !ci_replied(ci, ci->seq, cf_now() + 50000000, &r), "one is answered");
	ci_echo_rc(ci, c, ECHO);
	ci_want_reply(ci, ci->seq, &r);
}

const struct ci_case ci_cases_data[] = {
	{ "rc-echo", "4755-7-2 4755-4-1 4755-5-3", "an echo on a connection", 0, check_rc_echo },
	{ "rc-pads", "4755-4-1", "of all pads", 0, pads },
	{ "rc-packets", "4755-5-4", "around one and two packets", 0, check_rc_packets },
	{ "rc-large", "4755-5.1-1 4755-5-4 4755-5-5", "of all that the target says it takes", 0,
	  check_rc_large },
	{ "rc-too-large", "4755-5.1-1", "more than that does no harm", 0, too_large },
	{ "rc-mtu", "4755-5.1-2 4755-5.1-4 4755-5.1-5 4755-7.2-1",
	  "nothing longer than our Receive MTU comes", 0, rx_mtu },
	{ "rc-mtu-used", "4755-5.1-4 4755-5.1-5", "what fits comes in one message", 0,
	  rx_mtu_used },
	{ "rc-duplicate", "", "a repeated packet is acknowledged, not taken again (IBA 9.7.5.1.2)",
	  CI_NEEDS_PACKETS, check_rc_duplicate },
	{ "rc-gap", "", "a gap: NAK with the PSN that is expected (IBA 9.7.5.2.1)",
	  CI_NEEDS_PACKETS, gap },
	{ "rc-spoiled", "", "wrong ICRC or P_Key: dropped (IBA 9.6.1)", CI_NEEDS_PACKETS, spoiled },
	{ "rc-write", "", "an RDMA Write is refused (IBA 9.7.5.2.3)", CI_NEEDS_PACKETS,
	  rdma_write },
	{ "rc-read", "", "an RDMA Read is refused (IBA 9.7.5.2.3)", CI_NEEDS_PACKETS, rdma_read },
	{ "rc-order", "", "a Last without a First is refused (IBA 9.7.4.1.2)", CI_NEEDS_PACKETS,
	  out_of_order },
	{ "rc-wrap", "", "packet numbers wrap (IBA 9.7.1)", 0, wrap },
	{ "rc-arp-stays", "4755-7-4 4755-2.2-2", "ARP replies are datagrams, connected or not", 0,
	  arp_stays },
	{ "rc-nd-stays", "4755-7-4", "so are neighbour advertisements", CI_NEEDS_IP6, nd_stays },
	{ "rc-reserved", "4391-6-3 4755-4-1",
	  "reserved octets of the encapsulation header mean nothing", 0, check_rc_reserved },
	{ "rc-bad-frames", "4755-8-1 4391-6-4", "short frames and other types are dropped", 0,
	  check_rc_bad_frames },
	{ 0 },
};
