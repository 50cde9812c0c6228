/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wires next to each other.  The input is a program for both ends of a session: requests of any
 * kind, right and wrong ones, receives, regions that go, an end in order or none.  It is played over TCP,
 * through shared memory and over SCTP, in a kernel that loses nothing.  Whatever either user sees has to be the same: what
 * calls return, completions in their order with all that they say, events, errors, and the memory.
 */
#include "fuzz.h"
#include "sim/kern.h"
#include "mutate.h"
#include <ddpsess/ddpsess.h>
#include <stdio.h>

#define STEPS_MAX 80
#define MEMORY	  4096u
#define REGIONS	  4u
#define QUEUE	  8u
#define MS	  UINT64_C(1000000)
#define REST	  (3000 * MS)  /* longer than what an acknowledgement may wait */
#define LIFE	  (60000 * MS) /* longer than all timers of an end */

enum wire { TCP, SHM, SCTP, WIRES };

static const char *const listen_at[WIRES] = {
	[TCP] = "tcp://10.0.0.2:0",
	[SHM] = "shm:///sim/wire",
	[SCTP] = "sctp://10.0.0.2:0?backend=native&encap=9899",
};

struct end {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *send_cq, *recv_cq;
	struct ddps_ep *ep;
	struct ddps_mr *mr[REGIONS], *window;
	uint64_t memory[REGIONS][MEMORY / 8];
	uint32_t stag[REGIONS + 1]; /* the latest, also of one that is gone; then the window's */
	uint64_t to[REGIONS + 1];
	unsigned posted, received;
	int room;     /* receives that wait for a message */
	bool over;    /* its last event has come */
	bool aborted; /* by the other end: over SCTP that looks like an end in order (RFC 5043 5); or
		       * not_compared() */
	struct fuzz_log log, told; /* told: its events, whatever completes meanwhile */
};

struct world {
	struct end end[2]; /* initiator, responder */
	struct ddps_listener *listener;
	unsigned flags, up;
	enum wire wire;
	bool left;
	bool odd; /* anything may fail from here on */
};

/* Each has its use, so that what is under way simultaneously does not meet in memory. */
enum { TARGET, SOURCE, SINK, COUNTER, WINDOW };

static const unsigned access_of[REGIONS] = {
	[TARGET] = DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_FLUSHABLE | DDPS_BIND,
	[SOURCE] = DDPS_REMOTE_READ,
	[SINK] = DDPS_LOCAL_WRITE | DDPS_ZERO_BASED,
	[COUNTER] = DDPS_REMOTE_ATOMIC,
};

/* What the first octet of the input says. */
enum { RFC7306 = 1, STALL = 2, NARROW = 4, LATE = 8, REJECT = 16, P2P = 32, NO_CRC = 64 };

static struct end *enter_end(struct world *w, unsigned i)
{
	kern.host = i;
	return &w->end[i];
}

/* ---- what a user sees ---- */

static unsigned region_of(const struct end *e, uint32_t stag)
{
	unsigned i = 0;

	while (i <= REGIONS && e->stag[i] != stag)
		i++;
	return i;
}

static void take_wires_fuzz_completions(struct world *w, unsigned i)
{
	struct end *e = enter_end(w, i);
	struct ddps_cq *const cq[] = { e->send_cq, e->recv_cq };
	struct ddps_wc wc;

	for (unsigned k = 0; k < 2; k++)
		while (ddps_cq_poll(cq[k], &wc, 1) == 1) {
			if (e->aborted)
				continue;
			fuzz_note(&e->log, "%u: %s %u: op %d status %d len %u term %u/%u/%u", i,
				  k ? "recv" : "send", (unsigned)wc.wr_id, wc.op, wc.status, wc.len,
				  wc.term.layer, wc.term.etype, wc.term.code);
			if (wc.status)
				continue;
			fuzz_note(&e->log, "solicited %d, invalidated %d %u", wc.solicited,
				  wc.invalidated, wc.invalidated ? region_of(e, wc.inv_stag) : 0);
			if (wc.has_imm || wc.op == DDPS_OP_FETCH_ADD || wc.op == DDPS_OP_CMP_SWAP)
				fuzz_note_octets(&e->log, "with", wc.imm, sizeof wc.imm);
		}
}

static void answer_wires_fuzz(struct world *w, struct ddps_request *req)
{
	struct ddps_conn_param p;

	ddps_conn_param_init(&p);
	p.private_data = "yes";
	p.private_data_len = 3;
	p.ird = p.ord = 2;
	p.crc = !(w->flags & NO_CRC);
	if (w->flags & REJECT)
		fuzz_note(&w->end[1].log, "reject: %d", ddps_reject(req, "no", 2));
	else
		fuzz_note(&w->end[1].log, "accept: %d", ddps_accept(req, w->end[1].ep, &p));
}

