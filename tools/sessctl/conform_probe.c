/* SPDX-License-Identifier: BSD-2-Clause */
/* Set-ups with a responder: what it offers, and how combinations of parameters come out. */
#include "sessctl/conform_probe.h"
#include "report/conform_out.h"
#include "cli/out/out_json.h"
#include "cli/sig.h"
#include "xfer/advice.h"
#include "xfer/opts.h"
#include <ddpsess/ddpsess.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CONNECT_MS 5000

/* One set-up and its end. */
struct tried {
	enum ddps_event_type outcome; /* ESTABLISHED, REJECTED or FAILED */
	struct ddps_conn_info info;
	struct ddps_error error; /* of FAILED, or of a session that did not end in order */
};

struct prober {
	const struct opts *o;
	struct out out;
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
};

static enum status begin_probe(struct prober *p, const struct opts *o)
{
	struct ddps_error why = { .code = 0 };
	struct ddps_ctx_attr attr;
	int err;

	*p = (struct prober){ .o = o };
	out_init(&p->out, "conform", o->json);
	ddps_ctx_attr_init(&attr);
	if (secure_open(&attr.secure, o, &why)) {
		p->out.error = why.code;
		out_error(&p->out, 0, advice_for(&why, o, false), "%s: %s", o->arg[0], why.text);
		return ST_FAILED;
	}
	err = ddps_ctx_new(&p->ctx, &attr);
	ddps_secure_close(attr.secure);
	if (!err && !ddps_pd_new(p->ctx, &p->pd) && !ddps_cq_new(p->ctx, 16, &p->cq))
		return ST_DONE;
	out_error(&p->out, 0, NULL, "no context: %s", strerror(errno));
	return ST_FAILED;
}

static enum status end_probe(struct prober *p, enum status s)
{
	ddps_ctx_free(p->ctx);
	return out_finish(&p->out) && !s ? ST_FAILED : s;
}

static bool is_final(enum ddps_event_type t)
{
	return t == DDPS_EV_REJECTED || t == DDPS_EV_FAILED || t == DDPS_EV_CLOSED;
}

/* Serve @ep until its end; it is asked to end as soon as it is up. */
static void follow_probe(struct prober *p, struct ddps_ep *ep, struct tried *t, int ms)
{
	struct ddps_event ev = { .type = DDPS_EV_FAILED };

	do {
		int err = ddps_event_wait(p->ctx, &ev, ms);

		if (err == DDPS_E_AGAIN && !sig_pending())
			continue;
		if (err < 0) {
			t->error.code = err;
			snprintf(t->error.text, sizeof t->error.text, "no end of it in %d ms", ms);
			return;
		}
		if (ev.type == DDPS_EV_ESTABLISHED) {
			t->outcome = ev.type;
			t->info = ev.info;
			ddps_disconnect(ep);
		} else if (is_final(ev.type)) {
			if (t->outcome != DDPS_EV_ESTABLISHED)
				t->outcome = ev.type;
			t->error = ev.error;
		}
	} while (!is_final(ev.type));
}

static void try_params(struct prober *p, const struct ddps_conn_param *param, struct tried *t)
{
	struct ddps_ep_attr attr;
	struct ddps_ep *ep = NULL;
	int err;

	*t = (struct tried){ .outcome = DDPS_EV_FAILED };
	ddps_ep_attr_init(&attr);
	attr.pd = p->pd;
	attr.send_cq = attr.recv_cq = p->cq;
	err = ddps_ep_new(p->ctx, &attr, &ep);
	if (!err)
		err = ddps_connect(ep, p->o->arg[0], param);
	t->error.code = err;
	if (err)
		snprintf(t->error.text, sizeof t->error.text, "%s", ddps_strerror(err));
	else
		follow_probe(p, ep, t, 3 * (int)param->connect_ms);
	ddps_ep_free(ep);
}

static void set_probe_defaults(const struct opts *o, struct ddps_conn_param *param)
{
	ddps_conn_param_init(param);
	param->connect_ms = o->timeout_ms ? o->timeout_ms : CONNECT_MS;
	param->setup_ms = param->first_fpdu_ms = param->close_ms = param->connect_ms;
}

/* ---- what it offers ---- */

enum offer { NO, YES, UNKNOWN };

enum feature {
	F_PLAIN,
	F_ENHANCED,
	F_ULP,
	F_P2P_SEND,
	F_P2P_WRITE,
	F_P2P_READ,
	F_NO_CRC,
	F_MARKERS,
	F_PD,
	FEATURES
};

