/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending on one association: control messages first, then segments of all sessions in turn;
 * and what depends on SCTP's acknowledgements.
 *
 * A socket API says only that everything handed over is acknowledged ("dry").  On a busy
 * association that moment may never come, so while somebody needs it no segments are sent.  A
 * backend that has acks reports each message, and nobody waits for another one's.
 */
#include "sctp_ddp/sd_assoc.h"
#include <stdlib.h>
#include <string.h>

/* A finished pair may wait this long for its acknowledgement before others are held up. */
#define QUIET_MS 100u
/* Ask for an acknowledgement in time, so that the limit need not stop the stream. */
#define PROBE_AT (DDPS_SD_IN_FLIGHT_MAX / 2)
/* Of a message with a segment: the DDP-SSN, the header, the payload. */
#define PIECES (1 + DDPS_SEG_IOV_MAX)
/* Octets of segments of one session that leave in one turn, and one segment more. */
#define TURN 8192u
/* A segment of less begins another packet: what must not be cut has room in as much (RFC 5044 4.5). */
#define SHARED_LEAST 128u

static bool queue_sd_pair(struct ddps_sd_pair *p);

/* ---- acknowledgements ---- */

static void ask_carrier(struct ddps_sd_carrier *c)
{
	if (c->asked || c->b->acks || c->state != DDPS_SD_UP)
		return;
	c->asked = true;
	c->b->ask_dry(c->assoc);
}

void ddps_sd_tx_quiet(struct ddps_sd_carrier *c, bool soon)
{
	if (c->b->acks)
		return;
	if (!soon)
		ddps_timer_stop(c->env->loop, c->quiet_timer);
	else if (!ddps_timer_runs(c->quiet_timer))
		ddps_timer_after(c->env->loop, c->quiet_timer, QUIET_MS);
}

void ddps_sd_tx_wait_dry(struct ddps_sd_pair *p, enum ddps_sd_patience patience)
{
	struct ddps_sd_carrier *c = p->carrier;

	if (patience == DDPS_SD_SOON)
		ddps_sd_tx_quiet(c, true);
	if (patience == DDPS_SD_NOW && !c->b->acks)
		c->quiet = true;
	if (!p->in_dry) {
		p->in_dry = true;
		TAILQ_INSERT_TAIL(&c->dry, p, dry_link);
		c->ndry++;
	}
	/* All has arrived already: nobody would report that once more. */
	if (c->b->acks && p->sm.state == DDPS_SD_DRAIN && c->acked >= p->last_seq)
		ddps_task_post(c->env->loop, &c->task);
	ask_carrier(c);
}

static void stop_waiting(struct ddps_sd_pair *p)
{
	if (!p->in_dry)
		return;
	p->in_dry = false;
	TAILQ_REMOVE(&p->carrier->dry, p, dry_link);
	p->carrier->ndry--;
}

void ddps_sd_tx_dry(struct ddps_sd_carrier *c)
{
	if (!c->asked)
		return;
	c->asked = false;
	c->quiet = false;
	ddps_sd_tx_quiet(c, false);
	ddps_sd_tx_acked(c, c->sent); /* also what was handed over since it was asked for */
}

void ddps_sd_tx_acked(struct ddps_sd_carrier *c, uint64_t upto)
{
	unsigned n = c->ndry;

	c->acked = upto;
	while (n--) {
		struct ddps_sd_pair *p = TAILQ_FIRST(&c->dry);

		stop_waiting(p);
		ddps_sd_tx_check(p);
	}
	ddps_sd_tx_run(c);
}

/* [5043-10-d1] The span from the oldest message not known to be acknowledged. */
static unsigned in_flight(struct ddps_sd_pair *p)
{
	uint64_t acked = p->carrier->acked;

	if (acked >= p->last_seq) {
		p->base = p->tx;
		p->probe_seq = 0;
	} else if (p->probe_seq && acked >= p->probe_seq) {
		p->base = p->probe_tx;
		p->probe_seq = 0;
	}
	return (uint16_t)(p->tx - p->base);
}

/* Whether one more message may be handed over; if not, ddps_sd_tx_check() is called in time. */
static bool window_open(struct ddps_sd_pair *p)
{
	unsigned n = in_flight(p);

	if (n >= PROBE_AT && !p->probe_seq) {
		p->probe_seq = p->last_seq;
		p->probe_tx = p->tx;
		ddps_sd_tx_wait_dry(p, DDPS_SD_WHENEVER);
	}
	if (n < DDPS_SD_IN_FLIGHT_MAX)
		return true;
	ddps_sd_tx_wait_dry(p, DDPS_SD_NOW);
	return false;
}