static void note_event(struct end *e, const struct ddps_event *ev)
{
	fuzz_note(&e->told, "event %d, ird %u ord %u", ev->type, ev->info.ird, ev->info.ord);
	fuzz_note(&e->told, "code %d, %s%u/%u/%u", ev->error.code,
		  ev->error.has_triple ? "" : "no ", ev->error.triple.layer, ev->error.triple.etype,
		  ev->error.triple.code);
	fuzz_note_octets(&e->told, "private data", ev->private_data, ev->private_data_len);
}

static void take_wires_fuzz_events(struct world *w, unsigned i)
{
	struct end *e = enter_end(w, i);
	struct ddps_event ev;

	while (ddps_event_get(e->ctx, &ev) == 1) {
		if (!e->aborted)
			note_event(e, &ev);
		w->up += ev.type == DDPS_EV_ESTABLISHED;
		e->over |= ev.type == DDPS_EV_CLOSED || ev.type == DDPS_EV_FAILED ||
			   ev.type == DDPS_EV_REJECTED;
		if (ev.type == DDPS_EV_CONNECT_REQUEST)
			answer_wires_fuzz(w, ev.request);
	}
}

static void work_until_quiet(struct world *w)
{
	for (unsigned i = 0; i < 2; i++)
		for (unsigned n = 0; ddps_progress(enter_end(w, i)->ctx, 0) > 0; n++)
			FUZZ_CHECK(n < 100000);
}

/* All that the steps so far have caused happens; then both users look. */
static void rest_for_wires(struct world *w, uint64_t ns)
{
	uint64_t until = kern.now + ns, next;

	work_until_quiet(w);
	while ((next = kern_next()) <= until) {
		kern_go(next);
		work_until_quiet(w);
	}
	kern_go(until);
	for (unsigned i = 0; i < 2; i++) {
		take_wires_fuzz_completions(w, i);
		take_wires_fuzz_events(w, i);
	}
	work_until_quiet(w);
}

/* ---- what a user does ---- */

static void enroll(struct end *e, unsigned k)
{
	FUZZ_CHECK(!ddps_mr_reg(e->pd, e->memory[k], MEMORY, access_of[k], NULL, &e->mr[k]));
	e->stag[k] = ddps_mr_stag(e->mr[k]);
	e->to[k] = ddps_mr_to(e->mr[k]);
}

static void post_wire_receive(struct world *w, unsigned i, unsigned how)
{
	struct end *e = enter_end(w, i);
	struct ddps_sge sge = { (uint8_t *)e->memory[SINK] + 256 * (e->received++ % QUEUE),
				how & 0x80 ? how & 0x7f : 256, e->stag[SINK] };

	e->room++;
	fuzz_note(&e->log, "receive: %d", ddps_post_recv(e->ep, e->received, &sge, 1));
}

/* What is wrong about a request; nothing of it may change any memory. */
static void spoil_request(struct world *w, struct ddps_send_wr *wr, struct ddps_sge *sge,
			  unsigned how)
{
	struct end *p = &w->end[wr->stag == w->end[0].stag[TARGET] ? 0 : 1];

	switch (how % 7) {
	case 0:
		wr->stag ^= 0x10000;
		break;
	case 1:
		wr->to += MEMORY;
		break;
	case 2:
		wr->to = UINT64_MAX - how;
		break;
	case 3:
		wr->stag = p->stag[SINK];
		break;
	case 4:
		sge->lkey ^= 0x10000;
		break;
	case 5:
		sge->len =
			3000; /* more than there is behind a sink, or than a receive has room for */
		break;
	default:
		wr->to += 1;
		wr->flags |= DDPS_WR_INVALIDATE;
	}
}

static enum ddps_op op_of(unsigned kind, unsigned how)
{
	static const enum ddps_op ops[] = { DDPS_OP_SEND,      DDPS_OP_SEND,	 DDPS_OP_WRITE,
					    DDPS_OP_READ,      DDPS_OP_IMM,	 DDPS_OP_WRITE_IMM,
					    DDPS_OP_FETCH_ADD, DDPS_OP_CMP_SWAP, DDPS_OP_SEND_IMM };

	if (ops[kind] == DDPS_OP_CMP_SWAP && how & 0x80)
		return how & 0x10 ? DDPS_OP_FLUSH : DDPS_OP_ATOMIC_WRITE;
	return ops[kind];
}

