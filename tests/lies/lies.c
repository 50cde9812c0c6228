/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the tester and what it looks at: functions of its own, of the library and of the system that are
 * wrapped by the linker.  Only the thread that runs the case, and the relay's, are lied to.
 */
#include "lies/lies.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

WRAPPED(cf_fpdu_recv);
WRAPPED(cf_app_mr);
WRAPPED(cf_recv);
WRAPPED(cf_ping);
WRAPPED(cf_answer);
WRAPPED(cf_expect_term);
WRAPPED(cf_app_recv_data);
WRAPPED(cf_tcp_read);
WRAPPED(cf_sctp_read);
WRAPPED(cf_sctp_read_ctrl);
WRAPPED(cf_sctp_in_order);
WRAPPED(ddps_cq_wait);
WRAPPED(ddps_cq_poll);
WRAPPED(ddps_event_wait);
WRAPPED(ddps_ep_info);
WRAPPED(ddps_accept);
WRAPPED(ddps_reject);
WRAPPED(ddps_connect);
WRAPPED(ddps_disconnect);
WRAPPED(ddps_post_send);
WRAPPED(ddps_post_recv);
WRAPPED(ddps_mr_dereg);
WRAPPED(ddps_ctx_new);
WRAPPED(ddps_pd_new);
WRAPPED(ddps_cq_new);
WRAPPED(ddps_ep_new);
WRAPPED(ddps_listen);

static _Thread_local bool here; /* this thread hears lies */
static bool on;
static _Atomic bool told;
static enum lie_kind what;
static unsigned way_now;
static _Atomic unsigned left;
static char text[120];

#define REGIONS 64u

static struct cf_mr region[REGIONS];
static unsigned regions;
static struct ddps_wc latest;

bool lie_now(enum lie_kind kind, const char *where)
{
	if (!here || !on || kind != what || !left || atomic_fetch_sub(&left, 1) != 1)
		return false;
	told = true;
	snprintf(text, sizeof text, "%s, way %u", where, way_now);
	return true;
}

unsigned lie_way(void)
{
	return way_now;
}

void lie_hear(void)
{
	here = true;
}

void lie_begin(enum lie_kind kind, unsigned way, unsigned n)
{
	what = kind;
	way_now = way;
	left = n;
	told = false;
	here = true;
	*text = 0;
	regions = 0;
	lie_shared_begin();
	on = true;
}

bool lie_end(void)
{
	on = false;
	return told;
}

const char *lie_text(void)
{
	return text;
}

/* ---- segments ---- */

enum { SEG_WAYS = 14 };

static void change_segment(uint8_t *b, size_t *len)
{
	size_t header = b[0] & 0x80 ? 14 : 18;

	switch (way_now) {
	case 0:
		b[1] ^= 1; /* opcode */
		break;
	case 1:
		b[0] ^= 0x40; /* L */
		break;
	case 2:
		b[0] ^= 0x80; /* T */
		break;
	case 3:
		b[5] ^= 1; /* STag */
		break;
	case 4:
	case 5:
	case 6:
		b[way_now == 4	 ? 9
		  : way_now == 5 ? 13
				 : header - 1] ^= 1; /* QN, MSN or TO, MO or TO */
		break;
	case 7:
		b[0] ^= 4; /* reserved */
		break;
	case 8:
		b[1] ^= 0x80; /* version of RDMAP */
		break;
	case 9:
		--*len; /* an octet is missing */
		break;
	case 10:
		b[(*len)++] = 0; /* there is one more */
		break;
	case 11:
		b[*len > header + 2 ? header + 2 : 1] ^= 0x10; /* a Terminate: its flags */
		break;
	case 12:
		b[*len - 1] ^= 1;
		break;
	default:
		*len = 13;
		break;
	}
}

void __wrap_cf_fpdu_recv(struct cf *cf)
{
	__real_cf_fpdu_recv(cf);
	if (lie_now(LIE_SEGMENT, "a segment"))
		change_segment(cf->in.b, &cf->in.len);
}

/* ---- memory ---- */

struct cf_mr __wrap_cf_app_mr(struct cf *cf, size_t len, unsigned access)
{
	struct cf_mr m = __real_cf_app_mr(cf, len, access);

	region[regions++ % REGIONS] = m;
	return m;
}

/* Behind what the target has said, its memory is not as it left it. */
static void memory_lie(void)
{
	if (!lie_now(LIE_MEMORY, "memory"))
		return;
	for (unsigned i = 0; i < regions && i < REGIONS; i++) {
		const struct cf_mr *m = &region[i];

		if (m->len)
			m->mem[way_now == 0 ? 0 : way_now == 1 ? m->len - 1 : m->len / 2] ^= 0x20;
	}
}

void __wrap_cf_recv(struct cf *cf)
{
	__real_cf_recv(cf);
	memory_lie();
}

void __wrap_cf_ping(struct cf *cf)
{
	__real_cf_ping(cf);
	memory_lie();
}

void __wrap_cf_answer(struct cf *cf)
{
	__real_cf_answer(cf);
	memory_lie();
}

