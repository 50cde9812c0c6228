/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a session while it lasts. */
#include "cli/out/out_json.h"
#include "cli/text.h"

static uint64_t sum_stat_octets(const struct ddps_msg_stats *m)
{
	uint64_t sum = 0;

	for (int i = 0; i < DDPS_STAT_OPS; i++)
		sum += m[i].octets;
	return sum;
}

int out_status_read(struct out_status *st, struct ddps_ep *ep)
{
	struct ddps_ep_stats s = { .struct_size = sizeof s };

	if (ddps_ep_stats(ep, &s) < 0)
		return -1;
	st->sent = sum_stat_octets(s.sent);
	st->received = sum_stat_octets(s.received);
	st->held = s.held_octets;
	st->assoc = (struct ddps_assoc_stats){ .struct_size = sizeof st->assoc };
	st->has_assoc = ddps_ep_assoc_stats(ep, &st->assoc) == 0;
	if (!st->has_assoc)
		return 0;
	if (st->assoc.paths > OUT_PATHS_MAX)
		st->assoc.paths = OUT_PATHS_MAX;
	for (uint32_t i = 0; i < st->assoc.paths; i++) {
		st->path[i] = (struct ddps_path_stats){ .struct_size = sizeof st->path[i] };
		if (ddps_ep_path_stats(ep, i, &st->path[i]) < 0)
			return -1;
	}
	return 0;
}

/* ---- text ---- */

static void print_path_stats(struct out *o, const struct ddps_path_stats *p)
{
	char cwnd[24], flight[24];

	text_size(cwnd, sizeof cwnd, p->cwnd);
	text_size(flight, sizeof flight, p->flight);
	fprintf(o->f,
		"; %s %s%s%s, rtt %.3f ms, rto %.0f ms, cwnd %s, in flight %s, mtu %u, resent %llu",
		p->peer, ddps_path_state_name(p->state), p->primary ? " primary" : "",
		p->in_use ? " in use" : "", (double)p->srtt_ns / 1e6, (double)p->rto_ns / 1e6, cwnd,
		flight, p->mtu, (unsigned long long)p->retransmitted);
}

static void put_text(struct out *o, unsigned session, const struct out_status *st)
{
	char sent[24], received[24];

	out_progress_end(o);
	text_size(sent, sizeof sent, st->sent);
	text_size(received, sizeof received, st->received);
	if (session)
		fprintf(o->f, "session %u: ", session);
	fprintf(o->f, "status %.1f s: sent %s, received %s", st->seconds, sent, received);
	if (st->has_assoc)
		fprintf(o->f, "; %s, SACK gaps %llu", st->assoc.state,
			(unsigned long long)st->assoc.gaps);
	for (uint32_t i = 0; st->has_assoc && i < st->assoc.paths; i++)
		print_path_stats(o, &st->path[i]);
	fputc('\n', o->f);
	out_flush(o);
}

/* ---- JSON ---- */

static json_t *make_json_number(uint64_t v)
{
	return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

static json_t *path_json(const struct ddps_path_stats *p)
{
	json_t *j = json_object();

	json_object_set_new(j, "peer", json_string(p->peer));
	json_object_set_new(j, "local", json_string(p->local));
	json_object_set_new(j, "encap", make_json_number(p->encap));
	json_object_set_new(j, "state", json_string(ddps_path_state_name(p->state)));
	json_object_set_new(j, "primary", json_boolean(p->primary));
	json_object_set_new(j, "in_use", json_boolean(p->in_use));
	json_object_set_new(j, "srtt_us", json_real((double)p->srtt_ns / 1e3));
	json_object_set_new(j, "rttvar_us", json_real((double)p->rttvar_ns / 1e3));
	json_object_set_new(j, "min_rtt_us", json_real((double)p->min_rtt_ns / 1e3));
	json_object_set_new(j, "rto_us", json_real((double)p->rto_ns / 1e3));
	json_object_set_new(j, "cwnd", make_json_number(p->cwnd));
	json_object_set_new(j, "ssthresh",
			    p->ssthresh == UINT64_MAX ? json_null()
						      : make_json_number(p->ssthresh));
	json_object_set_new(j, "in_flight", make_json_number(p->flight));
	json_object_set_new(j, "mtu", make_json_number(p->mtu));
	json_object_set_new(j, "errors", make_json_number(p->errors));
	json_object_set_new(j, "retransmitted", make_json_number(p->retransmitted));
	json_object_set_new(j, "timeouts", make_json_number(p->timeouts));
	return j;
}

static json_t *assoc_json(const struct out_status *st)
{
	const struct ddps_assoc_stats *a = &st->assoc;
	const struct {
		const char *name;
		uint64_t v;
	} rows[] = {
		{ "sessions", a->sessions },
		{ "packets_sent", a->packets_sent },
		{ "packets_received", a->packets_received },
		{ "chunks_sent", a->chunks_sent },
		{ "chunks_received", a->chunks_received },
		{ "retransmitted", a->retransmitted },
		{ "timeouts", a->timeouts },
		{ "duplicates", a->duplicates },
		{ "sack_gaps", a->gaps },
		{ "restarts", a->restarts },
		{ "unsent", a->unsent },
		{ "unacked", a->unacked },
		{ "out_of_order", a->out_of_order },
		{ "rwnd", a->rwnd },
		{ "peer_rwnd", a->peer_rwnd },
	};
	json_t *j = json_object(), *paths = json_array();

	json_object_set_new(j, "state", json_string(a->state));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		json_object_set_new(j, rows[i].name, make_json_number(rows[i].v));
	for (uint32_t i = 0; i < a->paths; i++)
		json_array_append_new(paths, path_json(&st->path[i]));
	json_object_set_new(j, "paths", paths);
	return j;
}

static void put_json(struct out *o, unsigned session, const struct out_status *st)
{
	json_t *j = json_object();

	json_object_set_new(j, "event", json_string("status"));
	if (session)
		json_object_set_new(j, "session", json_integer(session));
	json_object_set_new(j, "seconds", json_real(st->seconds));
	json_object_set_new(j, "sent", make_json_number(st->sent));
	json_object_set_new(j, "received", make_json_number(st->received));
	json_object_set_new(j, "held", make_json_number(st->held));
	json_object_set_new(j, "association", st->has_assoc ? assoc_json(st) : json_null());
	json_out_line(o, j);
}

void out_status(struct out *o, unsigned session, const struct out_status *st)
{
	if (o->json)
		put_json(o, session, st);
	else
		put_text(o, session, st);
}
