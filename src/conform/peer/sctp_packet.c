/* SPDX-License-Identifier: BSD-2-Clause */
/* Associations of the peer's, packet by packet: RFC 9260 sections 5, 8 and 9, RFC 6951. */
#include "conform/peer/sctp_packet.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define HEADER	     12u
#define T_BIT	     1u
#define P_COOKIE     7u
#define P_ADAPTATION 0xc006u /* RFC 5061 section 4.2.6 */
#define INVITED_MAX  16u

/* ---- packets ---- */

void cf_pkt_begin(struct cf_pkt *p, const struct cf_link *l, uint32_t tag)
{
	p->len = HEADER;
	cf_put16(p->b, l->port);
	cf_put16(p->b + 2, l->peer_port);
	cf_put32(p->b + 4, tag);
	cf_put32(p->b + 8, 0);
}

uint8_t *cf_pkt_chunk(struct cf_pkt *p, uint8_t type, uint8_t flags, size_t len)
{
	uint8_t *c = p->b + p->len;

	c[0] = type;
	c[1] = flags;
	cf_put16(c + 2, (uint16_t)(4 + len));
	memset(c + 4 + len, 0, -len & 3);
	p->len += 4 + len + (-len & 3);
	return c + 4;
}

/* The checksum goes out least significant octet first: RFC 9260 appendix A. */
uint32_t cf_pkt_sum(uint8_t *b, size_t len)
{
	uint32_t sum;

	memset(b + 8, 0, 4);
	sum = cf_crc32c(b, len);
	return sum >> 24 | (sum >> 8 & 0xff00) | (sum & 0xff00) << 8 | sum << 24;
}

void cf_pkt_send_as_is(const struct cf_pkt *p, const struct cf_link *l)
{
	const struct sockaddr *to = l->own_fd ? NULL : (const struct sockaddr *)&l->to;

	/* What is lost here is sent again like what is lost on the way.  An ICMP error is of an earlier packet, and this
	 * one has not left: whoever waits for its answer finds its own. */
	for (int tries = 0; tries < 2; tries++)
		if (sendto(l->fd, p->b, p->len, MSG_NOSIGNAL, to, to ? l->to_len : 0) >= 0 ||
		    errno != ECONNREFUSED)
			break;
}

void cf_pkt_send(struct cf_pkt *p, const struct cf_link *l)
{
	uint32_t sum = cf_pkt_sum(p->b, p->len);

	cf_put32(p->b + 8, sum);
	cf_pkt_send_as_is(p, l);
}

/* A packet of one chunk without content. */
static void send_bare(struct cf_link *l, uint8_t type)
{
	struct cf_pkt p;

	cf_pkt_begin(&p, l, l->peer_tag);
	cf_pkt_chunk(&p, type, 0, 0);
	cf_pkt_send(&p, l);
}

void cf_link_timer(struct cf_link *l)
{
	l->due = cf_now() + l->rto_ms * 1000000ull;
}

static void end_peer_link(struct cf_link *l)
{
	l->state = CF_L_OVER;
	l->due = UINT64_MAX;
	cf_link_drop(l);
}

/* ---- set-up ---- */

struct cf_link *cf_link_new(struct cf_net *n, int fd, bool own_fd)
{
	struct cf_below *b = n->below;
	struct cf_link *l = calloc(1, sizeof *l);
	uint32_t seed[3];

	if (!l)
		return NULL;
	if (getrandom(seed, sizeof seed, 0) != sizeof seed) {
		free(l);
		return NULL;
	}
	l->tag = seed[0] | 1;
	l->tsn = seed[1];
	l->port = (uint16_t)(49152 + seed[2] % 16384);
	l->net = n;
	l->fd = fd;
	l->own_fd = own_fd;
	l->due = UINT64_MAX;
	l->rto_ms = CF_RTO_MIN_MS;
	l->out_end = &l->out;
	l->window = 16;
	l->told = CF_RWND;
	l->next = b->links;
	b->links = l;
	return l;
}

/* INIT, or INIT ACK with the cookie (RFC 9260 sections 3.3.2 and 3.3.3). */
static void send_link_init(struct cf_link *l, uint8_t type, uint32_t tag)
{
	size_t cookie = type == CF_C_INIT_ACK ? 4 + l->cookie_len : 0;
	struct cf_pkt p;
	uint8_t *c;

	cf_pkt_begin(&p, l, tag);
	c = cf_pkt_chunk(&p, type, 0, 16 + 8 + cookie);
	cf_put32(c, l->tag);
	cf_put32(c + 4, CF_RWND);
	cf_put16(c + 8, CF_SCTP_STREAMS);
	cf_put16(c + 10, CF_SCTP_STREAMS);
	cf_put32(c + 12, l->tsn);
	cf_put16(c + 16, P_ADAPTATION);
	cf_put16(c + 18, 8);
	cf_put32(c + 20, CF_SCTP_DDP);
	if (cookie) {
		cf_put16(c + 24, P_COOKIE);
		cf_put16(c + 26, (uint16_t)cookie);
		memcpy(c + 28, l->cookie, l->cookie_len);
	}
	cf_pkt_send(&p, l);
}