static bool is_answered_op(enum ddps_op op)
{
	return op == DDPS_OP_READ || op == DDPS_OP_FETCH_ADD || op == DDPS_OP_CMP_SWAP ||
	       op == DDPS_OP_ATOMIC_WRITE || op == DDPS_OP_FLUSH;
}

/* Where of the peer's, and what of one's own. */
static void aim(const struct end *e, const struct end *peer, struct ddps_send_wr *wr,
		struct ddps_sge *sge, unsigned off, unsigned len)
{
	unsigned k = TARGET;
	uint8_t *sink = (uint8_t *)e->memory[SINK] + MEMORY / 2 + 512 * (e->posted % 4);

	*sge = (struct ddps_sge){ (uint8_t *)e->memory[SOURCE] + 4 * off, len, e->stag[SOURCE] };
	if (wr->op == DDPS_OP_WRITE || wr->op == DDPS_OP_WRITE_IMM) {
		sge->len = 12 * len;
		k = wr->imm[0] & 1 ? WINDOW : TARGET;
	} else if (wr->op == DDPS_OP_READ) {
		*sge = (struct ddps_sge){ sink, 2 * len, e->stag[SINK] };
		k = SOURCE;
	} else if (wr->op == DDPS_OP_FETCH_ADD || wr->op == DDPS_OP_CMP_SWAP) {
		*sge = (struct ddps_sge){ sink, 8, e->stag[SINK] };
		k = COUNTER;
		off &= ~1u;
	} else if (wr->op == DDPS_OP_ATOMIC_WRITE) {
		off &= ~1u;
	}
	wr->stag = peer->stag[k];
	wr->to = peer->to[k] + (k == WINDOW ? off % 64 : 4 * off);
}

static void post_on_wire(struct world *w, unsigned i, unsigned kind, bool wrong,
			 struct ddps_rbuf *in)
{
	struct end *e = enter_end(w, i);
	unsigned how = ddps_rbuf_u8(in), off = ddps_rbuf_u8(in), len = ddps_rbuf_u8(in);
	struct ddps_sge sge;
	struct ddps_send_wr wr = { .wr_id = e->posted, .op = op_of(kind, how), .sge = &sge };

	wr.flags = how & (DDPS_WR_SILENT | DDPS_WR_FENCE | DDPS_WR_PLACED);
	if (wr.op == DDPS_OP_SEND || wr.op == DDPS_OP_IMM || wr.op == DDPS_OP_WRITE_IMM)
		wr.flags |= how & DDPS_WR_SOLICITED;
	if (is_answered_op(wr.op))
		wr.flags &= ~DDPS_WR_PLACED;
	memset(wr.imm, (int)how, sizeof wr.imm);
	wr.atomic = (struct ddps_atomic){ off, UINT64_MAX, len, UINT64_MAX };
	aim(e, &w->end[!i], &wr, &sge, off, len);
	if (wr.op == DDPS_OP_SEND && how & 0x40) {
		wr.flags |= DDPS_WR_INVALIDATE;
		wr.stag = w->end[!i].stag[how & 0x80 ? WINDOW : TARGET];
	}
	if (wrong)
		spoil_request(w, &wr, &sge, how >> 3);
	wr.nsge = wr.op != DDPS_OP_IMM && wr.op != DDPS_OP_ATOMIC_WRITE && wr.op != DDPS_OP_FLUSH;
	if (wr.op == DDPS_OP_FLUSH)
		wr.atomic.mask = 1 + (len & 4);
	fuzz_note(&e->log, "%u: post %u, op %d flags %x len %u: %d", i, e->posted, wr.op, wr.flags,
		  sge.len, ddps_post_send(e->ep, &wr));
	e->posted++;
}

/* A window comes and goes, a region is revoked or another. */
static void change_wire_rights(struct world *w, unsigned i, unsigned how)
{
	struct end *e = enter_end(w, i);
	unsigned k = how >> 2 & 3;
	struct ddps_sge sge = { e->memory[TARGET], 64 + (how & 0xf0u), e->stag[TARGET] };
	struct ddps_send_wr wr = { .wr_id = e->posted++, .op = DDPS_OP_BIND };

	switch (how & 3) {
	case 0:
		ddps_mr_dereg(e->mr[k]);
		enroll(e, k);
		break;
	case 1:
		wr.op = DDPS_OP_LOCAL_INV;
		wr.stag = e->stag[k == TARGET ? WINDOW : k];
		break;
	default:
		wr.sge = &sge;
		wr.nsge = 1;
		wr.stag = e->stag[WINDOW] + 1;
		wr.bind.window = e->window;
		wr.bind.access = DDPS_ZERO_BASED | (how & 4 ? DDPS_REMOTE_READ : DDPS_REMOTE_WRITE);
	}
	if (how & 3)
		fuzz_note(&e->log, "%u: op %d: %d", i, wr.op, ddps_post_send(e->ep, &wr));
	e->stag[WINDOW] = ddps_mr_stag(e->window);
}

