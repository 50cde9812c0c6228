/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to send: copied once, cut into pieces as packets are built, kept until acknowledged. */
#include "sctp/sctp_in.h"

#define ETHERNET 1500u /* octets of its packets */

static size_t size_of_message(size_t len)
{
	return sizeof(struct ddps_sc_msg) + ddps_sc_pad(len);
}

static void msg_put(struct ddps_sctp_assoc *a, struct ddps_sc_msg *m)
{
	if (--m->refs)
		return;
	a->buffered -= m->len + sizeof *m;
	ddps_sc_pool_put(&a->e->pool, m, size_of_message(m->len));
}

/*
 * What waits to be sent delays what others send after it: no more of it than leaves in half a
 * millisecond, but a few packets, so that the sender need not be asked for each.
 */
static bool may_write_message(const struct ddps_sctp_assoc *a)
{
	const struct ddps_cc *cc = &a->data_path->tx.cc;

	if (a->buffered >= a->e->c.send_buffer || a->unsent >= a->e->c.unsent)
		return false;
	return a->unsent < 2ull * cc->smss || a->unsent < (uint64_t)(ddps_cc_rate(cc) * 0.5e-3);
}

void ddps_sc_writable(struct ddps_sctp_assoc *a)
{
	if (!may_write_message(a))
		return;
	a->blocked = false;
	ddps_sc_note(a, NOTE_WRITABLE);
}

void ddps_sc_acked(void *user, uint32_t tsn, void *chunk)
{
	struct ddps_sctp_assoc *a = user;
	struct ddps_sc_piece *pc = chunk;
	struct ddps_sc_msg *m = pc->m;

	(void)tsn;
	if (pc->flags & SC_DATA_E) {
		a->acked_n = m->number;
		if (!(a->notes & NOTE_ACKED))
			ddps_sc_note(a, NOTE_ACKED);
	}
	if (pc != &m->whole)
		ddps_sc_pool_put(&a->e->pool, pc, sizeof *pc);
	msg_put(a, m);
	ddps_sc_may_write(a);
}

void ddps_sc_queue_free(struct ddps_sctp_assoc *a)
{
	struct ddps_sc_msg *m;

	while ((m = STAILQ_FIRST(&a->queue))) {
		STAILQ_REMOVE_HEAD(&a->queue, link);
		a->unsent -= m->len - m->cut;
		msg_put(a, m);
	}
}

/* A message of @len octets follows. */
static void note_message_part(struct ddps_sctp_assoc *a, size_t len)
{
	size_t size = DDPS_SC_DATA_HDR + ddps_sc_pad(len);

	if (STAILQ_EMPTY(&a->queue) || a->part + size > ddps_sent_smss(&a->data_path->tx))
		a->part = 0;
	a->part += size;
}

size_t ddps_sctp_room(const struct ddps_sctp_assoc *a)
{
	size_t used = a->part + DDPS_SC_DATA_HDR, all = ddps_sent_smss(&a->data_path->tx);

	return STAILQ_EMPTY(&a->queue) || used >= all ? 0 : all - used;
}

static size_t sum_iov(const struct iovec *iov, int niov)
{
	size_t n = 0;

	for (int i = 0; i < niov; i++)
		n += iov[i].iov_len;
	return n;
}

static int next_ssn(struct ddps_sctp_assoc *a, uint16_t sid, uint16_t *ssn)
{
	const uint16_t n = a->out_streams;
	uint16_t *more;

	if (sid >= a->nssn_out) { /* a peer that answers once more may offer more */
		more = realloc(a->ssn_out, n * sizeof *more);
		if (!more)
			return DDPS_E_NOMEM;
		memset(more + a->nssn_out, 0, (n - (size_t)a->nssn_out) * sizeof *more);
		a->ssn_out = more;
		a->nssn_out = n;
	}
	*ssn = a->ssn_out[sid]++;
	return 0;
}

