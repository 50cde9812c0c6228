/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams in: told apart, opened in place, handed to the engine together. */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "sctp_ddp/backend/sd_sock.h"
#include "secure/secure.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HALF_OPEN 1024u /* handshakes of peers under way, of a socket */
#define HELLO_MAX                                                                                  \
	4096u /* of a ClientHello, which is kept until its turn comes: some 300 as a rule */
#define EARLY_MAX 16384u
#define EARLY_N	  16u
#define INS	  64u /* packets handed over in one call */
#define RANDOM_AT 27u /* in a record with a ClientHello */
#define SECRET_NS (60 * NSEC_PER_SEC)

/* ---- strangers ---- */

static void renew_secret(struct ddps_sn_dtls_table *t, uint64_t now)
{
	if (now - t->secret_at < SECRET_NS)
		return;
	memcpy(t->secret[1], t->secret[0], sizeof t->secret[1]);
	ddps_sn_random(NULL, t->secret[0], sizeof t->secret[0]);
	t->secret_at = now;
}

/* All places are taken: the oldest of the network that has most of them goes. */
static void make_dtls_room(struct ddps_sn_dtls_table *t)
{
	struct ddps_error why = ddps_error_make(DDPS_E_LIMIT, 0,
						"too many handshakes under way: its place went to "
						"another");

	if (t->shaking.places >= HALF_OPEN)
		ddps_sn_dtls_end(ddps_shares_first_to_go(&t->shaking)->owner, &why);
}

/* Its address is its own. */
static void begin_dtls_peer(struct ddps_sn_sock *udp, const struct sockaddr_storage *from,
			    const struct ddps_sctp_addr *peer, uint16_t port,
			    const struct ddps_sctp_addr *local, const struct ddps_hs_began *began,
			    const uint8_t *p, size_t n)
{
	static const struct ddps_error none;
	const struct ddps_creds_want want = { .server = true };
	struct ddps_sn_dtls_table *t = udp->table;
	struct ddps_sn_dtls *c;
	struct ddps_error why;

	make_dtls_room(t);
	c = ddps_sn_dtls_new(udp, peer, port, local);
	if (!c)
		return;
	c->server = true;
	c->ep = t->ep;
	c->param = t->ep->param;
	memcpy(c->random, p + RANDOM_AT, sizeof c->random); /* it is in front of the cookie */
	LIST_INSERT_HEAD(&t->ep->conns, c, of_ep);
	c->share.owner = c;
	if (ddps_shares_add(&t->shaking, &c->share,
			    ddps_share_net_sa((const struct sockaddr *)from)) ||
	    ddps_sn_dtls_shake(c, &want, began, p, n, &why))
		ddps_sn_dtls_end(c, &none);
}

static void refuse_long_hello(struct ddps_sn_sock *udp, const struct ddps_sctp_addr *peer,
			      uint16_t port, size_t n)
{
	char why[96];

	snprintf(why, sizeof why,
		 "its ClientHello has %zu octets, and %u are taken: it has to offer less", n,
		 HELLO_MAX);
	ddps_sn_dtls_refused(udp->ne, peer, port, DDPS_E_LIMIT, why, true);
}

/* What came is a ClientHello, whose cookie is right; else it may have been answered. */
static bool greets(struct ddps_sn_sock *udp, const struct ddps_sctp_addr *peer, uint16_t port,
		   const struct ddps_sctp_addr *local, const uint8_t *p, size_t n,
		   struct ddps_hs_began *began)
{
	const struct ddps_secure *s = udp->ne->env->secure;
	struct ddps_sn_dtls_table *t = udp->table;
	uint8_t answer[DDPS_DHS_ANSWER], who[sizeof peer->ip + 6] = { 0 };
	enum ddps_dhs_greeting g;
	size_t nanswer;

	if (!t->ep || !s)
		return false;
	if (n > HELLO_MAX) {
		if (ddps_sn_dtls_is_hello(p, n))
			refuse_long_hello(udp, peer, port, n);
		return false;
	}
	renew_secret(t, ddps_now());
	memcpy(who, peer->ip, sizeof peer->ip);
	memcpy(who + sizeof peer->ip, &peer->scope, 4);
	memcpy(who + sizeof peer->ip + 4, &port, 2);
	g = s->plugin->dtls_greet(t->secret, who, sizeof who, p, n, answer, &nanswer, began);
	udp->ne->env->secured.cookies += g == DDPS_DHS_ANSWER_IT;
	if (g == DDPS_DHS_ANSWER_IT)
		ddps_sn_dtls_send_raw(udp, peer, port, local, answer, nanswer);
	return g == DDPS_DHS_TAKE;
}

