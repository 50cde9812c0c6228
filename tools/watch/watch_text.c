/* SPDX-License-Identifier: BSD-2-Clause */
/* One context as text for people. */
#include "watch/watch.h"
#include "cli/text.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROW_INDENT  16 /* where values of a row begin */
#define LINE_INDENT 4

uint64_t watch_number(const json_t *o, const char *key)
{
	const json_int_t v = json_integer_value(json_object_get(o, key));

	return v < 0 ? 0 : (uint64_t)v;
}

void watch_string(char *dst, size_t size, const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	text_clean(dst, size, s ? s : "", s ? strlen(s) : 0);
}

double watch_rate(const json_t *now, const json_t *before, const char *key, uint64_t ns)
{
	uint64_t a = before ? watch_number(json_object_get(before, key), "octets") : 0;
	uint64_t b = watch_number(json_object_get(now, key), "octets");

	return before && ns && b > a ? (double)(b - a) * 1e9 / (double)ns : 0;
}

static const char *onoff(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key)) ? "on" : "off";
}

/* "1.5 MiB in 3 messages" */
static void amount(char *dst, size_t size, const json_t *o, const char *key)
{
	const json_t *m = json_object_get(o, key);
	char octets[24];

	text_size(octets, sizeof octets, watch_number(m, "octets"));
	snprintf(dst, size, "%s in %" PRIu64 " messages", octets, watch_number(m, "messages"));
}

static void put_amounts(FILE *f, const json_t *o)
{
	char sent[64], received[64];

	amount(sent, sizeof sent, o, "sent");
	amount(received, sizeof received, o, "received");
	fprintf(f, "sent %s, received %s\n", sent, received);
}

/* What happened that a program may want to learn of; nothing if nothing did. */
static void put_limits(FILE *f, const char *label, const json_t *o)
{
	const char *sep = label;

	for (const struct watch_count *c = watch_counts; c->key; c++) {
		uint64_t n = c->row ? watch_number(o, c->key) : 0;

		if (!n)
			continue;
		fprintf(f, "%s%s %" PRIu64, sep, c->row, n);
		sep = ", ";
	}
	if (sep != label)
		fputc('\n', f);
}

static void put_rd(FILE *f, uint64_t ird, uint64_t ord)
{
	if (ird == DDPS_RD_ULP || ord == DDPS_RD_ULP)
		fprintf(f, "ulp");
	else
		fprintf(f, "%" PRIu64 "/%" PRIu64, ird, ord);
}

static void put_peer_id(FILE *f, const json_t *s)
{
	char name[256], version[16], suite[40];

	if (!json_object_get(s, "peer_id"))
		return;
	watch_string(name, sizeof name, s, "peer_id");
	watch_string(version, sizeof version, s, "secured");
	watch_string(suite, sizeof suite, s, "suite");
	fprintf(f, "    peer is     %s, %s, %s\n", name, version, suite);
}

static void put_negotiated(FILE *f, const json_t *s)
{
	char word[32];

	watch_string(word, sizeof word, s, "rtr");
	fprintf(f, "    negotiated  %s, %s, ird/ord ",
		json_is_true(json_object_get(s, "enhanced")) ? "enhanced" : "unenhanced",
		json_is_true(json_object_get(s, "p2p")) ? "peer-to-peer" : "client-server");
	put_rd(f, watch_number(s, "ird"), watch_number(s, "ord"));
	fprintf(f, ", the peer's ");
	put_rd(f, watch_number(s, "peer_ird"), watch_number(s, "peer_ord"));
	fprintf(f, ", rtr %s", word);
	if (json_object_get(s, "mpa_rev")) {
		fprintf(f, ", mpa rev %" PRIu64 ", crc %s", watch_number(s, "mpa_rev"),
			onoff(s, "crc"));
		fprintf(f, ", markers sent %s, received %s", onoff(s, "markers_tx"),
			onoff(s, "markers_rx"));
	} else {
		watch_string(word, sizeof word, s, "backend");
		fprintf(f, ", backend %s, stream %" PRIu64, word, watch_number(s, "stream"));
		if (watch_number(s, "encap"))
			fprintf(f, ", in UDP to port %" PRIu64, watch_number(s, "encap"));
	}
	fprintf(f, ", mulpdu %" PRIu64 "\n", watch_number(s, "mulpdu"));
}

