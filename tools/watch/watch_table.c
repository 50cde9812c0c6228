/* SPDX-License-Identifier: BSD-2-Clause */
/* The sessions of all processes, the busiest first. */
#include "watch/watch.h"
#include "cli/text.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct line {
	const json_t *process, *session;
	double sent, received;
};

static const json_t *same_session(const json_t *before, uint64_t number)
{
	const json_t *s;
	size_t i;

	json_array_foreach(json_object_get(before, "sessions"), i,
			   s) if (watch_number(s, "session") == number) return s;
	return NULL;
}

static int busier(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	double p = x->sent + x->received, q = y->sent + y->received;

	return (p < q) - (p > q);
}

static size_t count_sessions(const json_t *all)
{
	const json_t *p;
	const char *key;
	size_t n = 0;

	json_object_foreach((json_t *)(uintptr_t)all, key, p) n +=
		json_array_size(json_object_get(p, "sessions"));
	return n;
}

/* Every session with its rates. */
static void gather_lines(struct line *to, const json_t *all, const json_t *before)
{
	const json_t *p, *s, *was;
	const char *key;
	size_t i;

	json_object_foreach((json_t *)(uintptr_t)all, key, p)
	{
		const json_t *old = json_object_get(before, key);
		uint64_t ns = watch_number(p, "time_ns") - watch_number(old, "time_ns");

		json_array_foreach(json_object_get(p, "sessions"), i, s)
		{
			was = old ? same_session(old, watch_number(s, "session")) : NULL;
			*to++ = (struct line){ p, s, watch_rate(s, was, "sent", ns),
					       watch_rate(s, was, "received", ns) };
		}
	}
}

static void put_table_line(FILE *f, const struct line *l)
{
	char program[16], wire[8], state[16], peer[28], sent[24], received[24], posted[24];

	watch_string(program, sizeof program, l->process, "program");
	watch_wire(wire, l->session);
	watch_string(state, sizeof state, l->session, "state");
	watch_string(peer, sizeof peer, l->session, "peer");
	text_rate(sent, sizeof sent, l->sent);
	text_rate(received, sizeof received, l->received);
	snprintf(posted, sizeof posted, "%" PRIu64 "/%" PRIu64,
		 watch_number(l->session, "sends_posted"),
		 watch_number(l->session, "recvs_posted"));
	fprintf(f,
		"%7" PRIu64 " %-15s %5" PRIu64 " %-5s %-10s %-27s %12s %12s %9s %6" PRIu64
		" %6" PRIu64 " %8.3f\n",
		watch_number(l->process, "pid"), program, watch_number(l->session, "session"), wire,
		state, peer, sent, received, posted, watch_number(l->session, "stalls"),
		watch_number(l->session, "retransmitted"),
		(double)watch_number(l->session, "srtt_ns") / 1e6);
}

void watch_table(struct out *o, const json_t *all, const json_t *before, unsigned lines)
{
	size_t n = count_sessions(all), shown = n;
	struct line *l = calloc(n + 1, sizeof *l);
	double sent = 0, received = 0;
	char a[24], b[24];

	if (!l) {
		out_error(o, 0, NULL, "out of memory");
		return;
	}
	gather_lines(l, all, before);
	qsort(l, n, sizeof *l, busier);
	for (size_t i = 0; i < n; i++) {
		sent += l[i].sent;
		received += l[i].received;
	}
	text_rate(a, sizeof a, sent);
	text_rate(b, sizeof b, received);
	fprintf(o->f, "contexts %zu, sessions %zu, sent %s, received %s\n", json_object_size(all),
		n, a, b);
	fprintf(o->f, "%7s %-15s %5s %-5s %-10s %-27s %12s %12s %9s %6s %6s %8s\n", "PID",
		"PROGRAM", "NO", "WIRE", "STATE", "PEER", "SENT", "RECEIVED", "SEND/RECV", "STALLS",
		"RESENT", "RTT ms");
	if (lines && lines < n + 3)
		shown = lines > 4 ? lines - 4 : 1;
	for (size_t i = 0; i < n && i < shown; i++)
		put_table_line(o->f, &l[i]);
	if (shown < n)
		fprintf(o->f, "%zu more\n", n - shown);
	free(l);
	out_flush(o);
}