void __wrap_cf_expect_term(struct cf *cf, uint16_t code, enum cf_carries carries)
{
	__real_cf_expect_term(cf, code, carries);
	memory_lie();
}

const uint8_t *__wrap_cf_app_recv_data(struct cf *cf, const struct ddps_wc *wc)
{
	uint8_t *b = (uint8_t *)(uintptr_t)__real_cf_app_recv_data(cf, wc);

	if (lie_now(LIE_MEMORY, "a receive"))
		b[way_now == 0 ? 0 : way_now == 1 && wc->len ? wc->len - 1 : wc->len / 2] ^= 0x20;
	return b;
}

/* ---- set-up ---- */

void __wrap_cf_tcp_read(struct cf *cf, void *p, size_t len)
{
	static const uint8_t flip[][2] = { { 3, 1 },	 { 16, 0x80 }, { 16, 0x40 }, { 16, 0x20 },
					   { 16, 0x10 }, { 16, 1 },    { 17, 3 },    { 17, 1 },
					   { 17, 2 },	 { 18, 4 } };
	uint8_t *b = p;

	__real_cf_tcp_read(cf, p, len);
	if (!len || !lie_now(LIE_MPA, len == 20 ? "an MPA frame" : "octets"))
		return;
	if (len == 20 && way_now < sizeof flip / sizeof *flip)
		b[flip[way_now][0]] ^= flip[way_now][1];
	else if (way_now < 8 && way_now < len) /* the enhanced word, bit by bit, and behind it */
		b[way_now / 2] ^= way_now & 1 ? 0xc0 : 0x3f;
	else
		b[len - 1] ^= 1;
}

enum { CHUNK_WAYS = 14 };

static const struct cf_msg *change_message(const struct cf_msg *m)
{
	static struct cf_msg changed;

	changed = *m;
	switch (way_now) {
	case 0:
		changed.ppid ^= 1;
		break;
	case 1:
		changed.unordered = false;
		break;
	case 2:
		changed.b[3] ^= 1; /* function code */
		break;
	case 3:
		changed.b[3] ^= 3;
		break;
	case 4:
		changed.b[3] = CF_TERMINATE;
		break;
	case 5:
		changed.b[3] = CF_ENH_REJECT;
		break;
	case 6:
		changed.b[1] ^= 1; /* DDP-SSN */
		break;
	case 7:
		changed.stream ^= 1;
		break;
	case 8:
		changed.len = 3;
		break;
	case 9:
		memset(changed.b + changed.len, 7, 4);
		changed.len += 4;
		break;
	case 10:
		changed.len = 600;
		break;
	case 11:
		changed.b[4] ^= 0xc0; /* the enhanced word */
		changed.b[6] ^= 0xc0;
		break;
	case 12:
		changed.b[5] ^= 0x3f;
		changed.b[7] ^= 0x3f;
		break;
	default:
		changed.b[changed.len - 1] ^= 1;
		break;
	}
	return &changed;
}

static const struct cf_msg *chunk_lie(const struct cf_msg *m)
{
	return lie_now(LIE_CHUNK, "a session chunk") ? change_message(m) : m;
}

const struct cf_msg *__wrap_cf_sctp_read(struct cf *cf)
{
	return chunk_lie(__real_cf_sctp_read(cf));
}

const struct cf_msg *__wrap_cf_sctp_read_ctrl(struct cf *cf)
{
	return chunk_lie(__real_cf_sctp_read_ctrl(cf));
}

const struct cf_msg *__wrap_cf_sctp_in_order(struct cf *cf)
{
	static struct cf_msg changed;
	const struct cf_msg *m = __real_cf_sctp_in_order(cf);
	size_t len;

	if (m->ppid != PPID_SEGMENT || !lie_now(LIE_SEGMENT, "a segment"))
		return chunk_lie(m);
	changed = *m;
	len = m->len - 2;
	change_segment(changed.b + 2, &len);
	changed.len = len + 2;
	return &changed;
}

/* ---- the application ---- */

enum { WC_WAYS = 9 };

int __wrap_ddps_cq_wait(struct ddps_cq *cq, struct ddps_wc *wc, int n, int ms)
{
	int got = __real_ddps_cq_wait(cq, wc, n, ms);

	if (got != 1)
		return got;
	latest = *wc;
	if (!lie_now(LIE_WC, "a completion"))
		return got;
	switch (way_now) {
	case 0:
		return 0;
	case 1:
		wc->status = wc->status ? 0 : DDPS_WC_FLUSHED;
		break;
	case 2:
		wc->op = wc->op == DDPS_OP_READ ? DDPS_OP_WRITE : DDPS_OP_READ;
		break;
	case 3:
		wc->len++;
		break;
	case 4:
		wc->imm[0] ^= 1;
		break;
	case 5:
		wc->has_imm = !wc->has_imm;
		break;
	case 6:
		wc->invalidated = !wc->invalidated;
		wc->inv_stag ^= 1;
		break;
	case 7:
		wc->solicited = !wc->solicited;
		break;
	default:
		wc->term.code ^= 1;
		break;
	}
	return got;
}

