/* SPDX-License-Identifier: BSD-2-Clause */
/* Prometheus' text exposition format, version 0.0.4. */
#include "watch/watch.h"
#include <inttypes.h>

struct metric {
	const char *name, *type, *help;
	const char *key, *in; /* @in: the object in which @key is, or NULL */
};

#define COUNTERS(p)                                                                                \
	{ p "sent_octets_total", "counter", "Octets sent behind DDP headers.", "octets", "sent" }, \
		{ p "sent_messages_total", "counter", "Messages sent.", "messages", "sent" },      \
		{ p "received_octets_total", "counter", "Octets received behind DDP headers.",     \
		  "octets", "received" },                                                          \
		{ p "received_messages_total", "counter", "Messages received.", "messages",        \
		  "received" },                                                                    \
		{ p "stalls_total", "counter", "Sends of a peer that waited for a receive.",       \
		  "stalls", NULL },                                                                \
		{ p "no_buffer_total", "counter", "Sends of a peer without a receive.",            \
		  "no_buffer", NULL },                                                             \
		{ p "cq_overflow_total", "counter", "Completions lost.", "cq_overflow", NULL },    \
		{ p "ird_overrun_total", "counter", "Reads of a peer beyond IRD.", "ird_overrun",  \
		  NULL },                                                                          \
		{ p "sends_posted", "gauge", "Send work requests under way.", "sends_posted",      \
		  NULL },                                                                          \
		{ p "recvs_posted", "gauge", "Receives posted.", "recvs_posted", NULL },           \
		{ p "reads_out", "gauge", "Own RDMA Reads under way.", "reads_out", NULL },        \
		{ p "reads_in", "gauge", "RDMA Reads of peers under way.", "reads_in", NULL },     \
	{                                                                                          \
		p "held_octets", "gauge", "Octets received and kept.", "held_octets", NULL         \
	}

static const struct metric of_context[] = {
	{ "ddpsess_sessions", "gauge", "Endpoints, connected or not.", "sessions", NULL },
	{ "ddpsess_requests", "gauge", "Requests that wait for an answer.", "requests", NULL },
	{ "ddpsess_regions", "gauge", "Memory regions registered.", "regions", NULL },
	{ "ddpsess_srq_posted", "gauge", "Receives in shared queues.", "srq_posted", NULL },
	{ "ddpsess_regions_refused_total", "counter", "Regions refused.", "regions_refused", NULL },
	{ "ddpsess_half_open_full_total", "counter", "Set-ups met the limit of half-open ones.",
	  "half_open_full", NULL },
	{ "ddpsess_refused_identity_total", "counter",
	  "Peers refused for their certificate or pre-shared key.", "refused_identity", NULL },
	{ "ddpsess_refused_not_listed_total", "counter", "Peers refused by name, list or user.",
	  "refused_not_listed", NULL },
	{ "ddpsess_refused_protocol_total", "counter",
	  "Peers refused for what they speak in place of TLS 1.3 or DTLS 1.2.", "refused_protocol",
	  NULL },
	{ "ddpsess_refused_gone_total", "counter", "Peers gone before it was known who they are.",
	  "refused_gone", NULL },
	{ "ddpsess_reloads_failed_total", "counter",
	  "Files of secured wires that had changed and could not be read.", "reloads_failed",
	  NULL },
	{ "ddpsess_secured_held_total", "counter", "Handshakes of peers that had to wait.",
	  "secured_held", NULL },
	{ "ddpsess_dtls_cookies_total", "counter", "Strangers asked for a cookie, DTLS.",
	  "dtls_cookies", NULL },
	{ "ddpsess_dtls_strange_total", "counter",
	  "DTLS records dropped that are of no key or version in use.", "dtls_strange", NULL },
	{ "ddpsess_dtls_replayed_total", "counter", "DTLS records dropped as taken before or old.",
	  "dtls_replayed", NULL },
	{ "ddpsess_dtls_forged_total", "counter", "DTLS records that did not authenticate.",
	  "dtls_forged", NULL },
	{ "ddpsess_dtls_renewed_total", "counter", "New keys of DTLS connections that stand.",
	  "dtls_renewed", NULL },
	{ "ddpsess_dtls_rebound_total", "counter", "Peers of DTLS whose port has changed.",
	  "dtls_rebound", NULL },
	{ "ddpsess_dtls_tried_total", "counter", "Trials of a key for a record of an unknown port.",
	  "dtls_tried", NULL },
	{ "ddpsess_dtls_untried_total", "counter", "Records of unknown ports beyond the limit.",
	  "dtls_untried", NULL },
	COUNTERS("ddpsess_"),
};

