/* SPDX-License-Identifier: BSD-2-Clause */
/* Fixture of the SCTP adaptation's tests. */
#include "support/sd_world.h"
#include "common/bytes.h"
#include "common/loop/loop_in.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_ROUNDS   2000000
#define WAIT_ROUNDS  400
#define POLL_MS	     5
#define MAX_REQUESTS 4096

/* Other programs that this is linked into do not count. */
#pragma weak mem_live

/* ---- the layer above ---- */

static void ulp_answer(void *user, const struct ddps_setup *s)
{
	struct sd_ulp *u = user;

	u->answers++;
	u->rejected = s->reject;
	u->enhanced = s->enhanced;
	u->pd_len = s->pd_len;
	if (s->pd_len)
		memcpy(u->pd, s->pd, s->pd_len);
	if (u->free_on_answer) {
		sd_free(u);
		return;
	}
	if (!s->reject && !u->no_open) {
		u->llp->ops->open(u->llp);
		u->llp->ops->kick(u->llp);
	}
}

static int ulp_tx_next(void *user, struct ddps_seg *seg, size_t mulpdu)
{
	static uint8_t payload[65536];
	struct sd_ulp *u = user;
	struct ddps_wbuf w = ddps_wbuf_init(seg->hdr, sizeof(seg->hdr));

	u->asked = mulpdu;
	if (u->abort_on_pull) {
		u->llp->ops->abort(u->llp);
		return 0;
	}
	if (u->pulled == u->to_send)
		return 0;
	if (u->kick_on_pull)
		u->llp->ops->kick(u->llp);
	memset(seg, 0, sizeof(*seg));
	ddps_wbuf_u32(&w, u->pulled++);
	seg->hdr_len = SD_SEG_HDR;
	seg->pay_len = u->pay_len;
	cr_assert(u->pay_len > mulpdu || u->pay_len + SD_SEG_HDR <= mulpdu);
	if (u->pay_len)
		seg->pay[seg->npay++] = (struct iovec){ payload, u->pay_len };
	return 1;
}

static void ulp_tx_done(void *user, unsigned n)
{
	struct sd_ulp *u = user;

	u->done += n;
	cr_assert_leq(u->done, u->pulled);
	cr_assert(!u->telling, "told inside of being told");
	u->telling = true;
	if (u->kick_on_done)
		u->llp->ops->kick(u->llp);
	if (u->abort_on_done)
		u->abort_on_done->llp->ops->abort(u->abort_on_done->llp);
	u->telling = false;
}

static int ulp_rx_segment(void *user, const uint8_t *seg, size_t len)
{
	struct sd_ulp *u = user;
	struct ddps_rbuf r = ddps_rbuf_init(seg, len);

	if (u->rx_result == DDPS_LLP_HOLD) {
		u->holds++;
		return DDPS_LLP_HOLD;
	}
	u->segments++;
	u->last_len = len;
	if (ddps_rbuf_u32(&r) != u->expect++)
		u->out_of_order = true;
	if (u->free_on_segment)
		sd_free(u);
	else if (u->abort_on_segment)
		u->llp->ops->abort(u->llp);
	return u->rx_result;
}

static void ulp_peer_closed(void *user)
{
	struct sd_ulp *u = user;

	u->peer_closes++;
	if (!u->no_shut)
		u->llp->ops->shutdown(u->llp);
}

static void ulp_peer_closing(void *user)
{
	struct sd_ulp *u = user;

	u->peer_closings++;
}

static void ulp_closed(void *user, const struct ddps_error *e)
{
	struct sd_ulp *u = user;

	u->closes++;
	u->error = *e;
	cr_expect(!e->sys_errno || !strncmp(e->text, "fake: ", 6), "no system is asked: %s",
		  e->text);
}

static const struct ddps_llp_data ulp_data = {
	.tx_next = ulp_tx_next,
	.tx_done = ulp_tx_done,
	.rx_segment = ulp_rx_segment,
};

static const struct ddps_llp_up ulp_up = {
	.answer = ulp_answer,
	.peer_closed = ulp_peer_closed,
	.peer_closing = ulp_peer_closing,
	.closed = ulp_closed,
};

void sd_free(struct sd_ulp *u)
{
	struct ddps_llp *llp = u->llp;

	u->llp = NULL;
	if (llp)
		llp->ops->free(llp);
}

/* ---- requests ---- */

int sd_answer(struct sd_ulp *u, bool reject, const void *pd, size_t pd_len)
{
	struct ddps_setup s = {
		.enhanced = u->enhanced, .reject = reject, .pd = pd, .pd_len = pd_len
	};

	return u->llp->ops->answer(u->llp, &s, &u->w->param);
}