static void print_wire(FILE *f, const json_t *s)
{
	const uint64_t srtt = watch_number(s, "srtt_ns");
	char cwnd[24], unacked[24], rtt[24] = "not measured";

	if (!json_object_get(s, "retransmitted"))
		return;
	if (srtt)
		snprintf(rtt, sizeof rtt, "%.3f ms", (double)srtt / 1e6);
	text_size(cwnd, sizeof cwnd, watch_number(s, "cwnd"));
	text_size(unacked, sizeof unacked, watch_number(s, "unacked"));
	fprintf(f, "    wire        rtt %s, cwnd %s, unacknowledged %s, retransmitted %" PRIu64,
		rtt, cwnd, unacked, watch_number(s, "retransmitted"));
	if (json_object_get(s, "paths"))
		fprintf(f, ", time-outs %" PRIu64 ", paths %" PRIu64 ", other sessions %" PRIu64,
			watch_number(s, "timeouts"), watch_number(s, "paths"),
			watch_number(s, "shares_association_with"));
	fputc('\n', f);
}

static void put_session(FILE *f, const json_t *s)
{
	char state[32], wire[8], local[80], peer[80], held[24];

	watch_string(state, sizeof state, s, "state");
	watch_string(wire, sizeof wire, s, "transport");
	watch_string(local, sizeof local, s, "local");
	watch_string(peer, sizeof peer, s, "peer");
	fprintf(f, "  session %-5" PRIu64 " %s", watch_number(s, "session"), state);
	if (!strcmp(wire, "none")) {
		fprintf(f, "%s%s\n", *peer ? ", peer " : "", peer);
		return;
	}
	fprintf(f, ", %s over %s, %s, peer %s\n",
		json_is_true(json_object_get(s, "initiator")) ? "initiator" : "responder", wire,
		local, peer);
	put_peer_id(f, s);
	if (json_object_get(s, "peer_pid"))
		fprintf(f,
			"    peer        process %" PRIu64 ", user %" PRIu64 ", group %" PRIu64
			"\n",
			watch_number(s, "peer_pid"), watch_number(s, "peer_uid"),
			watch_number(s, "peer_gid"));
	put_negotiated(f, s);
	fputs("    traffic     ", f);
	put_amounts(f, s);
	text_size(held, sizeof held, watch_number(s, "held_octets"));
	fprintf(f,
		"    posted      sends %" PRIu64 ", receives %" PRIu64 ", Reads out %" PRIu64
		" of %" PRIu64 ", in %" PRIu64 " of %" PRIu64 ", held %s\n",
		watch_number(s, "sends_posted"), watch_number(s, "recvs_posted"),
		watch_number(s, "reads_out"), watch_number(s, "ord"), watch_number(s, "reads_in"),
		watch_number(s, "ird"), held);
	put_limits(f, "    limits hit  ", s);
	print_wire(f, s);
}

/* A queue pair of the drop-in that has no session. */
static void put_datagrams(FILE *f, const json_t *q)
{
	char state[16];

	watch_string(state, sizeof state, q, "state");
	fprintf(f, "  queue pair 0x%06" PRIx64 " %s, datagrams, UDP port %" PRIu64,
		watch_number(q, "qp_num"), state, watch_number(q, "port"));
	if (watch_number(q, "groups"))
		fprintf(f, ", groups %" PRIu64, watch_number(q, "groups"));
	fputs("\n    traffic     ", f);
	put_amounts(f, q);
	fprintf(f, "    posted      sends %" PRIu64 ", receives %" PRIu64 "\n",
		watch_number(q, "sends_posted"), watch_number(q, "recvs_posted"));
	put_limits(f, "    limits hit  ", q);
}

/* "process 12 (rping), ddp0" */
static void put_process(FILE *f, const json_t *snapshot)
{
	char program[64], label[80];

	watch_string(program, sizeof program, snapshot, "program");
	watch_string(label, sizeof label, snapshot, "label");
	fprintf(f, "process %" PRIu64 " (%s)%s%s", watch_number(snapshot, "pid"), program,
		*label ? ", " : "", label);
}

/* Rows that are put together first, and folded behind @indent blanks where there is no room for them. */
struct rows {
	FILE *f;
	char *text;
	size_t len;
};

static FILE *begin_rows(struct rows *r, struct out *o)
{
	r->text = NULL;
	r->f = open_memstream(&r->text, &r->len);
	if (!r->f)
		out_error(o, 0, NULL, "out of memory");
	return r->f;
}

static void fold_rows(struct rows *r, struct out *o, unsigned indent)
{
	unsigned columns = text_width(o->f);
	char *end;

	if (!fclose(r->f))
		for (char *at = r->text; (end = strchr(at, '\n')); at = end + 1) {
			*end = 0;
			text_fold(o->f, at, 0, indent, columns);
		}
	free(r->text);
	out_flush(o);
}