void ddps_sd_tx_check(struct ddps_sd_pair *p)
{
	struct ddps_sd_carrier *c = p->carrier;

	if (p->ctl || p->term_due) /* called again when they have left */
		return;
	if (p->sm.state == DDPS_SD_DRAIN) {
		if (c->acked >= p->last_seq) /* [5043-6.6-4] */
			ddps_sd_pair_step(p, DDPS_SD_EV_DRAINED, NULL, NULL);
		else
			ddps_sd_tx_wait_dry(p, DDPS_SD_SOON);
		return;
	}
	if (p->owe_term) {
		/* [5043-6.6-1] Not before the own Initiate or Accept has arrived. */
		if (c->acked < p->ctl_seq)
			ddps_sd_tx_wait_dry(p, DDPS_SD_NOW);
		else if (window_open(p))
			ddps_sd_pair_step(p, DDPS_SD_EV_TERM_READY, NULL, NULL);
		return;
	}
	in_flight(p);
	if (p->probe_seq)
		ddps_sd_tx_wait_dry(p, DDPS_SD_WHENEVER);
	/* It runs behind this in any case.  The task would be back here, and so on, where the session
	 * may not send now. */
	if (p->want_seg)
		queue_sd_pair(p);
}

/* ---- handing over ---- */

static int hand_over(struct ddps_sd_pair *p, uint32_t ppid, const struct iovec *iov, int niov)
{
	struct ddps_sd_carrier *c = p->carrier;
	int err = c->b->send(c->assoc, p->stream, ppid, iov, niov);

	if (err == DDPS_E_AGAIN) {
		c->blocked = true;
	} else if (err < 0) {
		c->broken = true;
		ddps_sd_log(c, DDPS_LOG_WARN, " stream %u: send: %s", p->stream,
			    ddps_strerror(err));
	} else {
		p->last_seq = ++c->sent;
		p->tx++;
	}
	return err;
}

static void control_sent(struct ddps_sd_pair *p, uint16_t code)
{
	ddps_sd_log(p->carrier, DDPS_LOG_DEBUG, " stream %u: sent %s", p->stream,
		    ddps_sd_code_name(code));
	if (!p->ctl) {
		p->term_due = false;
		return;
	}
	p->ctl_seq = p->last_seq;
	p->ctl = 0;
	free(p->pd);
	p->pd = NULL;
	p->pd_len = 0;
}

static void control_turn(struct ddps_sd_pair *p)
{
	uint8_t head[DDPS_SD_CONTROL_LEN];
	struct iovec iov[2] = { { head, sizeof(head) } };

	while (p->ctl || p->term_due) {
		uint16_t code = p->ctl ? p->ctl : DDPS_SD_TERMINATE;
		int niov = p->ctl && p->pd_len ? 2 : 1;
		uint64_t before = p->last_seq;

		ddps_sd_encode_control(head, p->tx, code);
		iov[1] = (struct iovec){ p->pd, p->pd_len };
		if (hand_over(p, DDPS_SD_PPID_CONTROL, iov, niov) < 0)
			return;
		p->data_seq = code == DDPS_SD_TERMINATE ? before : 0;
		control_sent(p, code);
	}
	p->in_ctl = false;
	TAILQ_REMOVE(&p->carrier->ctl, p, ctl_link);
	/* In DRAIN wait for the acknowledgement, never release here: callers hold on to @p. */
	if (p->sm.state == DDPS_SD_DRAIN)
		ddps_sd_tx_wait_dry(p, DDPS_SD_SOON);
	else
		ddps_sd_tx_check(p);
}

/* ---- segments ---- */

static bool can_send(const struct ddps_sd_pair *p)
{
	return p->sess && p->sess->opened && !p->ctl && !p->owe_term &&
	       (p->sm.state == DDPS_SD_OPEN || p->sm.state == DDPS_SD_PEER_DONE);
}

static bool have_room(struct ddps_sd_carrier *c)
{
	struct ddps_sd_provider *prov = c->prov;

	if (!c->tx_seg) {
		c->tx_seg = prov->seg ? prov->seg : malloc(sizeof *c->tx_seg);
		prov->seg = NULL;
	}
	return c->tx_seg;
}