static const struct {
	const char *name, *text;
	bool mpa; /* has no meaning over SCTP */
} features[FEATURES] = {
	[F_PLAIN] = { "plain", "set-up without IRD and ORD", .mpa = false },
	[F_ENHANCED] = { "enhanced", "enhanced set-up (RFC 6581)", .mpa = false },
	[F_ULP] = { "ulp", "IRD and ORD left to the applications", .mpa = false },
	[F_P2P_SEND] = { "p2p-send", "peer-to-peer, ready-to-receive by Send", .mpa = false },
	[F_P2P_WRITE] = { "p2p-write", "peer-to-peer, ready-to-receive by RDMA Write",
			  .mpa = false },
	[F_P2P_READ] = { "p2p-read", "peer-to-peer, ready-to-receive by RDMA Read", .mpa = false },
	[F_NO_CRC] = { "no-crc", "goes without CRC if asked", .mpa = true },
	[F_MARKERS] = { "markers", "sends markers if asked", .mpa = true },
	[F_PD] = { "private-data", "private data of 508 octets", .mpa = false },
};

static const uint8_t zeros[DDPS_PD_MAX_ENHANCED];

static void ask_for(enum feature f, struct ddps_conn_param *p)
{
	static const unsigned rtr[] = { DDPS_RTR_SEND, DDPS_RTR_WRITE, DDPS_RTR_READ };

	if (f == F_PLAIN)
		p->plain = true;
	if (f == F_ULP) {
		p->ird = p->ord = DDPS_RD_ULP;
		p->ulp_ird = p->ulp_ord = 1;
	}
	if (f >= F_P2P_SEND && f <= F_P2P_READ) {
		p->p2p = true;
		p->rtr = rtr[f - F_P2P_SEND];
	}
	if (f == F_NO_CRC)
		p->crc = false;
	if (f == F_MARKERS)
		p->markers = true;
	if (f == F_PD) {
		p->private_data = zeros;
		p->private_data_len = sizeof zeros;
	}
}

static enum offer offers(enum feature f, const struct tried *t)
{
	if (t->outcome == DDPS_EV_REJECTED)
		return UNKNOWN; /* by its application, which may say no to anything */
	if (t->outcome != DDPS_EV_ESTABLISHED)
		return NO;
	if (f == F_ULP)
		return t->info.peer_ird == DDPS_RD_ULP || t->info.peer_ord == DDPS_RD_ULP ? YES
											  : NO;
	if (f == F_NO_CRC)
		return t->info.mpa.crc ? NO : YES;
	if (f == F_MARKERS)
		return t->info.mpa.markers_rx ? YES : NO;
	return f == F_PLAIN || t->info.enhanced ? YES : NO;
}

static void tell_feature(struct prober *p, enum feature f, enum offer got, const struct tried *t)
{
	static const char *const words[] = { "no", "yes", "unknown" };
	const char *why = t->outcome == DDPS_EV_REJECTED ? "its application rejects"
			  : t->outcome == DDPS_EV_FAILED ? t->error.text
							 : "";

	if (!p->o->json) {
		fprintf(p->out.f, "%-44s %s%s%s\n", features[f].text, words[got], *why ? ": " : "",
			why);
		out_flush(&p->out);
		return;
	}
	json_out_line(&p->out, json_pack("{s:s, s:s, s:o, s:s}", "event", "feature", "name",
					 features[f].name, "offers",
					 got == UNKNOWN ? json_null() : json_boolean(got == YES),
					 "why", why));
}

/* The reason why no address of it answered, which is no property of a feature. */
static bool out_of_reach(const struct tried *t)
{
	return t->outcome == DDPS_EV_FAILED &&
	       (t->error.code == DDPS_E_REFUSED || t->error.code == DDPS_E_ADDRESS);
}

enum status conform_probe(const struct opts *o)
{
	bool sctp = !strncasecmp(o->arg[0], "sctp:", 5);
	struct ddps_conn_param param;
	unsigned offered = 0;
	struct prober p;
	struct tried t;
	enum status s = begin_probe(&p, o);

	for (enum feature f = 0; !s && f < FEATURES && !sig_pending(); f++) {
		enum offer got;

		if (sctp && features[f].mpa)
			continue;
		set_probe_defaults(o, &param);
		ask_for(f, &param);
		try_params(&p, &param, &t);
		if (out_of_reach(&t)) {
			out_error(&p.out, 0, advice_for(&t.error, o, false), "%s: %s", o->arg[0],
				  t.error.text);
			return end_probe(&p, ST_FAILED);
		}
		got = offers(f, &t);
		tell_feature(&p, f, got, &t);
		offered += got != NO;
	}
	if (!s && !sig_pending() && !offered)
		s = (enum status)CONFORM_NOTHING; /* it listens, and speaks something else */
	return end_probe(&p, sig_pending() ? ST_FAILED : s);
}

