/* SPDX-License-Identifier: BSD-2-Clause */
/* Text for people; out_json.c has the other half. */
#include "cli/out/out.h"
#include "cli/about.h"
#include "cli/out/out_json.h"
#include "cli/sessctl.h"
#include "cli/text.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GREEN "32"
#define RED   "31"
#define BOLD  "1"

#define ROW_INDENT 16 /* where values of a row begin */

static bool is_dumb(void)
{
	const char *term = getenv("TERM");

	return !term || !strcmp(term, "dumb");
}

bool out_colours(int fd)
{
	const char *no_colour = getenv("NO_COLOR");

	return !is_dumb() && isatty(fd) && !(no_colour && *no_colour);
}

void out_init(struct out *o, const char *cmd, bool json)
{
	*o = (struct out){ .json = json, .cmd = cmd, .f = stdout, .err = stderr };
	o->colour = !json && out_colours(STDOUT_FILENO);
	o->bar = !json && !is_dumb() && isatty(STDERR_FILENO);
}

void out_to_stderr(struct out *o)
{
	o->f = stderr;
	o->colour = !o->json && out_colours(STDERR_FILENO);
}

/* A pipe that is writable takes PIPE_BUF octets without waiting: pipe(7). */
static bool is_taken_now(struct out *o, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	if (!o->drops || poll(&p, 1, 0) == 1)
		return true;
	o->left_out++;
	return false;
}

void out_flush(struct out *o)
{
	if (!is_taken_now(o, STDOUT_FILENO)) {
		__fpurge(o->f);
		return;
	}
	if (o->log) {
		out_log_event(o);
		return;
	}
	if (fflush(o->f) && !o->write_errno)
		o->write_errno = errno;
}

/* A headline: number of the session if there is one, then a coloured word. */
static void print_headline(struct out *o, unsigned session, const char *colour, const char *word)
{
	out_progress_end(o);
	if (session)
		fprintf(o->f, "session %u: ", session);
	if (o->colour)
		fprintf(o->f, "\033[%sm%s\033[0m", colour, word);
	else
		fputs(word, o->f);
}