static int may_send(struct ddps_sctp_assoc *a, uint16_t sid, size_t len)
{
	/* As soon as the peer has answered it is known how many streams there are. */
	if (a->dead || a->state > SC_ESTABLISHED || !a->out_streams)
		return DDPS_E_STATE;
	if (sid >= a->out_streams || !len) /* [9260-6.5-1] [9260-6.2-28] */
		return DDPS_E_INVAL;
	if (len > a->e->c.send_buffer || len > UINT32_MAX / 2)
		return DDPS_E_TOO_LONG;
	if (!may_write_message(a)) {
		a->blocked = true;
		return DDPS_E_AGAIN;
	}
	return 0;
}

/* It is filled in, and waits from now on. */
static inline __attribute__((always_inline)) void queue_sctp_message(struct ddps_sctp_assoc *a,
								     struct ddps_sc_msg *m,
								     uint16_t stream, uint32_t ppid,
								     uint8_t flags, size_t len)
{
	m->number = ++a->sent_n;
	m->ppid = ppid;
	m->sid = stream;
	m->len = (uint32_t)len;
	m->cut = 0;
	m->refs = 1;
	m->flags = flags;
	a->buffered += len + sizeof *m;
	a->unsent += len;
	note_message_part(a, len);
	STAILQ_INSERT_TAIL(&a->queue, m, link);
	ddps_sc_touch(a);
}

int ddps_sctp_send(struct ddps_sctp_assoc *a, uint16_t stream, uint32_t ppid, unsigned flags,
		   const struct iovec *iov, int niov, uint64_t now)
{
	size_t len = sum_iov(iov, niov);
	int err = may_send(a, stream, len);
	struct ddps_sc_msg *m;
	uint8_t *to;

	ddps_sc_time(a->e, now);
	if (err < 0)
		return err;
	m = ddps_sc_pool_get(&a->e->pool, size_of_message(len));
	if (!m)
		return DDPS_E_NOMEM;
	m->ssn = 0;
	if (!(flags & DDPS_SCTP_UNORDERED) && next_ssn(a, stream, &m->ssn) < 0) {
		ddps_sc_pool_put(&a->e->pool, m, size_of_message(len));
		return DDPS_E_NOMEM;
	}
	to = m->data;
	for (const struct iovec *v = iov; v < iov + niov; to += v++->iov_len) {
		if (v->iov_len)
			memcpy(to, v->iov_base, v->iov_len);
	}
	queue_sctp_message(a, m, stream, ppid,
			   (uint8_t)((flags & DDPS_SCTP_UNORDERED ? SC_DATA_U : 0) |
				     (flags & DDPS_SCTP_SACK_NOW ? SC_DATA_I : 0)),
			   len);
	return 0;
}

uint8_t *ddps_sctp_place(struct ddps_sctp_assoc *a, uint16_t stream, size_t len)
{
	struct ddps_sc_msg *m;

	if (may_send(a, stream, len) < 0)
		return NULL;
	m = ddps_sc_pool_get(&a->e->pool, size_of_message(len));
	return m ? m->data : NULL;
}

void ddps_sctp_placed(struct ddps_sctp_assoc *a, uint8_t *at, uint16_t stream, uint32_t ppid,
		      size_t len, bool filled)
{
	struct ddps_sc_msg *m =
		(struct ddps_sc_msg *)(void *)(at - offsetof(struct ddps_sc_msg, data));

	if (!filled) {
		ddps_sc_pool_put(&a->e->pool, m, size_of_message(len));
		return;
	}
	m->ssn = 0;
	queue_sctp_message(a, m, stream, ppid, SC_DATA_U, len);
}

/* ---- pieces ---- */

/*
 * Octets of the largest chunk that is cut for @p.  A chunk is never cut again: when the path becomes
 * narrower it goes in fragments.  Over IPv6 ours are of the least size.  Over IPv4 it is routers that make
 * them, and what has room for more than Ethernet's 1500 octets at one end has often a switch that has
 * not, and informs nobody: there a chunk is of the size that passes nearly anywhere, several of them a packet.
 */