static void send_cookie(struct cf_link *l)
{
	struct cf_pkt p;

	cf_pkt_begin(&p, l, l->peer_tag);
	memcpy(cf_pkt_chunk(&p, CF_C_COOKIE_ECHO, 0, l->cookie_len), l->cookie, l->cookie_len);
	cf_pkt_send(&p, l);
}

/* What INIT and INIT ACK have in common.  Return: false: it is none. */
static bool take_init(struct cf_link *l, const uint8_t *c, size_t len)
{
	if (len < 16 || !cf_get32(c) || !cf_get16(c + 8) || !cf_get16(c + 10))
		return false;
	l->peer_tag = cf_get32(c);
	l->rwnd = cf_get32(c + 4);
	l->cum = cf_get32(c + 12) - 1;
	return true;
}

/* For messages about waiting: how far the set-up has come. */
static void note_link(const struct cf_link *l, const char *note)
{
	if (l->as)
		l->as->note = note;
}

static void on_init_ack(struct cf_link *l, const uint8_t *c, size_t len)
{
	if (l->state != CF_L_INIT_SENT || !take_init(l, c, len))
		return;
	note_link(l, "its INIT ACK has no cookie that fits");
	for (size_t off = 16; off + 4 <= len;) {
		size_t n = cf_get16(c + off + 2);

		if (n < 4 || off + n > len)
			break;
		if (cf_get16(c + off) == P_ADAPTATION)
			l->ddp = n == 8 && cf_get32(c + off + 4) == CF_SCTP_DDP;
		if (cf_get16(c + off) == P_COOKIE && n - 4 <= sizeof l->cookie && !l->cookie_len) {
			memcpy(l->cookie, c + off + 4, n - 4);
			l->cookie_len = n - 4;
		}
		off += n + (-n & 3);
	}
	if (!l->cookie_len)
		return;
	note_link(l, "it has answered INIT, and not COOKIE ECHO");
	l->state = CF_L_ECHOED;
	l->rto_ms = CF_RTO_MIN_MS;
	send_cookie(l);
	cf_link_timer(l);
}

/* The oldest of those invited, if there are as many as there may be, makes room. */
static void drop_oldest_invited(struct cf_below *b)
{
	struct cf_link *oldest = NULL;
	unsigned n = 0;

	for (struct cf_link *l = b->links; l; l = l->next)
		if (l->state == CF_L_INVITED) {
			oldest = l;
			n++;
		}
	if (n >= INVITED_MAX)
		end_peer_link(oldest);
}

static void on_init(struct cf_net *n, const struct sockaddr_storage *from, socklen_t from_len,
		    uint16_t peer_port, const uint8_t *c, size_t len)
{
	struct cf_below *b = n->below;
	struct cf_link *l;

	for (l = b->links; l; l = l->next)
		if (len >= 4 && l->peer_tag == cf_get32(c) && l->peer_port == peer_port)
			break; /* once more: the same answer */
	if (l && l->state != CF_L_INVITED)
		return;
	if (!l) {
		drop_oldest_invited(b);
		l = cf_link_new(n, b->listen_fd, false);
		if (!l)
			return;
		l->state = CF_L_INVITED;
		l->port = b->port;
		l->peer_port = peer_port;
		l->cookie_len = 16;
		if (!take_init(l, c, len) || getrandom(l->cookie, 16, 0) != 16) {
			end_peer_link(l);
			return;
		}
	}
	l->to = *from;
	l->to_len = from_len;
	send_link_init(l, CF_C_INIT_ACK, l->peer_tag);
}

static void on_cookie(struct cf_link *l, const uint8_t *c, size_t len)
{
	if (len != l->cookie_len || memcmp(c, l->cookie, len) != 0)
		return;
	if (l->state == CF_L_INVITED) {
		l->as = cf_sctp_accept(l->net);
		if (!l->as)
			return; /* nobody waits yet: the target asks again */
		l->as->below = l;
		l->state = CF_L_UP;
	}
	send_bare(l, CF_C_COOKIE_ACK);
}

