/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions over SCTP: several streams of several associations, whose peers send whatever the
 * script says, in any order; the layer above answers, sends, holds back and leaves.  What goes out
 * is checked as a peer would, what goes up as the layer above may expect it (common/llp.h).
 */
#include "sctp_ulp.h"
#include "support/ip4.h"
#include <netinet/in.h>

#define STEPS_MAX 300
#define PORT	  7174
#define RAW_PORT  7200
#define EPOCH	  (UINT64_C(1) << 60) /* ns */
#define SECOND	  UINT64_C(1000000000)

static const uint8_t word[DDPS_SD_WORD_LEN] = { 0, 4, 0, 4 };

/* ---- the world ---- */

static void take_fuzz_log(void *user, enum ddps_log_level level, const char *facility,
			  const char *text)
{
	(void)user;
	if (getenv("FUZZ_TRACE"))
		ddps_log_stderr(NULL, level, facility, text);
}

static void world_init(struct world *w, unsigned flags)
{
	const struct ddps_llp_listen_param lp = { .backlog = 4,
						  .max_half_open = 1 + (flags & 3),
						  .setup_ms = flags & 4 ? 500 : 0 };
	struct sockaddr_in sa = get_loopback(PORT);

	*w = (struct world){ .now = EPOCH };
	fuzz_random_reset();
	fuzz_time_set(w->now);
	w->param = (struct ddps_llp_param){ .connect_ms = flags & 32 ? 400 : 0,
					    .setup_ms = flags & 8 ? 300 : 0,
					    .close_ms = flags & 16 ? 200 : 0 };
	FUZZ_CHECK(!ddps_loop_new(&w->env.loop));
	w->env.log = (struct ddps_log){ take_fuzz_log, NULL };
	strcpy(w->uri.scheme, "sctp");
	strcpy(w->uri.backend, "auto");
	w->uri.encap = DDPS_URI_ENCAP_DEFAULT;
	FUZZ_CHECK(!ddps_sd_use_backend(&w->env, &fake_sctp, true, true));
	FUZZ_CHECK(!ddps_sctp_provider.listen(&w->env, &w->uri, (struct sockaddr *)&sa, sizeof sa,
					      &lp, &ulp_listen_up, w, &w->listener));
	fake_sctp_raw_listen(&w->env, RAW_PORT);
}

/* One message that this side sent, on a stream of which all messages are looked at. */
static void check_sent_message(struct seen *s, const struct fake_sctp_msg *m)
{
	struct ddps_sd_msg msg;

	FUZZ_CHECK(m->unordered);
	FUZZ_CHECK(!ddps_sd_decode(&msg, m->ppid, m->data, m->len) && !msg.bad);
	if (!msg.segment && !msg.ssn)
		*s = (struct seen){ .begun = true };
	FUZZ_CHECK(s->begun && !s->over && msg.ssn == s->next);
	s->next++;
	if (msg.segment) {
		FUZZ_CHECK(s->accepted && msg.len == 118);
		return;
	}
	switch (msg.code) {
	case DDPS_SD_INITIATE:
	case DDPS_SD_ENH_INITIATE:
	case DDPS_SD_ACCEPT:
	case DDPS_SD_ENH_ACCEPT:
		FUZZ_CHECK(!s->accepted);
		s->accepted = true;
		break;
	default:
		s->over = true;
	}
}

static void run_fake_sctp(struct world *w)
{
	struct fake_sctp_msg *m;

	for (int rounds = 0; ddps_loop_run(w->env.loop) > 0; rounds++)
		FUZZ_CHECK(rounds < 100000);
	for (unsigned i = 0; i < w->npeer; i++)
		while ((m = fake_sctp_raw_take(w->peer[i].raw))) {
			if (m->stream < STREAMS)
				check_sent_message(&w->peer[i].rx[m->stream], m);
			free(m);
		}
}

/* In order if @wind_up, else immediately. */
static void world_fini(struct world *w, bool wind_up)
{
	for (unsigned i = 0; i < w->nulp; i++)
		ulp_leave(&w->ulp[i]);
	if (w->listener)
		ddps_sctp_provider.listener_free(w->listener);
	for (int i = 0; i < 100 && wind_up && ddps_sctp_provider.wind_up(&w->env, false); i++) {
		w->now += SECOND;
		fuzz_time_set(w->now);
		run_fake_sctp(w);
	}
	ddps_sctp_provider.fini(&w->env);
	FUZZ_CHECK(!w->env.sctp);
	fake_sctp_cleanup();
	ddps_loop_free(w->env.loop);
	fuzz_time_set(0);
}