/* Give the room for a segment back, unless one is in it. */
static void give_room_back(struct ddps_sd_carrier *c)
{
	if (c->tx_pair)
		return;
	if (c->prov->seg)
		free(c->tx_seg);
	else
		c->prov->seg = c->tx_seg;
	c->tx_seg = NULL;
}

/* @e ends the session. */
static void *pull_failed(struct ddps_sd_pair *p, struct ddps_error e)
{
	ddps_sd_session_fail(p->sess, &e);
	return NULL;
}

/*
 * The end of a long message seldom fills a packet.  The segment behind it is cut so that both do: a packet that is as
 * long as those before it leaves with them, and so do those behind it, in one call of the system.
 */
static size_t get_room_for_segment(const struct ddps_sd_carrier *c, size_t mulpdu)
{
	size_t room;

	if (!c->bulk || !c->b->room)
		return mulpdu;
	room = ddps_sd_segment_in(c->b->room(c->assoc));
	return room >= SHARED_LEAST && room < mulpdu ? room : mulpdu;
}

/* The segment to be sent, which is in tx_seg.  NULL: none now. */
static const struct ddps_seg *pull_segment(struct ddps_sd_pair *p)
{
	struct ddps_sd_carrier *c = p->carrier;
	struct ddps_sd_session *s = p->sess;
	size_t mulpdu = ddps_sd_mulpdu(c->max_user_data, s->param.max_mulpdu), room;
	bool got;

	if (c->tx_pair == p)
		return c->tx_seg;
	if (!have_room(c))
		return pull_failed(p, ddps_error_make(DDPS_E_NOMEM, 0, "no memory for a segment"));
	c->tx_seg->final = false;
	c->tx_seg->left = 0;
	room = get_room_for_segment(c, mulpdu);
	got = s->llp.data->tx_next(s->llp.data_user, c->tx_seg, room) > 0;
	/* Behind the end of what there was the Terminate may be due: that is found when it says 0. */
	p->want_seg = got && (!c->tx_seg->final || s->shutting);
	if (p->sess != s)
		return NULL;
	if (!got) {
		if (s->shutting) {
			p->owe_term = true;
			ddps_sd_tx_check(p);
		}
		return NULL;
	}
	if (c->tx_seg->hdr_len + c->tx_seg->pay_len > mulpdu) /* [5043-9-4] */
		return pull_failed(p, ddps_error_make(DDPS_E_TOO_LONG, 0,
						      "segment of %zu octets, MULPDU is %zu",
						      c->tx_seg->hdr_len + c->tx_seg->pay_len,
						      mulpdu));
	c->bulk |= c->tx_seg->hdr_len + c->tx_seg->pay_len == room;
	return c->tx_seg;
}

void ddps_sd_tx_let_go(struct ddps_sd_carrier *c)
{
	if (c->tx_pair)
		ddps_llp_lend(c->env, &c->tx_pair->sess->llp, false);
	c->tx_pair = NULL;
	free(c->tx_copy);
	c->tx_copy = NULL;
	if (!c->running)
		give_room_back(c);
}

int ddps_sd_tx_keep_copy(struct ddps_sd_pair *p)
{
	struct ddps_sd_carrier *c = p->carrier;
	struct ddps_seg *seg = c->tx_seg;
	size_t at = 0;

	if (c->tx_pair != p || c->tx_copy || !seg->pay_len)
		return 0;
	c->tx_copy = malloc(seg->pay_len);
	if (!c->tx_copy)
		return DDPS_E_NOMEM;
	for (int i = 0; i < seg->npay; at += seg->pay[i++].iov_len)
		memcpy(c->tx_copy + at, seg->pay[i].iov_base, seg->pay[i].iov_len);
	seg->pay[0] = (struct iovec){ c->tx_copy, seg->pay_len };
	seg->npay = 1;
	return 0;
}

static void write_ssn(uint8_t *to, uint16_t ssn)
{
	to[0] = (uint8_t)(ssn >> 8);
	to[1] = (uint8_t)ssn;
}

/* The backend has taken the place of @len octets back, as a message if it is @filled. */
static void give_place_back(struct ddps_sd_pair *p, uint8_t *to, size_t len, bool filled)
{
	struct ddps_sd_carrier *c = p->carrier;

	c->b->placed(c->assoc, to, p->stream, DDPS_SD_PPID_SEGMENT, len, filled);
	if (filled) {
		p->last_seq = ++c->sent;
		p->tx++;
	}
}