static uint32_t largest_chunk(const struct ddps_sc_path *p)
{
	const struct ddps_pmtu *m = &p->tx.pmtu;
	uint32_t smss = ddps_sent_smss(&p->tx);

	if (p->peer.family == 6 || p->tx.within_host || m->size <= ETHERNET || p->a->fixed_mtu)
		return smss;
	return smss - (m->size - m->lim.base);
}

/* User data octets of the largest chunk that fits on every path in use [9260-6.9-4]. */
size_t ddps_sctp_max_chunk(const struct ddps_sctp_assoc *a)
{
	const struct ddps_sc_path *data = a->data_path;
	uint32_t least = largest_chunk(data), other;

	for (unsigned i = 0; i < a->npaths && a->npaths > 1; i++) {
		const struct ddps_sc_path *p = a->path[i];

		if (p == data || !p->confirmed || p->state != DDPS_SCTP_ACTIVE)
			continue;
		other = largest_chunk(p);
		if (other < least)
			least = other;
	}
	return least - DDPS_SC_DATA_HDR;
}

/* User data octets of the next piece, if none is larger than @most; 0: nothing waits. */
size_t ddps_sc_next_len(const struct ddps_sctp_assoc *a, size_t most)
{
	const struct ddps_sc_msg *m = STAILQ_FIRST(&a->queue);
	size_t left;

	if (!m)
		return 0;
	left = m->len - m->cut;
	return left < most ? left : most;
}

/* @len octets of @m from where it was cut last. */
static void cut_piece(struct ddps_sc_piece *pc, struct ddps_sc_msg *m, size_t len)
{
	*pc = (struct ddps_sc_piece){ .m = m, .at = m->cut, .len = (uint32_t)len };
	pc->flags = m->flags & SC_DATA_U;
	if (!m->cut)
		pc->flags |= SC_DATA_B;
	if (m->cut + len == m->len)
		pc->flags |= (uint8_t)(SC_DATA_E | (m->flags & SC_DATA_I));
}

struct ddps_sc_piece *ddps_sc_whole_piece(struct ddps_sc_msg *m)
{
	cut_piece(&m->whole, m, m->len);
	return &m->whole;
}

struct ddps_sc_piece *ddps_sc_cut(struct ddps_sctp_assoc *a, size_t len)
{
	struct ddps_sc_msg *m = STAILQ_FIRST(&a->queue);
	struct ddps_sc_piece *pc = &m->whole;

	if (len < m->len)
		pc = ddps_sc_pool_get(&a->e->pool, sizeof *pc);
	if (!pc) {
		a->e->st.no_memory++;
		return NULL;
	}
	cut_piece(pc, m, len);
	return pc;
}

void ddps_sc_uncut(struct ddps_sctp_assoc *a, struct ddps_sc_piece *pc)
{
	if (pc != &pc->m->whole)
		ddps_sc_pool_put(&a->e->pool, pc, sizeof *pc);
}

/* It has a TSN. */
void ddps_sc_cut_done(struct ddps_sctp_assoc *a, struct ddps_sc_piece *pc)
{
	struct ddps_sc_msg *m = pc->m;

	m->refs++;
	m->cut += pc->len;
	a->unsent -= pc->len;
	if (m->cut == m->len) {
		STAILQ_REMOVE_HEAD(&a->queue, link);
		msg_put(a, m);
	}
	ddps_sc_may_write(a);
}

bool ddps_sctp_under_way(const struct ddps_sctp_assoc *a)
{
	return a->state == SC_ESTABLISHED && a->tx.nflight && !a->tx.nlost;
}

bool ddps_sc_all_acked(const struct ddps_sctp_assoc *a)
{
	return STAILQ_EMPTY(&a->queue) && a->tx.next == a->tx.cum + 1;
}