/* ---- combinations ---- */

static void combine(const uint8_t *row, struct ddps_conn_param *p)
{
	static const uint16_t rd[] = { 0, 1, 16, DDPS_RD_ULP };

	if (row[0] == 0)
		p->plain = true;
	if (row[0] >= 2) {
		p->p2p = true;
		p->rtr = 1u << (row[0] - 2);
	}
	p->ird = rd[row[1]];
	p->ord = rd[row[2]];
	p->ulp_ird = p->ulp_ord = 1;
	p->crc = row[3];
	p->markers = row[4];
	if (row[5]) {
		p->private_data = zeros;
		p->private_data_len = sizeof zeros;
	}
}

/* What is not as it was asked for, or NULL. */
static const char *find_probe_fault(const struct ddps_conn_param *p, const struct tried *t)
{
	const struct ddps_conn_info *i = &t->info;

	if (t->outcome == DDPS_EV_REJECTED)
		return "its application rejects";
	if (t->outcome != DDPS_EV_ESTABLISHED || t->error.code)
		return t->error.text;
	if (i->enhanced == p->plain)
		return "the answer is of the other kind of set-up";
	if (p->p2p && i->rtr != p->rtr)
		return "it did not take this ready-to-receive message";
	/* RFC 6581 9.1: a responder's ORD is not above the initiator's IRD. */
	if (i->enhanced && p->ird != DDPS_RD_ULP && i->peer_ord != DDPS_RD_ULP &&
	    i->peer_ord > p->ird)
		return "its ORD is above the IRD that was offered";
	if (i->transport != DDPS_TRANSPORT_TCP)
		return NULL;
	if (p->crc && !i->mpa.crc)
		return "no CRC, though it was asked for";
	if (p->markers != i->mpa.markers_rx)
		return "markers are not sent as they were asked for";
	return NULL;
}

static void name_row(const struct ddps_conn_param *p, char *dst, size_t size)
{
	static const char *const rtr[] = { "", "send", "write", "", "read" };
	char ird[8], ord[8];

	snprintf(ird, sizeof ird, p->ird == DDPS_RD_ULP ? "ulp" : "%u", p->ird);
	snprintf(ord, sizeof ord, p->ord == DDPS_RD_ULP ? "ulp" : "%u", p->ord);
	snprintf(dst, size, "%s%s ird %s ord %s crc %s markers %s private data %zu",
		 p->plain ? "plain"
		 : p->p2p ? "p2p "
			  : "enhanced",
		 p->p2p ? rtr[p->rtr] : "", ird, ord, p->crc ? "on" : "off",
		 p->markers ? "on" : "off", p->private_data_len);
}

static void tell_row(struct prober *p, const char *name, const char *why)
{
	if (p->o->json) {
		json_out_line(&p->out, json_pack("{s:s, s:s, s:s, s:s}", "event", "combination",
						 "name", name, "result", why ? "fail" : "pass",
						 "why", why ? why : ""));
		return;
	}
	fprintf(p->out.f, "%s  %s%s%s\n", why ? "FAIL" : "pass", name, why ? ": " : "",
		why ? why : "");
	out_flush(&p->out);
}

enum status conform_pairs(const struct opts *o)
{
	uint8_t row[PAIRS_MAX][PAIRS_PARAMS];
	unsigned n = pairs_make(row), failed = 0;
	struct ddps_conn_param param;
	struct prober p;
	struct tried t;
	char name[160];
	enum status s = begin_probe(&p, o);

	for (unsigned i = 0; !s && i < n && !sig_pending(); i++) {
		const char *why;

		set_probe_defaults(o, &param);
		combine(row[i], &param);
		try_params(&p, &param, &t);
		if (out_of_reach(&t)) {
			out_error(&p.out, 0, advice_for(&t.error, o, false), "%s: %s", o->arg[0],
				  t.error.text);
			return end_probe(&p, ST_FAILED);
		}
		name_row(&param, name, sizeof name);
		why = find_probe_fault(&param, &t);
		tell_row(&p, name, why);
		failed += why != NULL;
	}
	return end_probe(&p, failed || sig_pending() ? ST_FAILED : s);
}