/* Where the backend has no place, send() takes the pieces, or says why not. */
static int send_sd_pieces(struct ddps_sd_pair *p, const struct ddps_seg *seg)
{
	uint8_t head[DDPS_SD_SSN_LEN + DDPS_SEG_HDR_MAX];
	struct iovec iov[PIECES];
	int n = 0;

	write_ssn(head, p->tx);
	memcpy(head + DDPS_SD_SSN_LEN, seg->hdr, seg->hdr_len);
	iov[n++] = (struct iovec){ head, DDPS_SD_SSN_LEN + seg->hdr_len };
	for (int i = 0; i < seg->npay; i++)
		iov[n++] = seg->pay[i];
	return hand_over(p, DDPS_SD_PPID_SEGMENT, iov, n);
}

static int send_sd_segment(struct ddps_sd_pair *p, const struct ddps_seg *seg)
{
	struct ddps_sd_carrier *c = p->carrier;
	const size_t len = DDPS_SD_SSN_LEN + seg->hdr_len + seg->pay_len;
	uint8_t *to = c->b->place ? c->b->place(c->assoc, p->stream, len) : NULL, *at;

	if (!to)
		return send_sd_pieces(p, seg);
	write_ssn(to, p->tx);
	memcpy(to + DDPS_SD_SSN_LEN, seg->hdr, seg->hdr_len);
	at = to + DDPS_SD_SSN_LEN + seg->hdr_len;
	for (const struct iovec *v = seg->pay; v < seg->pay + seg->npay; at += v++->iov_len) {
		if (v->iov_len)
			memcpy(at, v->iov_base, v->iov_len);
	}
	ddps_assert(at == to + len);
	give_place_back(p, to, len, true);
	return 0;
}

/* Behind a segment that its message goes on after, those as long as the MULPDU are written to their places in the
 * backend.  @left: payload of its message that is to follow, @hdr: octets in front of each one's. */
static void place_segments(struct ddps_sd_pair *p, struct ddps_sd_session *s, size_t left,
			   size_t hdr)
{
	struct ddps_sd_carrier *c = p->carrier;
	const size_t len = ddps_sd_mulpdu(c->max_user_data, s->param.max_mulpdu);
	const bool alone = TAILQ_EMPTY(&c->seg) && TAILQ_EMPTY(&c->ctl);
	unsigned n = 0;
	uint8_t *to;
	bool filled;

	for (; left > len - hdr && (alone || c->turn < TURN) && window_open(p); left -= len - hdr) {
		to = c->b->place(c->assoc, p->stream, DDPS_SD_SSN_LEN + len);
		if (!to)
			break;
		write_ssn(to, p->tx);
		filled = s->llp.data->tx_into(s->llp.data_user, to + DDPS_SD_SSN_LEN, len);
		give_place_back(p, to, DDPS_SD_SSN_LEN + len, filled);
		if (!filled)
			break;
		c->turn += (uint32_t)len;
		n++;
	}
	if (n)
		s->llp.data->tx_done(s->llp.data_user, n);
}

/* One segment; false: it is not this session's turn any more. */
static bool segment_step(struct ddps_sd_pair *p, struct ddps_sd_session *s)
{
	struct ddps_sd_carrier *c = p->carrier;
	const struct ddps_seg *seg;
	size_t hdr, pay, left;
	int err;

	if (!can_send(p) || !window_open(p) || !(seg = pull_segment(p)))
		return false;
	hdr = seg->hdr_len;
	pay = seg->pay_len;
	left = seg->left;
	err = send_sd_segment(p, seg);
	if (err == DDPS_E_AGAIN) { /* it stays pulled, and is the first to go on */
		c->tx_pair = p;
		ddps_llp_lend(c->env, &s->llp, pay && !c->tx_copy);
		if (p->in_seg) /* posted meanwhile */
			TAILQ_REMOVE(&c->seg, p, seg_link);
		p->in_seg = true;
		TAILQ_INSERT_HEAD(&c->seg, p, seg_link);
		return false;
	}
	c->turn += (uint32_t)(hdr + pay);
	p->turns = c->turns;
	if (c->tx_pair) /* it had to wait */
		ddps_sd_tx_let_go(c);
	if (err < 0)
		return false;
	s->llp.data->tx_done(s->llp.data_user, 1);
	if (left > pay && p->sess == s && p->want_seg && c->b->place && s->llp.data->tx_into)
		place_segments(p, s, left, hdr);
	return p->sess == s && p->want_seg;
}