static void listen_request(void *user, struct ddps_llp *llp, const struct ddps_setup *s)
{
	static const uint8_t word[4];
	struct sd_world *w = user;
	struct sd_ulp *u = &w->req[w->nreq++];

	cr_assert_leq(w->nreq, w->max_req);
	*u = (struct sd_ulp){ .w = w, .llp = llp, .enhanced = s->enhanced, .pd_len = s->pd_len };
	if (s->pd_len)
		memcpy(u->pd, s->pd, s->pd_len);
	llp->up = &ulp_up;
	llp->user = u;
	ddps_llp_attach(llp, &ulp_data, u);
	if (!w->accept)
		return;
	u->to_send = w->accept_send;
	cr_assert_eq(sd_answer(u, false, word, s->enhanced ? sizeof(word) : 0), 0);
	llp->ops->kick(llp);
}

static void listen_failed(void *user, const struct ddps_error *e)
{
	struct sd_world *w = user;

	w->listener_error = e->code;
}

static const struct ddps_llp_listen_up listen_up = {
	.request = listen_request,
	.failed = listen_failed,
};

/* ---- the world ---- */

static void record_sd_world(void *user, enum ddps_log_level level, const char *facility,
			    const char *message)
{
	struct sd_world *w = user;
	size_t n = strlen(w->log);

	if (getenv("SD_TRACE"))
		ddps_log_stderr(NULL, level, facility, message);
	if (level <= DDPS_LOG_WARN && n + strlen(message) + 2 < sizeof(w->log))
		sprintf(w->log + n, "%s\n", message);
}

void sd_world_init(struct sd_world *w)
{
	*w = (struct sd_world){ .accept = true, .max_req = MAX_REQUESTS };
	w->live = mem_live();
	cr_assert_eq(ddps_loop_new(&w->env.loop), 0);
	w->env.log = (struct ddps_log){ record_sd_world, w };
	w->req = calloc(w->max_req, sizeof(*w->req));
	w->lparam = (struct ddps_llp_listen_param){ .backlog = 16, .max_half_open = 128 };
	strcpy(w->uri.scheme, "sctp");
	strcpy(w->uri.backend, "auto");
	w->uri.encap = DDPS_URI_ENCAP_DEFAULT;
	cr_assert_eq(ddps_sd_use_backend(&w->env, &fake_sctp, true, true), 0);
}

void sd_world_fini(struct sd_world *w)
{
	for (unsigned i = 0; i < w->nreq; i++)
		sd_free(&w->req[i]);
	if (w->listener)
		ddps_sctp_provider.listener_free(w->listener);
	ddps_sctp_provider.fini(&w->env);
	cr_expect_null(w->env.sctp);
	fake_sctp_cleanup();
	cr_expect_null(w->env.loop->timers, "what is gone waits for nothing");
	cr_expect_null(w->env.loop->tasks, "what is gone does nothing");
	ddps_loop_free(w->env.loop);
	free(w->req);
	cr_expect_eq(mem_live(), w->live, "%ld pieces of memory are left", mem_live() - w->live);
}

void sd_run(struct sd_world *w)
{
	int rounds = 0;

	while (ddps_loop_run(w->env.loop) > 0)
		cr_assert_lt(++rounds, MAX_ROUNDS, "the loop never becomes idle");
}

void sd_run_until(struct sd_world *w, const unsigned *flag)
{
	struct pollfd pfd = { .fd = ddps_loop_fd(w->env.loop), .events = POLLIN };

	for (int i = 0; i < WAIT_ROUNDS && !*flag; i++) {
		poll(&pfd, 1, POLL_MS);
		sd_run(w);
	}
	cr_assert(*flag, "did not happen in time");
}

static struct sockaddr_in get_sd_world_loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

void sd_listen(struct sd_world *w)
{
	struct sockaddr_in sa = get_sd_world_loopback(SD_PORT);

	cr_assert_eq(ddps_sctp_provider.listen(&w->env, &w->uri, (struct sockaddr *)&sa, sizeof(sa),
					       &w->lparam, &listen_up, w, &w->listener),
		     0);
}

int sd_connect(struct sd_world *w, struct sd_ulp *u, uint16_t port, bool enhanced, const void *pd,
	       size_t pd_len)
{
	struct ddps_setup s = { .enhanced = enhanced, .pd = pd, .pd_len = pd_len };
	struct sockaddr_in sa = get_sd_world_loopback(port);

	int err;

	u->w = w;
	err = ddps_sctp_provider.connect(&w->env, &w->uri, (struct sockaddr *)&sa, sizeof(sa), &s,
					 &w->param, &ulp_up, u, &u->llp);
	if (!err)
		ddps_llp_attach(u->llp, &ulp_data, u);
	return err;
}

