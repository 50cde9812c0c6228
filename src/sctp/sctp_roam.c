/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer inside DTLS whose UDP port changes: a NAT on the way has forgotten it, and found another one for it.  That a
 * record is authentic says who made it, not where that peer is: whoever sees records may send one from elsewhere before
 * it arrives.  So the new port is asked first, as RFC 9146 6 wants it, and all else goes to the old one until the
 * answer is there.
 *
 * And a peer that is said to be gone by ICMP, which is no more to be believed there: it is asked, too.
 */
#include "common/bytes.h"
#include "sctp/sctp_in.h"

void ddps_sc_roam(struct ddps_sc_path *p)
{
	const struct ddps_sctp_assoc *a = p->a;
	struct ddps_sctp *e = a->e;
	const struct ddps_sctp_route to = {
		.peer = p->peer, .local = p->local, .encap = p->roam, .via = a->via, .sealed = true
	};
	uint8_t hb[DDPS_SC_HB_LEN];
	struct ddps_wbuf w = ddps_wbuf_init(hb, sizeof hb);

	if (p->roam == p->encap) { /* it is where it was: an answer from elsewhere comes too late */
		p->roam = 0;
		p->roam_nonce = 0;
	}
	if (!p->roam || a->state < SC_ESTABLISHED || e->now < p->roam_at)
		return;
	p->roam_asked = p->roam;
	p->roam_at = e->now + e->c.rto_initial_ms * MS;
	p->roam_nonce = ddps_sc_put_hb(&w, p);
	ddps_sc_stray(e, &to, a->port, a->peer_port, a->peer_tag, hb, sizeof hb);
}

/* Of the new way nothing is known [8261-6.1-8], and what is under way by the old one is lost. */
void ddps_sc_roamed(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;

	p->roam_nonce = 0;
	if (!a->dead && a->up && a->up->roamed && !a->up->roamed(a->user, p->roam_asked)) {
		p->roam = 0;
		return;
	}
	a->e->st.roamed++;
	p->roam_at = 0;
	ddps_sc_path_encap(p, p->roam_asked);
	ddps_sent_path_lost(&a->tx, &p->tx);
	ddps_sc_path_start(p);
	ddps_sent_path_again(&a->tx, &p->tx);
	a->errors = 0;
	a->ask = true;
	ddps_sc_touch(a);
}

void ddps_sctp_seen(struct ddps_sctp_assoc *a, uint16_t encap, uint64_t now)
{
	struct ddps_sc_path *p = a->data_path;

	ddps_sc_time(a->e, now);
	if (a->dead)
		return;
	p->roam = encap;
	ddps_sc_roam(p);
	ddps_sc_touch(a);
}

/* RTO as it was measured: what is answered later than that would be asked again in vain. */
void ddps_sctp_doubt(struct ddps_sctp_assoc *a, uint64_t now)
{
	struct ddps_sc_path *p = a->data_path;
	uint64_t due = p->hb_sent + p->tx.rto;

	ddps_sc_time(a->e, now);
	if (a->dead || !ddps_sc_sends_hb(a) || !a->e->c.hb_interval_ms)
		return;
	if (due < a->e->now)
		due = a->e->now;
	if (due < p->hb_at)
		p->hb_at = due;
	p->doubt = p->hb_out;
	p->hb_now = true;
	ddps_sc_touch(a);
}