/* Small messages of a session go together, for whoever posts them together has them complete, and
 * posts again, together. */
static void segment_turn(struct ddps_sd_pair *p)
{
	struct ddps_sd_carrier *c = p->carrier;
	struct ddps_sd_session *s = p->sess;

	if (c->tx_pair != p) /* else it goes on with its turn */
		c->turn = 0;
	p->in_seg = false;
	TAILQ_REMOVE(&c->seg, p, seg_link);
	while (segment_step(p, s)) {
		if (c->turn >= TURN || !TAILQ_EMPTY(&c->ctl)) {
			p->turns = ++c->turns;
			ddps_sd_tx_segments(p);
			break;
		}
	}
}

/* ---- whose turn ---- */

void ddps_sd_tx_control(struct ddps_sd_pair *p)
{
	if (!p->in_ctl) {
		p->in_ctl = true;
		TAILQ_INSERT_TAIL(&p->carrier->ctl, p, ctl_link);
	}
	ddps_task_post(p->carrier->env->loop, &p->carrier->task);
}

/*
 * Who had nothing to send goes before those who always have: a message now and then does not wait for
 * their bulk.  Once for each turn of theirs, so that they have one.
 */
static void line_up(struct ddps_sd_pair *p)
{
	struct ddps_sd_carrier *c = p->carrier;
	bool first = p->turns != c->turns;

	p->in_seg = true;
	if (!first)
		TAILQ_INSERT_TAIL(&c->seg, p, seg_link);
	else if (c->tx_pair && TAILQ_FIRST(&c->seg) == c->tx_pair)
		TAILQ_INSERT_AFTER(&c->seg, c->tx_pair, p, seg_link);
	else
		TAILQ_INSERT_HEAD(&c->seg, p, seg_link);
}

static bool queue_sd_pair(struct ddps_sd_pair *p)
{
	if (!can_send(p))
		return false;
	if (!p->in_seg)
		line_up(p);
	return true;
}

void ddps_sd_tx_segments(struct ddps_sd_pair *p)
{
	if (queue_sd_pair(p) && !p->carrier->running)
		ddps_task_post(p->carrier->env->loop, &p->carrier->task);
}

void ddps_sd_tx_kick(struct ddps_sd_pair *p)
{
	queue_sd_pair(p);
	ddps_sd_tx_run(p->carrier);
}

static __attribute__((noinline)) void run_carrier(struct ddps_sd_carrier *c)
{
	uint64_t before = c->sent;

	c->running = true;
	while (!c->blocked && !c->broken && c->state != DDPS_SD_GOING) {
		if (!TAILQ_EMPTY(&c->ctl))
			control_turn(TAILQ_FIRST(&c->ctl));
		else if (!c->quiet && !TAILQ_EMPTY(&c->seg))
			segment_turn(TAILQ_FIRST(&c->seg));
		else
			break;
	}
	c->running = false;
	c->bulk &= c->blocked;
	give_room_back(c);
	if (c->sent != before && c->b->flush)
		c->b->flush(c->assoc);
}

void ddps_sd_tx_run(struct ddps_sd_carrier *c)
{ /* mostly nothing waits: acknowledgements ask, too */
	if (!c->running && c->state == DDPS_SD_UP &&
	    !(TAILQ_EMPTY(&c->ctl) && TAILQ_EMPTY(&c->seg)))
		run_carrier(c);
}

void ddps_sd_tx_reset(struct ddps_sd_pair *p)
{
	struct ddps_sd_carrier *c = p->carrier;

	stop_waiting(p);
	if (p->in_ctl)
		TAILQ_REMOVE(&c->ctl, p, ctl_link);
	if (p->in_seg)
		TAILQ_REMOVE(&c->seg, p, seg_link);
	p->in_ctl = p->in_seg = false;
	p->ctl = 0;
	p->term_due = p->owe_term = p->want_seg = false;
	p->tx = p->base = 0;
	p->probe_seq = p->ctl_seq = 0;
	free(p->pd);
	p->pd = NULL;
	p->pd_len = 0;
}

void ddps_sd_tx_restart(struct ddps_sd_carrier *c)
{
	c->acked = c->sent;
	c->asked = c->quiet = c->blocked = c->broken = false;
	ddps_sd_tx_quiet(c, false);
}