void watch_text(struct out *o, const json_t *snapshot)
{
	const json_t *ctx = json_object_get(snapshot, "context"), *v;
	char time[24], version[24], uri[256];
	struct rows r;
	FILE *f = begin_rows(&r, o);
	size_t i;

	if (!f)
		return;
	text_time(time, sizeof time, (double)watch_number(snapshot, "watched_ns") / 1e9);
	watch_string(version, sizeof version, snapshot, "version");
	put_process(f, snapshot);
	fprintf(f, ", libddpsess %s, for %s\n", version, time);
	if (json_is_true(json_object_get(snapshot, "stuck")))
		fprintf(f, "  stuck         a call has held the library's lock for more than a "
			   "second\n");
	json_array_foreach(json_object_get(snapshot, "listeners"), i, v)
	{
		text_clean(uri, sizeof uri, json_string_value(v) ? json_string_value(v) : "",
			   json_string_length(v));
		fprintf(f, "  listening     %s\n", uri);
	}
	if (ctx) {
		fprintf(f,
			"  now           sessions %" PRIu64 ", requests %" PRIu64
			", regions %" PRIu64 ", receives in shared queues %" PRIu64 "\n",
			watch_number(ctx, "sessions"), watch_number(ctx, "requests"),
			watch_number(ctx, "regions"), watch_number(ctx, "srq_posted"));
		fputs("  in all        ", f);
		put_amounts(f, ctx);
		put_limits(f, "  limits hit    ", ctx);
	}
	json_array_foreach(json_object_get(snapshot, "service"), i, v)
		put_limits(f, "  service       ", v);
	json_array_foreach(json_object_get(snapshot, "sessions"), i, v) put_session(f, v);
	json_array_foreach(json_object_get(snapshot, "datagrams"), i, v) put_datagrams(f, v);
	fold_rows(&r, o, ROW_INDENT);
}

/* Octets of all queue pairs for datagrams, in the form of the counters of a context. */
static uint64_t datagram_octets(const json_t *snapshot, const char *key)
{
	const json_t *q;
	uint64_t sum = 0;
	size_t i;

	json_array_foreach(json_object_get(snapshot, "datagrams"), i, q) sum +=
		watch_number(json_object_get(q, key), "octets");
	return sum;
}

/* Of queue pairs that stay; those that come and go between two looks are in neither. */
static void put_datagram_rates(FILE *f, const json_t *now, const json_t *before, uint64_t ns)
{
	static const char *const keys[] = { "sent", "received" };
	char rate[24];

	if (!json_array_size(json_object_get(now, "datagrams")))
		return;
	fprintf(f, ", datagrams");
	for (int i = 0; i < 2; i++) {
		uint64_t a = datagram_octets(before, keys[i]), b = datagram_octets(now, keys[i]);

		text_rate(rate, sizeof rate,
			  before && ns && b > a ? (double)(b - a) * 1e9 / (double)ns : 0);
		fprintf(f, "%s %s %s", i ? "," : "", keys[i], rate);
	}
}

void watch_line(struct out *o, const json_t *snapshot, const json_t *before)
{
	const json_t *now = json_object_get(snapshot, "context"), *s;
	const json_t *was = json_object_get(before, "context");
	uint64_t ns = watch_number(snapshot, "time_ns") - watch_number(before, "time_ns");
	uint64_t resent = 0;
	char sent[24], received[24];
	struct rows r;
	FILE *f = begin_rows(&r, o);
	size_t i;

	if (!f)
		return;
	put_process(f, snapshot);
	if (!now) {
		fprintf(f, ": stuck\n");
		fold_rows(&r, o, LINE_INDENT);
		return;
	}
	json_array_foreach(json_object_get(snapshot, "sessions"), i, s) resent +=
		watch_number(s, "retransmitted");
	text_rate(sent, sizeof sent, watch_rate(now, was, "sent", ns));
	text_rate(received, sizeof received, watch_rate(now, was, "received", ns));
	fprintf(f,
		": sessions %" PRIu64 ", sent %s, received %s, stalls %" PRIu64
		", retransmitted %" PRIu64 ", regions %" PRIu64,
		watch_number(now, "sessions"), sent, received, watch_number(now, "stalls"), resent,
		watch_number(now, "regions"));
	put_datagram_rates(f, snapshot, before, ns);
	fputc('\n', f);
	fold_rows(&r, o, LINE_INDENT);
}