static const struct metric of_session[] = {
	COUNTERS("ddpsess_session_"),
	{ "ddpsess_session_retransmitted_total", "counter",
	  "Segments or DATA chunks sent again by the connection or association below.",
	  "retransmitted", NULL },
	{ "ddpsess_session_ird", "gauge", "IRD in force.", "ird", NULL },
	{ "ddpsess_session_ord", "gauge", "ORD in force.", "ord", NULL },
	{ "ddpsess_session_cwnd_octets", "gauge", "Congestion window.", "cwnd", NULL },
	{ "ddpsess_session_unacked_octets", "gauge", "Octets sent and not acknowledged.", "unacked",
	  NULL },
	{ "ddpsess_session_srtt_nanoseconds", "gauge", "Smoothed round-trip time.", "srtt_ns",
	  NULL },
};

/* Of a queue pair for datagrams. */
static const struct metric of_datagrams[] = {
	{ "ddpsess_datagrams_sent_octets_total", "counter", "Octets of datagrams sent.", "octets",
	  "sent" },
	{ "ddpsess_datagrams_sent_messages_total", "counter", "Datagrams sent.", "messages",
	  "sent" },
	{ "ddpsess_datagrams_received_octets_total", "counter", "Octets of datagrams received.",
	  "octets", "received" },
	{ "ddpsess_datagrams_received_messages_total", "counter", "Datagrams received.", "messages",
	  "received" },
	{ "ddpsess_datagrams_no_buffer_total", "counter", "Datagrams that found no receive.",
	  "no_buffer", NULL },
	{ "ddpsess_datagrams_bad_qkey_total", "counter", "Datagrams with a wrong Q_Key.",
	  "bad_qkey", NULL },
	{ "ddpsess_datagrams_malformed_total", "counter", "Datagrams malformed or misdirected.",
	  "malformed", NULL },
	{ "ddpsess_datagrams_unreachable_total", "counter", "Datagrams to nobody.", "unreachable",
	  NULL },
};

#define N(table) (sizeof(table) / sizeof *(table))

/* What samples are of: the member of a process that has them, and their labels. */
enum kind { OF_CONTEXT, OF_SESSION, OF_DATAGRAMS };

static const char *const arrays[] = { NULL, "sessions", "datagrams" };

/* What watch_string gives is without control characters, so two are left to be escaped. */
static void put_label(FILE *f, const char *name, const json_t *o, const char *key)
{
	char text[256];

	watch_string(text, sizeof text, o, key);
	fprintf(f, "%s=\"", name);
	for (const char *s = text; *s; s++)
		fprintf(f, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
	fputc('"', f);
}

static void put_labels(FILE *f, const json_t *process, enum kind kind, const json_t *item)
{
	fprintf(f, "{pid=\"%" PRIu64 "\",", watch_number(process, "pid"));
	put_label(f, "program", process, "program");
	fputc(',', f);
	put_label(f, "label", process, "label");
	if (kind == OF_SESSION) {
		fprintf(f, ",session=\"%" PRIu64 "\",", watch_number(item, "session"));
		put_label(f, "transport", item, "transport");
		fputc(',', f);
		put_label(f, "peer", item, "peer");
	} else if (kind == OF_DATAGRAMS) {
		fprintf(f, ",qp=\"%" PRIu64 "\"", watch_number(item, "qp_num"));
	}
	fputc('}', f);
}

static void put_sample(FILE *f, const struct metric *m, const json_t *process, enum kind kind,
		       const json_t *item)
{
	const json_t *from = m->in ? json_object_get(item, m->in) : item, *v;

	v = json_object_get(from, m->key);
	if (!json_is_integer(v))
		return; /* this wire has no such thing */
	fputs(m->name, f);
	put_labels(f, process, kind, item);
	fprintf(f, " %" JSON_INTEGER_FORMAT "\n", json_integer_value(v));
}

/* All samples of one name stand together, behind its two lines. */
static void put_metric(FILE *f, const struct metric *m, const json_t *all, enum kind kind)
{
	const json_t *p, *v;
	const char *key;
	size_t i;

	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, m->type);
	json_object_foreach((json_t *)(uintptr_t)all, key, p)
	{
		if (kind == OF_CONTEXT)
			put_sample(f, m, p, kind, json_object_get(p, "context"));
		else
			json_array_foreach(json_object_get(p, arrays[kind]), i, v)
				put_sample(f, m, p, kind, v);
	}
}

void watch_metrics(FILE *f, const json_t *all)
{
	const json_t *p;
	const char *key;

	fputs("# HELP ddpsess_up Whether the process could say how it stands.\n"
	      "# TYPE ddpsess_up gauge\n",
	      f);
	json_object_foreach((json_t *)(uintptr_t)all, key, p)
	{
		fputs("ddpsess_up", f);
		put_labels(f, p, OF_CONTEXT, NULL);
		fprintf(f, " %d\n", !json_is_true(json_object_get(p, "stuck")));
	}
	for (size_t i = 0; i < N(of_context); i++)
		put_metric(f, &of_context[i], all, OF_CONTEXT);
	for (size_t i = 0; i < N(of_session); i++)
		put_metric(f, &of_session[i], all, OF_SESSION);
	for (size_t i = 0; i < N(of_datagrams); i++)
		put_metric(f, &of_datagrams[i], all, OF_DATAGRAMS);
}