int __wrap_ddps_cq_poll(struct ddps_cq *cq, struct ddps_wc *wc, int n)
{
	int got = __real_ddps_cq_poll(cq, wc, n);

	if (!lie_now(LIE_WC, "a completion polled for"))
		return got;
	*wc = latest;
	return !got;
}

enum { EVENT_WAYS = 12 };

static void change_event(struct ddps_event *ev)
{
	switch (way_now) {
	case 1:
		ev->type = ev->type == DDPS_EV_FAILED ? DDPS_EV_CLOSED : DDPS_EV_FAILED;
		break;
	case 2:
		ev->private_data_len++;
		break;
	case 3:
		ev->private_data[0] ^= 1;
		break;
	case 4:
		ev->error.code ^= 1;
		break;
	case 5:
		ev->error.has_triple = !ev->error.has_triple;
		break;
	case 6:
		ev->error.triple.code ^= 1;
		break;
	case 7:
		ev->info.ird ^= 1;
		break;
	case 8:
		ev->info.ord ^= 1;
		break;
	case 9:
		ev->info.enhanced = !ev->info.enhanced;
		break;
	case 10:
		ev->info.peer_ird ^= 1;
		break;
	default:
		ev->info.peer_ord ^= 1;
		break;
	}
}

int __wrap_ddps_event_wait(struct ddps_ctx *ctx, struct ddps_event *ev, int ms)
{
	int err = __real_ddps_event_wait(ctx, ev, ms);

	if (err || !lie_now(LIE_EVENT, ddps_event_name(ev->type)))
		return err;
	if (!way_now)
		return DDPS_E_TIMEDOUT;
	change_event(ev);
	return 0;
}

/* ---- calls ---- */

static int opposite(int result, const char *name)
{
	if (!lie_now(LIE_CALL, name))
		return result;
	return result < 0 ? 0 : DDPS_E_SYSTEM;
}

/* What was made stays, and nobody learns of it: the context has it. */
#define OPPOSITE(f, params, args)                                                                  \
	int __wrap_##f params                                                                      \
	{                                                                                          \
		return opposite(__real_##f args, #f);                                              \
	}

OPPOSITE(ddps_accept,
	 (struct ddps_request * r, struct ddps_ep *ep, const struct ddps_conn_param *p), (r, ep, p))
OPPOSITE(ddps_reject, (struct ddps_request * r, const void *pd, size_t len), (r, pd, len))
OPPOSITE(ddps_connect, (struct ddps_ep * ep, const char *uri, const struct ddps_conn_param *p),
	 (ep, uri, p))
OPPOSITE(ddps_disconnect, (struct ddps_ep * ep), (ep))
OPPOSITE(ddps_post_send, (struct ddps_ep * ep, const struct ddps_send_wr *wr), (ep, wr))
OPPOSITE(ddps_post_recv, (struct ddps_ep * ep, uint64_t id, const struct ddps_sge *sge, uint32_t n),
	 (ep, id, sge, n))
OPPOSITE(ddps_mr_dereg, (struct ddps_mr * mr), (mr))

/* Those that make something: they fail, and make nothing. */
#define FAILS(f, params, args)                                                                     \
	int __wrap_##f params                                                                      \
	{                                                                                          \
		return lie_now(LIE_CALL, #f) ? DDPS_E_NOMEM : __real_##f args;                     \
	}

FAILS(ddps_ctx_new, (struct ddps_ctx * *out, const struct ddps_ctx_attr *attr), (out, attr))
FAILS(ddps_pd_new, (struct ddps_ctx * ctx, struct ddps_pd **out), (ctx, out))
FAILS(ddps_cq_new, (struct ddps_ctx * ctx, uint32_t depth, struct ddps_cq **out), (ctx, depth, out))
FAILS(ddps_ep_new, (struct ddps_ctx * ctx, const struct ddps_ep_attr *attr, struct ddps_ep **out),
      (ctx, attr, out))
FAILS(ddps_listen,
      (struct ddps_ctx * ctx, const char *uri, const struct ddps_listen_param *p,
       struct ddps_listener **out),
      (ctx, uri, p, out))

int __wrap_ddps_ep_info(struct ddps_ep *ep, struct ddps_conn_info *info)
{
	int err = __real_ddps_ep_info(ep, info);

	if (!lie_now(LIE_INFO, "ddps_ep_info"))
		return err;
	if (!way_now)
		return DDPS_E_STATE;
	info->mulpdu = 20;
	return err;
}

unsigned lie_ways(enum lie_kind kind)
{
	static const unsigned ways[] = { [LIE_SEGMENT] = SEG_WAYS,
					 [LIE_MPA] = 12,
					 [LIE_CHUNK] = CHUNK_WAYS,
					 [LIE_WC] = WC_WAYS,
					 [LIE_EVENT] = EVENT_WAYS,
					 [LIE_CALL] = 1,
					 [LIE_INFO] = 2,
					 [LIE_MEMORY] = 3,
					 [LIE_PACKET] = 32,
					 [LIE_FAILS] = 1,
					 [LIE_SLOW] = 2,
					 [LIE_NO_MEMORY] = 1,
					 [LIE_SHARED] = LIE_SHARED_WAYS };

	return ways[kind];
}