static void on_cookie_ack(struct cf_link *l)
{
	if (l->state != CF_L_ECHOED)
		return;
	l->state = CF_L_UP;
	l->due = UINT64_MAX;
	l->rto_ms = CF_RTO_MIN_MS;
	l->as->up = true;
	note_link(l, l->ddp ? NULL
			    : "its INIT ACK does not name DDP: adaptation indication 1, RFC 5043 "
			      "section 5.1");
}

/* ---- ends ---- */

static void send_link_shutdown(struct cf_link *l)
{
	struct cf_pkt p;

	cf_pkt_begin(&p, l, l->peer_tag);
	cf_put32(cf_pkt_chunk(&p, CF_C_SHUTDOWN, 0, 4), l->cum);
	cf_pkt_send(&p, l);
}

/* All that was sent has arrived, and an end is due. */
void cf_link_go_on(struct cf_link *l)
{
	if (l->state != CF_L_SHUTDOWN_DUE || l->out)
		return;
	l->state = CF_L_SHUTDOWN_SENT;
	send_link_shutdown(l);
	cf_link_timer(l);
}

/* What we have not sent by now the target does not want. */
static void take_link_shutdown(struct cf_link *l, const uint8_t *c, size_t len)
{
	if (len < 4 || l->state < CF_L_UP)
		return;
	cf_link_acked(l, cf_get32(c));
	l->state = CF_L_SHUTDOWN_ACK_SENT;
	send_bare(l, CF_C_SHUTDOWN_ACK);
	cf_link_timer(l);
}

static void on_shutdown_ack(struct cf_link *l)
{
	if (l->state != CF_L_SHUTDOWN_SENT && l->state != CF_L_SHUTDOWN_ACK_SENT)
		return;
	send_bare(l, CF_C_SHUTDOWN_COMPLETE);
	cf_sctp_gone(l->as, "an orderly SHUTDOWN");
	end_peer_link(l);
}

static void on_abort(struct cf_link *l, const uint8_t *c, size_t len)
{
	if (l->as && len >= 4)
		cf_sctp_gone(l->as, "the target sent ABORT, cause %u", cf_get16(c));
	else if (l->as)
		cf_sctp_gone(l->as, "the target sent ABORT");
	end_peer_link(l);
}

void cf_link_dial(struct cf_link *l)
{
	l->state = CF_L_INIT_SENT;
	note_link(l, "nothing has come from it");
	send_link_init(l, CF_C_INIT, 0);
	cf_link_timer(l);
}

void cf_link_abort(struct cf_link *l)
{
	if (l->state > CF_L_INVITED && l->state != CF_L_OVER) {
		struct cf_pkt p;

		cf_pkt_begin(&p, l, l->peer_tag);
		cf_put32(cf_pkt_chunk(&p, CF_C_ABORT, 0, 4), 12u << 16 | 4); /* by the user */
		cf_pkt_send(&p, l);
	}
	end_peer_link(l);
}

/* ---- what comes ---- */

static void on_chunk(struct cf_link *l, uint8_t type, uint8_t flags, const uint8_t *c, size_t len)
{
	struct cf_pkt p;

	switch (type) {
	case CF_C_DATA:
		if (l->state >= CF_L_UP)
			cf_link_data(l, flags, c, len);
		break;
	case CF_C_SACK:
		if (l->state >= CF_L_UP)
			cf_link_sack(l, c, len);
		break;
	case CF_C_INIT_ACK:
		on_init_ack(l, c, len);
		break;
	case CF_C_COOKIE_ECHO:
		on_cookie(l, c, len);
		break;
	case CF_C_COOKIE_ACK:
		on_cookie_ack(l);
		break;
	case CF_C_HEARTBEAT:
		cf_pkt_begin(&p, l, l->peer_tag);
		memcpy(cf_pkt_chunk(&p, CF_C_HEARTBEAT_ACK, 0, len), c, len);
		cf_pkt_send(&p, l);
		break;
	case CF_C_ABORT:
		on_abort(l, c, len);
		break;
	case CF_C_SHUTDOWN:
		take_link_shutdown(l, c, len);
		break;
	case CF_C_SHUTDOWN_ACK:
		on_shutdown_ack(l);
		break;
	case CF_C_SHUTDOWN_COMPLETE:
		if (l->state == CF_L_SHUTDOWN_ACK_SENT) {
			cf_sctp_gone(l->as, "an orderly SHUTDOWN");
			end_peer_link(l);
		}
		break;
	default:
		break;
	}
}