static void add_raw_peer(struct world *w, struct ddps_sd_assoc *raw)
{
	for (unsigned i = 0; i < w->npeer; i++)
		if (w->peer[i].raw == raw)
			return;
	if (raw && w->npeer < RAWS)
		w->peer[w->npeer++] = (struct peer){ .raw = raw };
}

/* ---- the script ---- */

static void connect_ulp(struct world *w, unsigned arg)
{
	struct ddps_setup s = { .enhanced = arg & 1, .pd = word, .pd_len = arg & 1 ? 4 : arg & 2 };
	struct sockaddr_in sa = get_loopback(arg & 4 ? RAW_PORT : RAW_PORT + 1);
	struct ulp *u = ulp_new(w);

	if (!u)
		return;
	u->initiator = true;
	u->enhanced = s.enhanced;
	if (ddps_sctp_provider.connect(&w->env, &w->uri, (struct sockaddr *)&sa, sizeof sa, &s,
				       &w->param, &ulp_up, u, &u->llp))
		u->llp = NULL;
	else
		ddps_llp_attach(u->llp, &ulp_data, u);
	run_fake_sctp(w);
	add_raw_peer(w, fake_sctp_raw_accepted(RAW_PORT));
}

static void answer_ulp_request(struct world *w, struct ulp *u, bool reject)
{
	struct ddps_setup s = { .enhanced = u->enhanced, .reject = reject, .pd = word };

	if (u->initiator || u->open || u->refused || u->closed)
		return;
	s.pd_len = u->enhanced ? 4 : 0;
	if (u->llp->ops->answer(u->llp, &s, &w->param))
		return; /* it has ended, and that is still to be reported */
	u->open = !reject;
	u->refused = reject;
}

static void ulp_step(struct world *w, struct ulp *u, unsigned op, unsigned arg)
{
	struct ddps_conn_info info = { 0 };

	if (!u->llp)
		return;
	switch (op) {
	case 0:
	case 1:
	case 2:
		answer_ulp_request(w, u, op == 2);
		break;
	case 3:
	case 4:
		u->to_send += arg;
		if (u->open && !u->closed)
			u->llp->ops->kick(u->llp);
		break;
	case 5:
		if (u->open && !u->closed)
			u->llp->ops->shutdown(u->llp);
		break;
	case 6:
		if (!u->closed)
			u->llp->ops->abort(u->llp);
		break;
	case 7:
		ulp_leave(u);
		break;
	case 8:
	case 9: /* resumed, it may hold back again */
		u->holding = op == 8 ? !u->holding : u->holding;
		if ((u->holding && op == 8) || !u->held)
			break;
		u->held = false;
		u->llp->ops->resume(u->llp);
		break;
	case 10:
		u->free_inside = true;
		break;
	case 11:
		u->refuse = true;
		break;
	case 12:
		FUZZ_CHECK(!u->llp->ops->keep_copy(u->llp));
		break;
	default:
		FUZZ_CHECK(u->llp->ops->held(u->llp) <= DDPS_SD_HELD_ASSOC);
		u->llp->ops->info(u->llp, &info);
		break;
	}
}

static void send_peer_message(struct peer *p, struct ddps_rbuf *in, bool segment)
{
	unsigned b = ddps_rbuf_u8(in), odd = ddps_rbuf_u8(in), stream = b & 3;
	uint16_t ssn = p->tx[stream], code = (uint16_t)(b >> 2 & 7);
	uint8_t buf[1024] = { 0 };
	size_t len = 4;

	if (!segment && (code == DDPS_SD_INITIATE || code == DDPS_SD_ENH_INITIATE || odd & 1))
		ssn = 0;
	if (odd & 2) /* out of order, or again */
		ssn = (uint16_t)(ssn + (int8_t)odd / 4);
	else
		p->tx[stream] = (uint16_t)(ssn + 1);
	buf[0] = (uint8_t)(ssn >> 8);
	buf[1] = (uint8_t)ssn;
	if (segment) {
		buf[2] = buf[0];
		buf[3] = buf[1];
		len += 14u + (b >> 2);
	} else {
		buf[3] = (uint8_t)code;
		len += code >= DDPS_SD_ENH_INITIATE ? 4 : 0;
		if (b & 0x20)
			len += odd >> 2;
		if (b & 0x40)
			len = 516 + (odd >> 4 & 1);
	}
	fake_sctp_raw_send(p->raw, (uint16_t)(b & 0x80 && odd > 250 ? odd << 5 : stream),
			   segment ? DDPS_SD_PPID_SEGMENT : DDPS_SD_PPID_CONTROL, buf, len);
}