void ddps_sn_dtls_misspoken(struct ddps_sn_env *ne, const struct sockaddr_storage *from, bool plain)
{
	const struct ddps_sctp_addr peer = ddps_sn_addr(from);

	ddps_sn_dtls_refused(
		ne, &peer, ddps_sd_port_number(from), DDPS_E_PLAIN_PEER,
		plain ? "it speaks plain SCTP, without DTLS: it has to use sctps:// here"
		      : "it speaks DTLS, and this port is plain: it has to use sctp://, or this "
			"side sctps://",
		true);
}

bool ddps_sn_dtls_is_hello(const uint8_t *p, size_t len)
{
	return len > DDPS_DTLS_HEADER && p[0] == DDPS_DTLS_HANDSHAKE && p[1] == 254 && !p[3] &&
	       !p[4] && p[DDPS_DTLS_HEADER] == 1;
}

/* INIT, alone, without a tag. */
static bool is_plain_init(const uint8_t *p, size_t n)
{
	static const uint8_t none[4];

	return n >= 32 && !memcmp(p + 4, none, 4) && p[12] == 1 && !p[13];
}

static void greet_stranger(struct ddps_sn_sock *udp, const struct sockaddr_storage *from,
			   const struct ddps_sctp_addr *peer, uint16_t port,
			   const struct ddps_sctp_addr *local, const uint8_t *p, size_t n)
{
	struct ddps_hs_began began;
	struct ddps_dtls_head h;

	if (ddps_dtls_head(&h, p, n) && greets(udp, peer, port, local, p, h.len, &began))
		begin_dtls_peer(udp, from, peer, port, local, &began, p, h.len);
	else if (is_plain_init(p, n))
		ddps_sn_dtls_misspoken(udp->ne, from, true);
}

/* ---- records ---- */

struct batch {
	struct ddps_sn_env *ne;
	struct ddps_sn_dtls *c;
	uint16_t port; /* that the datagrams came from */
	struct ddps_sctp_in in[INS];
	unsigned n;
};

/* The engine's upcalls may end whatever there is, but nothing is closed before the next flush. */
static void hand_packets_over(struct batch *b)
{
	struct ddps_sn_env *ne = b->ne;

	if (b->n)
		ddps_sctp_input(ne->e, b->in, b->n, ddps_sn_now(ne));
	ne->work += b->n;
	b->n = 0;
}

static void add_packet(struct batch *b, uint16_t seen, uint8_t *p, size_t len)
{
	const struct ddps_sn_dtls *c = b->c;

	b->in[b->n++] = (struct ddps_sctp_in){ .from = { .peer = c->peer,
							 .local = c->local,
							 .encap = c->at.port,
							 .via = c->as->via,
							 .sealed = true,
							 .seen = seen },
					       .data = p,
					       .len = len };
	if (b->n == INS)
		hand_packets_over(b);
}

/* The listener's last flight has arrived. */
static void end_handshake(struct ddps_sn_dtls *c)
{
	ddps_shake_free(c->shake);
	c->shake = NULL;
	ddps_sn_framed_drop(&c->todo);
}

static void take_alert(struct batch *b, const uint8_t *p, size_t len)
{
	struct ddps_error e;

	if (len != 2 || (p[0] == 1 && p[1] != DDPS_ALERT_CLOSE_NOTIFY))
		return;
	hand_packets_over(b); /* what came before it */
	e = ddps_sn_dtls_by_peer(b->c, p[1]);
	if (b->c->server && !b->c->took && p[1] != DDPS_ALERT_CLOSE_NOTIFY)
		ddps_sn_dtls_refused(b->ne, &b->c->peer, b->c->at.port, e.code, e.text, false);
	ddps_sn_dtls_end(b->c, &e);
}