struct ddps_sd_pair *sd_pair_of(struct sd_ulp *u)
{
	return ((struct ddps_sd_session *)u->llp)->pair;
}

struct ddps_sd_carrier *sd_carrier_of(struct sd_world *w, unsigned n)
{
	struct ddps_sd_provider *prov = w->env.sctp;
	struct ddps_sd_carrier *c = TAILQ_FIRST(&prov->carriers);

	while (c && n--)
		c = TAILQ_NEXT(c, link);
	return c;
}

enum ddps_sd_state sd_state(struct sd_world *w, unsigned carrier, uint16_t stream)
{
	struct ddps_sd_pair *p = ddps_sd_pair_find(sd_carrier_of(w, carrier), stream);

	return p ? p->sm.state : DDPS_SD_IDLE;
}

/* ---- raw ends ---- */

static size_t from_hex(uint8_t *out, const char *hex)
{
	size_t n = 0;
	int skip;

	for (unsigned v; sscanf(hex, " %2x%n", &v, &skip) == 1; hex += skip)
		out[n++] = (uint8_t)v;
	return n;
}

void sd_send(struct sd_world *w, struct ddps_sd_assoc *raw, uint16_t stream, const char *hex)
{
	uint8_t buf[64];
	size_t n = from_hex(buf, hex);

	fake_sctp_raw_send(raw, stream, DDPS_SD_PPID_CONTROL, buf, n);
	sd_run(w);
}

void sd_push_segment(struct ddps_sd_assoc *raw, uint16_t stream, uint16_t ssn, uint32_t number,
		     size_t len)
{
	uint8_t *buf = calloc(1, len + 2);
	struct ddps_wbuf out = ddps_wbuf_init(buf, len + 2);

	ddps_wbuf_u16(&out, ssn);
	ddps_wbuf_u32(&out, number);
	fake_sctp_raw_send(raw, stream, DDPS_SD_PPID_SEGMENT, buf, len + 2);
	free(buf);
}

void sd_send_segment(struct sd_world *w, struct ddps_sd_assoc *raw, uint16_t stream, uint16_t ssn,
		     uint32_t number)
{
	sd_push_segment(raw, stream, ssn, number, SD_SEG_HDR);
	sd_run(w);
}

void sd_weigh_held(struct ddps_sd_pair *p, size_t octets)
{
	unsigned i = 0;

	while (!p->rx.slot[i])
		i++;
	p->rx.slot[i]->len += octets - p->rx.octets;
	p->carrier->held += octets - p->rx.octets;
	p->rx.octets = octets;
}

void sd_expect(struct ddps_sd_assoc *raw, uint16_t stream, const char *hex)
{
	struct fake_sctp_msg *m = fake_sctp_raw_take(raw);
	uint8_t buf[600];
	size_t n = from_hex(buf, hex);

	cr_assert(m, "nothing came instead of %s", hex);
	cr_assert_eq(m->ppid, DDPS_SD_PPID_CONTROL);
	cr_assert(m->unordered);
	cr_assert_eq(m->stream, stream, "on stream %u", m->stream);
	cr_assert_eq(m->len, n, "%zu octets instead of %s", m->len, hex);
	cr_assert_arr_eq(m->data, buf, n, "code %u instead of %s", m->data[3], hex);
	free(m);
}

void sd_expect_silence(struct ddps_sd_assoc *raw)
{
	struct fake_sctp_msg *m = fake_sctp_raw_take(raw);

	cr_assert_null(m, "a message of PPID %u", m->ppid);
}

struct ddps_sd_assoc *sd_raw_to_listener(struct sd_world *w)
{
	struct ddps_sd_assoc *raw;

	if (!w->listener)
		sd_listen(w);
	raw = fake_sctp_raw_connect(&w->env, SD_PORT);
	sd_run(w);
	return raw;
}

struct ddps_sd_assoc *sd_raw_open(struct sd_world *w, uint16_t stream)
{
	struct ddps_sd_assoc *raw = sd_raw_to_listener(w);

	sd_send(w, raw, stream, "0000 0001");
	sd_expect(raw, stream, "0000 0002");
	return raw;
}

struct ddps_sd_assoc *sd_raw_initiated(struct sd_world *w, struct sd_ulp *u, bool enhanced)
{
	static const uint8_t word[4];
	struct ddps_sd_assoc *raw;

	fake_sctp_raw_listen(&w->env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(w, u, SD_RAW_PORT, enhanced, word, enhanced ? 4 : 0), 0);
	sd_run(w);
	raw = fake_sctp_raw_accepted(SD_RAW_PORT);
	sd_expect(raw, 0, enhanced ? "0000 0005 00000000" : "0000 0001");
	return raw;
}