static void on_chunks(struct cf_link *l, const uint8_t *b, size_t len)
{
	for (size_t off = HEADER; off + 4 <= len && l->state != CF_L_OVER;) {
		size_t n = cf_get16(b + off + 2);

		if (n < 4 || off + n > len)
			break;
		/* RFC 9260 3.2: of an unknown type, the upper bit says whether to go on. */
		if (b[off] > CF_C_SHUTDOWN_COMPLETE && !(b[off] & 0x80))
			break;
		on_chunk(l, b[off], b[off + 1], b + off + 4, n - 4);
		off += n + (-n & 3);
	}
	if (l->state == CF_L_OVER)
		return;
	if (l->sack_due) {
		cf_link_send_sack(l);
		if (l->state == CF_L_SHUTDOWN_SENT)
			send_link_shutdown(l);
	}
	cf_link_go_on(l);
}

/* Whose packet it is: its tag says so (RFC 9260 section 8.5). */
static struct cf_link *find_packet_link(struct cf_below *b, int fd, const uint8_t *p)
{
	uint32_t tag = cf_get32(p + 4);
	bool reflected = (p[HEADER] == CF_C_ABORT || p[HEADER] == CF_C_SHUTDOWN_COMPLETE) &&
			 p[HEADER + 1] & T_BIT;

	for (struct cf_link *l = b->links; l; l = l->next)
		if (l->state != CF_L_OVER && l->fd == fd && l->peer_port == cf_get16(p) &&
		    l->port == cf_get16(p + 2) && tag == (reflected ? l->peer_tag : l->tag))
			return l;
	return NULL;
}

/* A packet of the target's that is passed over while it is waited for. */
static void note_strange_packet(const struct cf_below *b, int fd, const uint8_t *p, size_t len,
				bool right)
{
	for (const struct cf_link *l = b->links; l; l = l->next)
		if (l->own_fd && l->fd == fd && l->state <= CF_L_ECHOED)
			note_link(l, right && p[HEADER] == CF_C_INIT ? "it sends back what it gets"
				     : right ? "it sends packets of another association"
				     : b->raw || (len >= HEADER + 4 && cf_get16(p + 2) == l->port)
					     ? "it sends packets whose checksum is wrong: CRC32c, "
					       "RFC 9260 appendix A, and not another one"
					     : "it answers with what is no packet of SCTP: another "
					       "program has that port");
}

void cf_pkt_in(struct cf_net *n, int fd, const struct sockaddr_storage *from, socklen_t from_len,
	       uint8_t *p, size_t len)
{
	struct cf_below *b = n->below;
	struct cf_link *l;
	uint32_t sum;

	if (b->raw && from->ss_family == AF_INET) { /* raw sockets show the IP header, too */
		size_t ip = len ? (size_t)(p[0] & 15) * 4 : 0;

		if (len < ip)
			return;
		p += ip;
		len -= ip;
	}
	sum = len < HEADER + 4 ? 0 : cf_get32(p + 8);
	if (len < HEADER + 4 || cf_pkt_sum(p, len) != sum) {
		note_strange_packet(b, fd, p, len, false);
		return;
	}
	if (fd == b->listen_fd && p[HEADER] == CF_C_INIT && !cf_get32(p + 4) &&
	    cf_get16(p + 2) == b->port && cf_get16(p + HEADER + 2) >= 4 &&
	    HEADER + cf_get16(p + HEADER + 2) <= len) {
		on_init(n, from, from_len, cf_get16(p), p + HEADER + 4,
			cf_get16(p + HEADER + 2) - 4u);
		return;
	}
	l = find_packet_link(b, fd, p);
	if (!l) {
		note_strange_packet(b, fd, p, len, true);
		return;
	}
	l->to = *from; /* its UDP port may have moved: RFC 6951 section 5.4 */
	l->to_len = from_len;
	on_chunks(l, p, len);
}

/* The timer of whatever waits for an answer. */
void cf_link_expired(struct cf_link *l)
{
	l->rto_ms = l->rto_ms * 2 < CF_RTO_MAX_MS ? l->rto_ms * 2 : CF_RTO_MAX_MS;
	cf_link_timer(l);
	switch (l->state) {
	case CF_L_INIT_SENT:
		send_link_init(l, CF_C_INIT, 0);
		break;
	case CF_L_ECHOED:
		send_cookie(l);
		break;
	case CF_L_SHUTDOWN_SENT:
		send_link_shutdown(l);
		break;
	case CF_L_SHUTDOWN_ACK_SENT:
		send_bare(l, CF_C_SHUTDOWN_ACK);
		break;
	default:
		cf_link_again(l);
		break;
	}
}