static void print_row(struct out *o, const char *label, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void print_row(struct out *o, const char *label, const char *fmt, ...)
{
	char row[1600];
	va_list ap;
	int n = snprintf(row, sizeof row, "  %-13s ", label);

	va_start(ap, fmt);
	vsnprintf(row + n, sizeof row - (size_t)n, fmt, ap);
	va_end(ap);
	/* in a log it becomes a part of a line */
	text_fold(o->f, row, 0, ROW_INDENT, o->log ? UINT_MAX : text_width(o->f));
}

static const char *rd_text(char *buf, size_t size, uint16_t v)
{
	if (v == DDPS_RD_ULP)
		snprintf(buf, size, "ulp");
	else
		snprintf(buf, size, "%u", v);
	return buf;
}

static void row_private_data(struct out *o, const uint8_t *pd, size_t len)
{
	char hex[2 * DDPS_PD_MAX + 1], size[24];

	if (!len)
		return;
	text_size(size, sizeof size, len);
	text_hex(hex, pd, len);
	if (text_is_clean(pd, len))
		print_row(o, "private data", "\"%.*s\" (%s)", (int)len, (const char *)pd, size);
	else
		print_row(o, "private data", "hex:%s (%s)", hex, size);
}

static void row_transport(struct out *o, const struct ddps_conn_info *i)
{
	if (i->transport == DDPS_TRANSPORT_SHM)
		print_row(o, "shared memory", "peer's pid %u, uid %u, gid %u", i->shm.pid,
			  i->shm.uid, i->shm.gid);
	if (i->transport == DDPS_TRANSPORT_TCP || i->transport == DDPS_TRANSPORT_SHM) {
		print_row(o, "mpa", "rev %u, crc %s, markers sent %s, received %s, mulpdu %u",
			  i->mpa.rev, i->mpa.crc ? "on" : "off", i->mpa.markers_tx ? "on" : "off",
			  i->mpa.markers_rx ? "on" : "off", i->mulpdu);
	} else {
		char encap[40] = "not encapsulated";

		if (i->sctp.encap)
			snprintf(encap, sizeof encap, "in UDP to port %u", i->sctp.encap);
		print_row(o, "sctp", "backend %s, stream %u, %s, mulpdu %u", i->sctp.backend,
			  i->sctp.stream, encap, i->mulpdu);
	}
}

static void rows_info(struct out *o, const struct ddps_conn_info *i)
{
	char a[8], b[8], c[8], d[8];

	print_row(o, "local", "%s", i->local);
	print_row(o, "peer", "%s", i->peer);
	print_row(o, "set-up", "%s, %s", i->enhanced ? "enhanced" : "unenhanced",
		  i->p2p ? "peer-to-peer" : "client-server");
	rd_text(a, sizeof a, i->ird);
	rd_text(b, sizeof b, i->ord);
	rd_text(c, sizeof c, i->peer_ird);
	rd_text(d, sizeof d, i->peer_ord);
	if (i->enhanced)
		print_row(o, "ird / ord", "%s / %s, the peer said %s / %s", a, b, c, d);
	else
		print_row(o, "ird / ord", "%s / %s, not negotiated", a, b);
	if (i->p2p)
		print_row(o, "rtr", "%s", out_rtr_name(i->rtr));
	row_transport(o, i);
}

void out_listening(struct out *o, const char *uri)
{
	if (o->quiet)
		return;
	if (o->json) {
		json_out_listening(o, uri);
		return;
	}
	print_headline(o, 0, BOLD, "listening");
	fprintf(o->f, " on %s\n", uri);
	out_flush(o);
}

/* What it is known by is the peer's own text, with nothing in it that a terminal obeys. */
static void rows_peer_id(struct out *o, const struct ddps_peer_id *id)
{
	char fp[2 * sizeof id->fingerprint + 1];

	if (!id)
		return;
	text_hex(fp, id->fingerprint, sizeof id->fingerprint);
	print_row(o, "secured", "%s, %s, %s", id->version, id->suite, id->group);
	if (id->how == DDPS_PEER_X509)
		print_row(o, "peer is", "%s, from %s, sha256 %s", id->name, id->issuer, fp);
	else
		print_row(o, "peer is", "%s", id->name);
}

void out_established(struct out *o, unsigned session, const struct ddps_conn_info *info,
		     const struct ddps_peer_id *id, const uint8_t *pd, size_t pd_len)
{
	if (o->quiet)
		return;
	if (o->json) {
		json_out_established(o, session, info, id, pd, pd_len);
		return;
	}
	print_headline(o, session, GREEN, "established");
	fprintf(o->f, " over %s, %s\n", out_transport_name(o, info->transport),
		info->initiator ? "initiator" : "responder");
	rows_info(o, info);
	rows_peer_id(o, id);
	row_private_data(o, pd, pd_len);
	out_flush(o);
}

void out_rejected(struct out *o, unsigned session, const struct ddps_event *ev)
{
	if (o->quiet)
		return;
	if (o->json) {
		json_out_rejected(o, session, ev);
		return;
	}
	print_headline(o, session, RED, "rejected");
	fprintf(o->f, " %s %s\n", ev->type == DDPS_EV_REJECTED ? "by" : "a request of",
		ev->info.peer);
	row_private_data(o, ev->private_data, ev->private_data_len);
	out_flush(o);
}

void out_terminated(struct out *o, unsigned session, const struct ddps_error *e)
{
	if (o->quiet)
		return;
	if (o->json) {
		json_out_terminated(o, session, e);
		return;
	}
	print_headline(o, session, RED, "terminated");
	fprintf(o->f, " by the %s side\n", e->by_peer ? "peer's" : "local");
	print_row(o, "terminate", "layer %u, etype %u, code 0x%02x: %s", e->triple.layer,
		  e->triple.etype, e->triple.code, ddps_triple_name(&e->triple));
	out_flush(o);
}

void out_transfer(struct out *o, unsigned session, const struct out_transfer *t)
{
	char size[24], rate[24], time[24], digest[65];

	if (o->quiet)
		return;
	if (o->json) {
		json_out_transfer(o, session, t);
		return;
	}
	text_size(size, sizeof size, t->bytes);
	text_time(time, sizeof time, t->seconds);
	text_rate(rate, sizeof rate, (double)t->bytes / (t->seconds > 0 ? t->seconds : 1e-9));
	text_hex(digest, t->digest, t->digest_len);
	print_headline(o, session, GREEN, t->op);
	fprintf(o->f, " %s\n", t->name);
	print_row(o, "size", "%s in %s, %s", size, time, rate);
	print_row(o, t->digest_name, "%s", digest);
	out_flush(o);
}

void out_pong(struct out *o, uint32_t seq, uint32_t size, double us)
{
	char text[24];

	if (o->json) {
		json_out_pong(o, seq, size, us);
		return;
	}
	text_size(text, sizeof text, size);
	fprintf(o->f, "  %-6u %-12s %.3f ms\n", seq, text, us / 1000);
	out_flush(o);
}

void out_ping(struct out *o, const struct out_ping *p)
{
	char text[24];

	if (o->json) {
		json_out_ping(o, p);
		return;
	}
	text_size(text, sizeof text, p->size);
	print_headline(o, 0, GREEN, "ping");
	fprintf(o->f, " %s, %s, %u times\n", p->op, text, p->count);
	print_row(o, "round trip", "min %.3f  avg %.3f  p50 %.3f  p99 %.3f  max %.3f ms",
		  p->min / 1000, p->avg / 1000, p->p50 / 1000, p->p99 / 1000, p->max / 1000);
	out_flush(o);
}

#define PERF_WIDTH 78 /* of a whole row; a narrower terminal gets what matters most */

static bool is_narrow(const struct out *o)
{
	return text_columns(o->f) < PERF_WIDTH;
}

static void perf_head(struct out *o, const struct out_perf *p)
{
	print_headline(o, 0, GREEN, "perf");
	fprintf(o->f, " %s, depth %u", p->op, p->depth);
	if (p->sessions > 1)
		fprintf(o->f, ", %u sessions", p->sessions);
	fprintf(o->f, "\n  %-11s %9s %12s", "size", "ops/s", "rate");
	if (is_narrow(o))
		fprintf(o->f, " %6s %6s\n", "p50 us", "p99 us");
	else
		fprintf(o->f, " %8s %8s %8s %8s %5s\n", "min us", "p50 us", "p99 us", "max us",
			"cpu %");
}

/* What each row begins with. */
static void print_perf_rate(struct out *o, const struct out_perf *p, bool first)
{
	char size[24], rate[24];

	if (first)
		perf_head(o, p);
	text_size(size, sizeof size, p->size);
	text_rate(rate, sizeof rate, (double)(p->ops * p->size) / p->seconds);
	fprintf(o->f, "  %-11s %9.0f %12s", size, (double)p->ops / p->seconds, rate);
}

void out_perf(struct out *o, const struct out_perf *p, bool first)
{
	if (o->json) {
		json_out_perf(o, p);
		return;
	}
	print_perf_rate(o, p, first);
	if (is_narrow(o))
		fprintf(o->f, " %6.0f %6.0f\n", p->p50, p->p99);
	else
		fprintf(o->f, " %8.1f %8.1f %8.1f %8.1f %5.0f\n", p->min, p->p50, p->p99, p->max,
			100 * p->cpu / p->seconds);
	out_flush(o);
}

void out_perf_interval(struct out *o, const struct out_perf *p, bool first)
{
	if (o->json) {
		json_out_perf_interval(o, p);
		return;
	}
	print_perf_rate(o, p, first);
	if (is_narrow(o))
		fprintf(o->f, " %9.2f s\n", p->from + p->seconds);
	else
		fprintf(o->f, "  %.2f to %.2f s\n", p->from, p->from + p->seconds);
	out_flush(o);
}

void out_closed(struct out *o, unsigned session)
{
	if (o->quiet)
		return;
	if (o->json) {
		json_out_closed(o, session);
		return;
	}
	print_headline(o, session, BOLD, "closed");
	fputc('\n', o->f);
	out_flush(o);
}

/* In one write: lines of other processes do not come between. */
static void print_said(struct out *o, int level, const char *text, const char *advice)
{
	char whole[2600];

	out_progress_end(o);
	if (!is_taken_now(o, STDERR_FILENO))
		return;
	if (o->left_out) {
		unsigned n = o->left_out;

		o->left_out = 0;
		out_note(o, "read its output faster, or --quiet",
			 "%u events or errors were left out: nobody read them", n);
	}
	if (o->log) {
		out_log_say(o, level, text, advice);
		return;
	}
	snprintf(whole, sizeof whole, "sessctl %s: %s%s%s\n", o->cmd, text,
		 advice ? "\n  try: " : "", advice ? advice : "");
	fputs(whole, o->err);
}

void out_note(struct out *o, const char *advice, const char *fmt, ...)
{
	char text[1600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	print_said(o, LOG_WARNING, text, advice);
}

void out_error(struct out *o, unsigned session, const char *advice, const char *fmt, ...)
{
	char text[1600], clean[1600], whole[1640];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	/* parts of it may come from the peer */
	text_clean(clean, sizeof clean, text, strlen(text));
	snprintf(whole, sizeof whole, "session %u: %s", session, clean);
	print_said(o, LOG_ERR, session ? whole : clean, advice);
	if (o->json)
		json_out_error(o, session, clean, advice);
	o->error = 0;
}

void out_error_text(char *dst, size_t size, const struct ddps_error *e)
{
	const char *what = e->text[0] ? e->text : ddps_strerror(e->code);
	int n = snprintf(dst, size, "%s%s%s", what,
			 e->peer[0] && !strstr(what, e->peer) ? ", peer " : "",
			 strstr(what, e->peer) ? "" : e->peer);

	if (e->sys_errno && n > 0 && (size_t)n < size && !strstr(dst, strerror(e->sys_errno)))
		snprintf(dst + n, size - (size_t)n, ": %s", strerror(e->sys_errno));
}

int out_finish(struct out *o)
{
	int bad;

	out_progress_end(o);
	out_flush(o);
	if (o->log)
		out_log_end(o);
	bad = o->write_errno || ferror(o->f);
	if (bad && o->listing && o->write_errno == EPIPE)
		cmd_reader_left();
	if (bad)
		fprintf(o->err, "sessctl %s: cannot write to standard output: %s\n", o->cmd,
			strerror(o->write_errno ? o->write_errno : EIO));
	return bad ? -1 : 0;
}