static void count_unopened(struct ddps_secured_stats *st, ssize_t err)
{
	st->replayed += err == -EALREADY;
	st->forged += err == -EBADMSG || err == -EOVERFLOW;
	st->strange += err == -EPROTO;
}

void ddps_sn_dtls_forged(struct ddps_sn_dtls *c)
{
	struct ddps_error e = ddps_error_make(
		DDPS_E_FORGED, 0, "so many records were forged that the key is not safe any more");

	ddps_sn_dtls_end(c, &e);
}

/* New keys begin, and SCTP has perhaps nothing to say for a while. */
static void show_port(const struct ddps_sn_dtls *c, uint16_t port)
{
	struct ddps_sd_assoc *a;

	TAILQ_FOREACH(a, &c->ne->assocs, of_env)
		if (a->sock == c->as && a->sa)
			ddps_sctp_seen(a->sa, port, ddps_sn_now(c->ne));
	ddps_sn_poke(c->ne);
}

static void take_opened(struct batch *b, const struct ddps_dtls_head *h, uint8_t *content,
			size_t len)
{
	struct ddps_sn_dtls *c = b->c;
	const bool seen = ddps_sn_dtls_seen_at(c, b->port, h);

	if (h->type == DDPS_DTLS_ALERT)
		take_alert(b, content, len);
	if (h->type != DDPS_DTLS_DATA)
		return;
	if (c->shake && !c->renewing && !ddps_shake_busy(c->shake))
		end_handshake(c);
	if (len)
		add_packet(b, seen ? b->port : 0, content, len);
	else if (seen)
		show_port(c, b->port);
}

static void open_record(struct batch *b, const struct ddps_dtls_head *h, uint8_t *p)
{
	uint8_t *content = p;
	ssize_t len = ddps_sn_dtls_open(b->c, h, p, &content);

	if (len < 0)
		count_unopened(&b->c->ne->env->secured, len);
	if (len == -EOVERFLOW)
		ddps_sn_dtls_forged(b->c);
	else if (len >= 0)
		take_opened(b, h, content, (size_t)len);
}

/* A live connection's peer begins anew, to have new keys: it proves its address as any other.  What there is goes on
 * meanwhile, since anybody can send that. */
static void greet_again(struct ddps_sn_dtls *c, const uint8_t *p, size_t n)
{
	const struct ddps_creds_want want = { .server = true };
	struct ddps_hs_began began;
	struct ddps_error why;

	if (!greets(c->udp, &c->peer, c->at.port, &c->local, p, n, &began))
		return;
	c->renewing = true;
	if (ddps_sn_dtls_shake(c, &want, &began, p, n, &why))
		ddps_sn_dtls_not_renewed(c, why.text);
}

/* Its handshake has failed at the other end, which begins another one from the same port. */
static bool is_another_hello(const struct ddps_sn_dtls *c, const uint8_t *p, size_t n)
{
	return c->server && c->state == DDPS_SN_SHAKING && ddps_sn_dtls_is_hello(p, n) &&
	       n >= RANDOM_AT + sizeof c->random &&
	       memcmp(c->random, p + RANDOM_AT, sizeof c->random) != 0;
}

/* It proves its address as any other, and then the old one is over. */
static void greet_in_place(struct ddps_sn_dtls *c, const uint8_t *p, size_t n)
{
	static const struct ddps_error none;
	struct sockaddr_storage from;
	struct ddps_hs_began began;

	if (!greets(c->udp, &c->peer, c->at.port, &c->local, p, n, &began))
		return;
	ddps_sn_sockaddr(&c->peer, c->at.port, c->peer.family == 6 ? AF_INET6 : AF_INET, &from);
	ddps_sn_dtls_end(c, &none);
	begin_dtls_peer(c->udp, &from, &c->peer, c->at.port, &c->local, &began, p, n);
}

static bool is_sealed(const struct ddps_dtls_head *h)
{
	return h->epoch && (h->type == DDPS_DTLS_DATA || h->type == DDPS_DTLS_ALERT);
}

