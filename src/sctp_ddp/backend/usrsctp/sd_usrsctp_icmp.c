/* SPDX-License-Identifier: BSD-2-Clause */
/* ICMP about packets that we sent, from the error queues of the carriers' sockets. */
#include "sctp_ddp/backend/usrsctp/sd_usrsctp_icmp.h"
#include "common/bytes.h"
#include "sctp_ddp/backend/usrsctp/sd_usrsctp.h"
#include "sctp_ddp/backend/sd_sock.h"
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>

#define TAGS_LEN  8u  /* ports and Verification Tag */
#define INIT_LEN  20u /* ... checksum, chunk header, Initiate Tag */
#define CHUNK_OFF 12u
#define QUOTE_MAX 64u
#define TURN	  64 /* errors per call, then others have their turn */

/* ---- pure ---- */

bool ddps_us_quote_parse(const uint8_t *p, size_t len, struct ddps_us_quote *q)
{
	struct ddps_rbuf r = ddps_rbuf_init(p, len);

	*q = (struct ddps_us_quote){ 0 };
	q->sport = ddps_rbuf_u16(&r);
	q->dport = ddps_rbuf_u16(&r);
	q->tag = ddps_rbuf_u32(&r);
	if (len < TAGS_LEN)
		return false;
	if (q->tag)
		return true;
	if (len < INIT_LEN || p[CHUNK_OFF] != SCTP_INITIATION)
		return false;
	q->init = true;
	ddps_rbuf_take(&r, INIT_LEN - 4 - TAGS_LEN);
	q->tag = ddps_rbuf_u32(&r);
	return q->tag != 0;
}

bool ddps_us_icmp_nobody(const struct sock_extended_err *e)
{
	switch (e->ee_origin) {
	case SO_EE_ORIGIN_ICMP:
		return e->ee_type == ICMP_DEST_UNREACH &&
		       (e->ee_code == ICMP_PORT_UNREACH || e->ee_code == ICMP_PROT_UNREACH);
	case SO_EE_ORIGIN_ICMP6:
		return (e->ee_type == ICMP6_DST_UNREACH &&
			e->ee_code == ICMP6_DST_UNREACH_NOPORT) ||
		       (e->ee_type == ICMP6_PARAM_PROB && e->ee_code == ICMP6_PARAMPROB_NEXTHEADER);
	default:
		return false;
	}
}

bool ddps_us_icmp_too_big(const struct sock_extended_err *e)
{
	return (e->ee_origin == SO_EE_ORIGIN_ICMP && e->ee_type == ICMP_DEST_UNREACH &&
		e->ee_code == ICMP_FRAG_NEEDED) ||
	       (e->ee_origin == SO_EE_ORIGIN_ICMP6 && e->ee_type == ICMP6_PACKET_TOO_BIG);
}

/* ---- tags ---- */

static struct ddps_sd_assoc *find(const struct ddps_us_handle *h, const struct ddps_us_quote *q)
{
	struct ddps_sd_assoc *a, *last = NULL;

	/* The newest: one before it may have ended, and not be cleared away yet. */
	for (a = h->carrier->ue->assocs; a; a = a->next)
		if (a->h == h && a->port->num == q->sport && a->peer_port == q->dport)
			last = a;
	return last;
}

static void note(struct ddps_sd_assoc *a, const struct ddps_us_quote *q)
{
	if (q->init)
		a->init_tag = q->tag;
	else
		a->peer_tag = q->tag;
}

void ddps_us_note_tags(struct ddps_us_handle *h, const uint8_t *pkt, size_t len)
{
	struct ddps_us_quote q;
	struct ddps_sd_assoc *a;

	/* nearly always the same association as before */
	if (len < sizeof h->sent || !memcmp(h->sent, pkt, sizeof h->sent))
		return;
	memcpy(h->sent, pkt, sizeof h->sent);
	a = ddps_us_quote_parse(pkt, len, &q) ? find(h, &q) : NULL;
	if (a)
		note(a, &q);
}

void ddps_us_inherit_tags(struct ddps_sd_assoc *a)
{
	struct ddps_us_quote q;

	if (ddps_us_quote_parse(a->h->sent, sizeof a->h->sent, &q) && find(a->h, &q) == a)
		note(a, &q);
	else /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): it has a handle */
		memset(a->h->sent, 0, sizeof a->h->sent);
}

/* ---- the error queue ---- */

static struct ddps_us_handle *whose(struct ddps_us_carrier *c, const struct sockaddr_storage *to)
{
	struct ddps_us_handle *h;
	struct ddps_us_addr key;

	if (c->connected)
		return c->peer;
	ddps_us_addr_key(&key, to, c->raw);
	h = ddps_us_handle_find(ddps_us_handle_id(c, &key));
	return h && h->carrier == c && !memcmp(&h->addr, &key, sizeof key) ? h : NULL;
}

/*
 * The association that a message is about.  The kernel has checked only that the socket may have
 * sent the packet.  It, or a forger, need not know an association: that takes the tag
 * [RFC 9260 10, ICMP6].
 */
static struct ddps_sd_assoc *verified(const struct ddps_us_handle *h, const uint8_t *quoted,
				      size_t len)
{
	struct ddps_us_quote q;
	struct ddps_sd_assoc *a;

	if (!h || !ddps_us_quote_parse(quoted, len, &q))
		return NULL;
	a = find(h, &q);
	if (!a || q.tag != (q.init ? a->init_tag : a->peer_tag) || (q.init && a->life.up_seen))
		return NULL;
	return a;
}

void ddps_us_icmp_take(struct ddps_us_carrier *c, const struct sockaddr_storage *to,
		       const struct sock_extended_err *e, const uint8_t *quoted, size_t len)
{
	bool nobody = ddps_us_icmp_nobody(e), narrow = ddps_us_icmp_too_big(e);
	struct ddps_us_handle *h = nobody || narrow ? whose(c, to) : NULL;
	struct ddps_sd_assoc *a = verified(h, quoted, len);

	if (!a)
		return;
	if (narrow) {
		ddps_us_handle_narrow(h, e->ee_info); /* the tick tells usrsctp */
		return;
	}
	a->unreachable = true;
	ddps_us_mark(a);
}

void ddps_us_icmp_read(struct ddps_us_carrier *c)
{
	struct sock_extended_err e;
	uint8_t quoted[QUOTE_MAX];
	struct sockaddr_storage to;
	union ddps_sd_cmsg ctrl;
	ssize_t n;

	for (int i = 0; i < TURN; i++) {
		struct iovec iov = { quoted, sizeof quoted };
		struct msghdr m = { .msg_name = &to,
				    .msg_namelen = sizeof to,
				    .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = &ctrl,
				    .msg_controllen = sizeof ctrl };

		memset(&to, 0, sizeof to);
		n = recvmsg(c->io.fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);
		if (n < 0)
			return;
		if (ddps_sd_sock_error(&m, &e))
			ddps_us_icmp_take(c, &to, &e, quoted, (size_t)n);
	}
}