/* Is there a message that waits for a receive? */
static bool has_waiting_message(const struct world *w)
{
	return w->flags & STALL && (w->end[0].room < 0 || w->end[1].room < 0);
}

/* It holds back TCP's end, and not that of a stream pair. */
static void not_compared(struct world *w)
{
	if (has_waiting_message(w))
		w->end[0].aborted = w->end[1].aborted = true;
}

/*
 * One end leaves, and then the other: a stream pair of SCTP ends in both directions simultaneously, so
 * what TCP still carries the other way is not compared.
 */
static void leave_wire(struct world *w, unsigned i, bool abort)
{
	FUZZ_CHECK(!(abort ? ddps_abort : ddps_disconnect)(enter_end(w, i)->ep));
	w->left = true;
	w->end[!i].aborted = abort;
	not_compared(w);
	rest_for_wires(w, REST / 10); /* shorter than the time that an end in order may take */
	(void)ddps_disconnect(enter_end(w, !i)->ep);
}

static void note_memory(struct world *w)
{
	for (unsigned i = 0; i < 2; i++) {
		struct end *e = &w->end[i];
		uint64_t hash = 0;

		for (unsigned k = 0; k < REGIONS; k++)
			for (unsigned n = 0; n < MEMORY / 8; n++)
				hash = (hash ^ e->memory[k][n]) * 0x100000001b3;
		fuzz_note(&e->log, "memory %llx", (unsigned long long)hash);
	}
}

/* Is something to come back?  Whether it is in front of what waits, or behind, depends on the wire. */
static bool has_answer_to_come(unsigned kind, unsigned how)
{
	return how & DDPS_WR_PLACED || is_answered_op(op_of(kind, how));
}

/*
 * Can the session end of it?  Then it depends on the wire what else has happened by then, so such a
 * step is done when nothing else is under way; and never if messages may wait for receives.
 */
static bool risky(struct world *w, unsigned b, unsigned kind, unsigned how)
{
	struct end *peer = &w->end[~b >> 4 & 1];
	enum ddps_op op = kind < 9 ? op_of(kind, how) : DDPS_OP_RECV;

	if (op == DDPS_OP_SEND || op == DDPS_OP_SEND_IMM || op == DDPS_OP_IMM ||
	    op == DDPS_OP_WRITE_IMM)
		peer->room--;
	return kind >= 11 || (b & 0xc0) == 0xc0 || how & (kind < 9 ? 0x41u : 0x80u) ||
	       (peer->room < 0 && !(w->flags & STALL));
}

static void take_wire_step(struct world *w, struct ddps_rbuf *in)
{
	unsigned b = ddps_rbuf_u8(in), kind = b & 15, i = b >> 4 & 1;
	bool bad = risky(w, b, kind, fuzz_more(in) ? *in->p : 0), alone = w->odd |= bad;

	if (w->flags & STALL && kind < 14 &&
	    (bad || (has_waiting_message(w) && kind < 9 &&
		     has_answer_to_come(kind, fuzz_more(in) ? *in->p : 0))))
		return;
	if (alone)
		rest_for_wires(w, REST);
	if (kind < 9)
		post_on_wire(w, i, kind, (b & 0xc0) == 0xc0, in);
	else if (kind < 11)
		post_wire_receive(w, i, ddps_rbuf_u8(in));
	else if (kind < 14)
		change_wire_rights(w, i, ddps_rbuf_u8(in));
	else if (b & 0x40 && !w->end[i].over)
		leave_wire(w, i, b & 0x20);
	if (alone || !(b & 0x20)) {
		rest_for_wires(w, REST);
		note_memory(w);
	}
}

/* ---- a run ---- */