static void send_raw_message(struct peer *p, struct ddps_rbuf *in)
{
	static const uint32_t ppids[] = { 16, 17, 0x10000000, 0x11000000, 0, 18 };
	unsigned b = ddps_rbuf_u8(in);
	uint8_t buf[64];
	size_t n;
	const uint8_t *data = fuzz_some(in, b >> 3, &n);

	if (n)
		memcpy(buf, data, n);
	if (n >= 4 && b % 6 == 0) /* segments say their number */
		memcpy(buf + 2, buf, 2);
	else if (b % 6 == 0)
		return;
	if (b & 4)
		fake_sctp_raw_send(p->raw, b & 3, ppids[b % 6], buf, n);
	else if (p->raw->peer)
		fake_sctp_ordered(p->raw, b & 3, ppids[b % 6], buf, n);
}

/* The association and the clock. */
static void fate(struct world *w, struct peer *p, unsigned arg)
{
	struct ddps_sd_assoc *our = p->raw->peer;

	switch (arg & 7) {
	case 0:
	case 1:
	case 2:
		w->now += (UINT64_C(1) << (arg >> 3)) * 10000000;
		fuzz_time_set(w->now);
		return;
	case 3:
		if (w->listener && arg & 0x40)
			fake_sctp_fail(PORT, DDPS_E_SYSTEM);
		if (w->listener && arg & 0x80) {
			ddps_sctp_provider.listener_free(w->listener);
			w->listener = NULL;
		}
		return;
	default:
		break;
	}
	if (!our)
		return;
	switch (arg & 7) {
	case 4:
		our->reorder = arg >> 3;
		break;
	case 5:
		our->hold_dry = arg & 8;
		break;
	case 6:
		our->room = arg >> 4;
		break;
	default:
		if (arg & 0x80)
			fake_sctp_lose(our, DDPS_E_RESET);
		else if (arg & 0x40)
			fake_sctp_restart(our);
		else if (arg & 0x20)
			fake_sctp.shutdown(p->raw);
		break;
	}
	fake_sctp_poke(our);
}

static void take_sctp_step(struct world *w, struct ddps_rbuf *in)
{
	unsigned b = ddps_rbuf_u8(in), arg;
	struct peer *p = &w->peer[w->npeer ? (b >> 4) % w->npeer : 0];

	if (!w->npeer || b == 0xff) {
		add_raw_peer(w, fake_sctp_raw_connect(&w->env, PORT));
		run_fake_sctp(w);
		return;
	}
	switch (b & 15) {
	case 0:
	case 1:
	case 2:
	case 3:
		send_peer_message(p, in, false);
		break;
	case 4:
	case 5:
	case 6:
		send_peer_message(p, in, true);
		break;
	case 7:
		send_raw_message(p, in);
		break;
	case 8:
		fate(w, p, ddps_rbuf_u8(in));
		break;
	case 9:
		connect_ulp(w, b >> 4);
		break;
	case 10:
	case 11:
	case 12:
	case 13:
		arg = ddps_rbuf_u8(in);
		if (w->nulp)
			ulp_step(w, &w->ulp[(w->nulp - 1 - (b >> 4) % w->nulp)], arg & 15,
				 arg >> 4);
		break;
	default:
		break;
	}
	if (!(b & 1))
		run_fake_sctp(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	static struct world w;

	unsigned flags = ddps_rbuf_u8(&in);

	world_init(&w, flags);
	for (int i = 0; i < STEPS_MAX && fuzz_more(&in); i++)
		take_sctp_step(&w, &in);
	run_fake_sctp(&w);
	world_fini(&w, flags & 64);
	return 0;
}