static void take_record(struct batch *b, const struct ddps_dtls_head *h, uint8_t *p)
{
	struct ddps_sn_dtls *c = b->c;
	const bool data = is_sealed(h);

	if (c->state == DDPS_SN_OVER)
		return;
	if (data && c->state == DDPS_SN_OPEN) {
		open_record(b, h, p);
	} else if (!data && c->state == DDPS_SN_OPEN && !c->shake) {
		if (c->server)
			greet_again(c, p, h->len);
	} else if (!data && is_another_hello(c, p, h->len)) {
		greet_in_place(c, p, h->len);
	} else if (!c->shake || ddps_shake_waits(c->shake)) {
		return; /* it has failed, and begins anew; or this can only be its ClientHello once more */
	} else if (!data) {
		ddps_sn_dtls_shake_in(c, p, h->len);
	} else if (c->early.n < EARLY_N && c->early.len + h->len <= EARLY_MAX) {
		(void)ddps_sn_framed_add(&c->early, p, h->len); /* else it comes again */
	}
}

/* Several records may share a datagram, and none is in two. */
static void take_dtls_datagram(struct batch *b, uint8_t *p, size_t len)
{
	struct ddps_dtls_head h;

	for (size_t at = 0; at < len && ddps_dtls_head(&h, p + at, len - at); at += h.len)
		take_record(b, &h, p + at);
}

/* From a port that is nobody's. */
static void take_strange_datagram(struct batch *b, struct ddps_sn_sock *udp,
				  const struct sockaddr_storage *from,
				  const struct ddps_sctp_addr *peer,
				  const struct ddps_sctp_addr *local, uint8_t *p, size_t len)
{
	struct ddps_dtls_head h;
	uint8_t *content;
	ssize_t n;

	if (!ddps_dtls_head(&h, p, len) || !is_sealed(&h)) {
		greet_stranger(udp, from, peer, b->port, local, p, len);
	} else {
		b->c = ddps_sn_dtls_whose(udp, peer, &h, p, &content, &n);
		if (b->c) {
			take_opened(b, &h, content, (size_t)n);
			take_dtls_datagram(b, p + h.len, len - h.len);
		}
	}
	b->c = ddps_sn_dtls_find(udp, peer, b->port); /* it may have got it */
}

void ddps_sn_dtls_input(struct ddps_sn_sock *udp, const struct sockaddr_storage *from,
			const struct ddps_sctp_addr *local, uint8_t *p, size_t len, size_t seg)
{
	const struct ddps_sctp_addr peer = ddps_sn_addr(from);
	struct batch b; /* kilobytes, for each datagram: not to be zeros */

	b.ne = udp->ne;
	b.port = ddps_sd_port_number(from);
	b.n = 0;
	b.c = ddps_sn_dtls_find(udp, &peer, b.port);
	for (size_t at = 0, n; b.port && at < len; at += n) {
		n = seg && len - at > seg ? seg : len - at;
		if (b.c && b.c->roam.c && b.c->roam.port == b.port && p[at] != DDPS_DTLS_DATA)
			b.c = NULL; /* whoever begins there has that port */
		if (b.c)
			take_dtls_datagram(&b, p + at, n);
		else
			take_strange_datagram(&b, udp, from, &peer, local, p + at, n);
	}
	hand_packets_over(&b);
}

void ddps_sn_dtls_input_early(struct ddps_sn_dtls *c)
{
	struct ddps_sn_framed f = c->early;
	struct batch b = { .ne = c->ne, .c = c, .port = c->at.port, .n = 0 };

	c->early = (struct ddps_sn_framed){ .p = NULL };
	for (size_t at = 0; at < f.len;) {
		size_t len = (size_t)f.p[at] << 8 | f.p[at + 1];

		take_dtls_datagram(&b, f.p + at + 2, len);
		at += 2 + len;
	}
	hand_packets_over(&b);
	ddps_sn_framed_drop(&f);
}

void ddps_sn_dtls_hint(struct ddps_sn_sock *udp, const struct sockaddr_storage *to)
{
	const struct ddps_sctp_addr peer = ddps_sn_addr(to);
	struct ddps_sn_dtls *c = ddps_sn_dtls_find(udp, &peer, ddps_sd_port_number(to));
	struct ddps_sd_assoc *a;

	if (!c)
		return;
	c->unreachable = true;
	TAILQ_FOREACH(a, &udp->ne->assocs, of_env)
		if (a->sock == c->as && a->sa)
			ddps_sctp_doubt(a->sa, ddps_sn_now(udp->ne));
}