static void make_wire_end(struct world *w, unsigned i)
{
	struct end *e = enter_end(w, i);
	struct ddps_ep_attr attr;

	FUZZ_CHECK(!ddps_ctx_new(&e->ctx, NULL) && !ddps_pd_new(e->ctx, &e->pd) &&
		   !ddps_cq_new(e->ctx, 256, &e->send_cq) &&
		   !ddps_cq_new(e->ctx, 256, &e->recv_cq));
	ddps_ep_attr_init(&attr);
	attr.pd = e->pd;
	attr.send_cq = e->send_cq;
	attr.recv_cq = e->recv_cq;
	attr.sq_depth = attr.rq_depth = QUEUE;
	attr.rfc7306 = attr.send_imm = attr.flush = w->flags & RFC7306;
	attr.no_recv = w->flags & STALL ? DDPS_NO_RECV_STALL : DDPS_NO_RECV_TERMINATE;
	attr.flush_late = w->flags & LATE;
	FUZZ_CHECK(!ddps_ep_new(e->ctx, &attr, &e->ep) && !ddps_mw_new(e->pd, true, &e->window));
	e->stag[WINDOW] = ddps_mr_stag(e->window);
	for (unsigned k = 0; k < REGIONS; k++)
		enroll(e, k);
	for (unsigned n = 0; n < MEMORY / 8; n++)
		e->memory[SOURCE][n] = (n + 1) * UINT64_C(0x9e3779b97f4a7c15) + i;
}

static void begin_wire_session(struct world *w)
{
	const struct ddps_send_wr first = { .op = DDPS_OP_WRITE, .flags = DDPS_WR_SILENT };
	struct ddps_conn_param p;
	char uri[128];

	make_wire_end(w, 0);
	make_wire_end(w, 1);
	FUZZ_CHECK(!ddps_listen(enter_end(w, 1)->ctx, listen_at[w->wire], NULL, &w->listener));
	FUZZ_CHECK(ddps_listener_uri(w->listener, uri, sizeof uri) > 0);
	ddps_conn_param_init(&p);
	p.ird = p.ord = 3;
	p.p2p = w->flags & P2P;
	p.rtr = p.p2p ? DDPS_RTR_WRITE : 0;
	p.crc = !(w->flags & NO_CRC);
	p.private_data = "please";
	p.private_data_len = 6;
	FUZZ_CHECK(!ddps_connect(enter_end(w, 0)->ep, uri, &p));
	for (unsigned i = 0; i < 3; i++)
		rest_for_wires(w, REST);
	/* over TCP the responder waits for the initiator's first message (RFC 5044 7.1.2) */
	if (w->up == 2)
		FUZZ_CHECK(!ddps_post_send(enter_end(w, 0)->ep, &first));
	rest_for_wires(w, REST);
	FUZZ_CHECK(w->flags & REJECT || w->up == 2 || (p.p2p && w->up));
}

/* Both leave; each learns of its end, and nothing stays. */
static void finish_wire_session(struct world *w)
{
	rest_for_wires(w, REST);
	not_compared(w);
	for (unsigned i = 0; i < 2; i++)
		(void)ddps_disconnect(enter_end(w, i)->ep);
	rest_for_wires(w, LIFE);
	FUZZ_CHECK(w->end[0].over && (w->end[1].over || w->flags & REJECT));
	note_memory(w);
	for (unsigned i = 0; i < 2; i++)
		ddps_ctx_free(enter_end(w, i)->ctx);
	FUZZ_CHECK(!kern_stop());
}

static void play_on_wire(const uint8_t *data, size_t size, enum wire wire, struct fuzz_log log[4])
{
	static struct world w;
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	uint64_t before = kern.live;

	memset(&w, 0, sizeof w);
	w.flags = ddps_rbuf_u8(&in);
	w.wire = wire;
	kern_start(1);
	kern.mtu = w.flags & NARROW ? 1500 : 65535;
	kern.window = 1u << 20;
	begin_wire_session(&w);
	for (unsigned n = 0; n < STEPS_MAX && fuzz_more(&in) && !w.left && !(w.flags & REJECT); n++)
		take_wire_step(&w, &in);
	finish_wire_session(&w);
	FUZZ_CHECK(kern.live == before);
	for (unsigned i = 0; i < 4; i++)
		log[i] = i & 1 ? w.end[i / 2].told : w.end[i / 2].log;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_log log[WIRES][4];

	for (enum wire wire = TCP; wire < WIRES; wire++)
		play_on_wire(data, size, wire, log[wire]);
	for (unsigned i = 0; i < 4; i++) {
		FUZZ_CHECK(log[TCP][i].lines == log[SHM][i].lines &&
			   log[TCP][i].hash == log[SHM][i].hash);
		FUZZ_CHECK(log[TCP][i].lines == log[SCTP][i].lines &&
			   log[TCP][i].hash == log[SCTP][i].hash);
	}
	return 0;
}
