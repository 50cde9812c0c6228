/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl: JSON lines, text, statistics and advice. */
#include "xfer/advice.h"
#include "cli/out/out.h"
#include "cli/text.h"
#include "sessctl/stats.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static char *text, *errors;
static size_t text_len, errors_len;

static void drop_sessctl_out(void)
{
	free(text);
	free(errors);
	text = errors = NULL;
}

TestSuite(sessctl_out, .fini = drop_sessctl_out);

static struct out capture_sessctl_out(bool json)
{
	struct out o = { .json = json, .cmd = "test" };

	drop_sessctl_out();
	o.f = open_memstream(&text, &text_len);
	o.err = open_memstream(&errors, &errors_len);
	return o;
}

static void finish_sessctl_out(struct out *o)
{
	fclose(o->f);
	fclose(o->err);
}

/* The one line that was written, parsed. */
static json_t *line(struct out *o)
{
	json_error_t e;
	json_t *j;

	finish_sessctl_out(o);
	cr_assert_gt(text_len, 1);
	cr_assert_eq(strchr(text, '\n'), text + text_len - 1, "one line: %s", text);
	j = json_loads(text, 0, &e);
	cr_assert_not_null(j, "%s: %s", e.text, text);
	return j;
}

static const char *str(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "(none)";
}

static long long num(const json_t *j, const char *key)
{
	cr_assert(json_is_integer(json_object_get(j, key)), "%s", key);
	return json_integer_value(json_object_get(j, key));
}

static bool yes(const json_t *j, const char *key)
{
	cr_assert(json_is_boolean(json_object_get(j, key)), "%s", key);
	return json_is_true(json_object_get(j, key));
}

static const struct ddps_conn_info tcp_info = {
	.transport = DDPS_TRANSPORT_TCP,
	.initiator = true,
	.local = "127.0.0.1:5",
	.peer = "127.0.0.1:6",
	.enhanced = true,
	.ird = 16,
	.ord = 4,
	.peer_ird = 4,
	.peer_ord = DDPS_RD_ULP,
	.p2p = true,
	.rtr = DDPS_RTR_WRITE,
	.mulpdu = 1448,
	.mpa = { .rev = 2, .crc = true, .markers_tx = true },
};

static const struct ddps_conn_info sctp_info = {
	.transport = DDPS_TRANSPORT_SCTP,
	.local = "[::1]:5",
	.peer = "[::1]:6",
	.mulpdu = 1200,
	.sctp = { .backend = "native", .stream = 3, .encap = 9899 },
};

Test(sessctl_out, json_established_over_tcp)
{
	struct out o = capture_sessctl_out(true);
	json_t *j, *mpa;

	out_established(&o, 0, &tcp_info, NULL, (const uint8_t *)"\x00\xff", 2);
	j = line(&o);
	cr_expect_str_eq(str(j, "event"), "established");
	cr_expect_null(json_object_get(j, "session"));
	cr_expect_str_eq(str(j, "transport"), "tcp");
	cr_expect_str_eq(str(j, "role"), "initiator");
	cr_expect_str_eq(str(j, "local"), "127.0.0.1:5");
	cr_expect_str_eq(str(j, "peer"), "127.0.0.1:6");
	cr_expect(yes(j, "enhanced") && yes(j, "p2p"));
	cr_expect_eq(num(j, "ird"), 16);
	cr_expect_eq(num(j, "ord"), 4);
	cr_expect_eq(num(j, "peer_ird"), 4);
	cr_expect_eq(num(j, "peer_ord"), 16383);
	cr_expect_str_eq(str(j, "rtr"), "write");
	cr_expect_str_eq(str(j, "private_data"), "00ff");
	mpa = json_object_get(j, "mpa");
	cr_expect_eq(num(mpa, "rev"), 2);
	cr_expect(yes(mpa, "crc") && yes(mpa, "markers_tx") && !yes(mpa, "markers_rx"));
	cr_expect_eq(num(mpa, "mulpdu"), 1448);
	cr_expect(json_is_null(json_object_get(j, "sctp")));
	json_decref(j);
}

Test(sessctl_out, json_established_over_sctp)
{
	struct out o = capture_sessctl_out(true);
	json_t *j, *sctp;

	out_established(&o, 7, &sctp_info, NULL, NULL, 0);
	j = line(&o);
	cr_expect_eq(num(j, "session"), 7);
	cr_expect_str_eq(str(j, "transport"), "sctp");
	cr_expect_str_eq(str(j, "role"), "responder");
	cr_expect_str_eq(str(j, "rtr"), "none");
	cr_expect_str_eq(str(j, "private_data"), "");
	sctp = json_object_get(j, "sctp");
	cr_expect_str_eq(str(sctp, "backend"), "native");
	cr_expect_eq(num(sctp, "stream"), 3);
	cr_expect_eq(num(sctp, "encap"), 9899);
	cr_expect(json_is_null(json_object_get(j, "mpa")));
	json_decref(j);
}

Test(sessctl_out, json_rejected_and_terminated)
{
	struct ddps_event ev = { .type = DDPS_EV_REJECTED,
				 .private_data_len = 1,
				 .private_data = { 0xab } };
	struct ddps_error e = { .has_triple = true, .by_peer = true, .triple = { 1, 2, 3 } };
	struct out o = capture_sessctl_out(true);
	json_t *j;

	ev.info = tcp_info;
	out_rejected(&o, 0, &ev);
	j = line(&o);
	cr_expect_str_eq(str(j, "event"), "rejected");
	cr_expect_str_eq(str(j, "by"), "peer");
	cr_expect_str_eq(str(j, "private_data"), "ab");
	json_decref(j);
	o = capture_sessctl_out(true);
	out_terminated(&o, 0, &e);
	j = line(&o);
	cr_expect_str_eq(str(j, "event"), "terminated");
	cr_expect_eq(num(j, "layer"), 1);
	cr_expect_eq(num(j, "etype"), 2);
	cr_expect_eq(num(j, "code"), 3);
	cr_expect_str_eq(str(j, "by"), "peer");
	json_decref(j);
	e.by_peer = false;
	o = capture_sessctl_out(true);
	out_terminated(&o, 0, &e);
	j = line(&o);
	cr_expect_str_eq(str(j, "by"), "local");
	json_decref(j);
}

Test(sessctl_out, json_transfer_ping_and_the_rest)
{
	uint8_t sha[32] = { 0x01, [31] = 0xff };
	struct out_transfer t = { .op = "put",
				  .name = "n\"\n",
				  .bytes = 5ull << 30,
				  .seconds = 2,
				  .digest_name = "sha256",
				  .digest = sha,
				  .digest_len = sizeof sha };
	struct out_ping p = { .op = "read", .size = 64, .count = 3, .min = 1, .p99 = 4 };
	struct out o = capture_sessctl_out(true);
	json_t *j;

	out_transfer(&o, 2, &t);
	j = line(&o);
	cr_expect_str_eq(str(j, "op"), "put");
	cr_expect_str_eq(str(j, "name"), "n\"?");
	cr_expect_eq(num(j, "bytes"), 5368709120);
	cr_expect_eq(json_real_value(json_object_get(j, "seconds")), 2.0);
	cr_expect_eq(strlen(str(j, "sha256")), 64);
	cr_expect_eq(strncmp(str(j, "sha256"), "0100", 4), 0);
	json_decref(j);
	o = capture_sessctl_out(true);
	out_ping(&o, &p);
	j = line(&o);
	cr_expect_str_eq(str(j, "event"), "ping");
	cr_expect_eq(json_real_value(json_object_get(j, "p99_us")), 4.0);
	json_decref(j);
	o = capture_sessctl_out(true);
	out_listening(&o, "tcp://127.0.0.1:7");
	j = line(&o);
	cr_expect_str_eq(str(j, "uri"), "tcp://127.0.0.1:7");
	json_decref(j);
	o = capture_sessctl_out(true);
	out_closed(&o, 0);
	j = line(&o);
	cr_expect_str_eq(str(j, "event"), "closed");
	json_decref(j);
}

Test(sessctl_out, errors_go_to_both_and_are_clean)
{
	struct out o = capture_sessctl_out(true);
	json_t *j;

	out_error(&o, 0, "something", "peer said %s", "\x1b[2J\xff");
	j = line(&o);
	cr_expect_str_eq(str(j, "event"), "error");
	cr_expect_str_eq(str(j, "message"), "peer said ?[2J?");
	cr_expect_str_eq(str(j, "try"), "something");
	json_decref(j);
	cr_expect_str_eq(errors, "sessctl test: peer said ?[2J?\n  try: something\n");
	o = capture_sessctl_out(false);
	out_error(&o, 4, NULL, "bad");
	finish_sessctl_out(&o);
	cr_expect_eq(text_len, 0);
	cr_expect_str_eq(errors, "sessctl test: session 4: bad\n");
}

Test(sessctl_out, text_is_plain_without_a_terminal)
{
	struct out o = capture_sessctl_out(false);

	out_established(&o, 3, &tcp_info, NULL, (const uint8_t *)"hi", 2);
	out_established(&o, 0, &sctp_info, NULL, (const uint8_t *)"\x1b", 1);
	out_progress(&o, "name", 1, 2);
	finish_sessctl_out(&o);
	cr_expect_null(strchr(text, '\033'));
	cr_expect(strstr(text, "session 3: established over tcp, initiator\n"), "%s", text);
	cr_expect(strstr(text, "\"hi\" (2 octets)"));
	cr_expect(strstr(text, "hex:1b (1 octet)"));
	cr_expect(strstr(text, "16 / 4, the peer said 4 / ulp"));
	cr_expect(strstr(text, "in UDP to port 9899"));
	cr_expect_eq(errors_len, 0);
}

Test(sessctl_out, colour_when_asked_for)
{
	struct out o = capture_sessctl_out(false);

	o.colour = true;
	out_closed(&o, 0);
	finish_sessctl_out(&o);
	cr_expect_str_eq(text, "\033[1mclosed\033[0m\n");
}

Test(sessctl_out, progress_shows_share_rate_and_time_left)
{
	struct out o = capture_sessctl_out(false);

	o.bar = true;
	out_progress(&o, "name", 1, 2);
	out_progress_end(&o);
	finish_sessctl_out(&o);
	cr_expect(strstr(errors, "name [############------------]  50%"), "%s", errors);
	cr_expect(strstr(errors, "iB/s"));
	cr_expect(strstr(errors, "left"));
}

/* Columns that the last line on standard error fills: characters, not octets. */
static size_t columns_filled(void)
{
	const char *line = strrchr(errors, '\r');
	size_t n = 0;

	cr_assert_not_null(line);
	cr_expect(text_is_clean(line + 4, strlen(line + 4)), "%s", line + 4);
	for (line += 4; *line; line++)
		n += ((uint8_t)*line & 0xc0) != 0x80;
	return n;
}

Test(sessctl_out, progress_fits_any_terminal)
{
	const char *name = "\u00e4\u00f6\u00fc\u20ac-a-name-that-is-longer-than-there-is-room-for";

	for (unsigned columns = 1; columns <= 100; columns++) {
		struct out o = capture_sessctl_out(false);

		o.bar = true;
		o.columns = columns;
		out_progress(&o, name, 1, 2);
		fflush(o.err);
		cr_expect_lt(columns_filled(), columns, "%u columns: %s", columns, errors);
		/* the bar goes when the name would have less than 8 columns next to it */
		if (columns < 60 || columns >= 80)
			cr_expect_eq(strstr(errors, "[####") != NULL, columns >= 80, "%u: %s",
				     columns, errors);
		finish_sessctl_out(&o);
	}
	cr_expect_eq(text_fit("\u20ac\u20ac", 1), 3);
	cr_expect_eq(text_fit("abc", 5), 3);
	cr_expect_eq(text_fit("abc", 0), 0);
}

Test(sessctl_out, error_text_has_sentence_errno_and_peer)
{
	struct ddps_error e = { .code = DDPS_E_REFUSED, .sys_errno = ECONNREFUSED };
	char s[400];

	strcpy(e.peer, "10.0.0.1:7");
	out_error_text(s, sizeof s, &e);
	cr_expect(strstr(s, "10.0.0.1:7") && strstr(s, "Connection refused"), "%s", s);
	strcpy(e.text, "connect to 10.0.0.1:7: Connection refused");
	out_error_text(s, sizeof s, &e);
	cr_expect_str_eq(s, e.text); /* nothing twice */
}

Test(sessctl_stats, sums_up)
{
	struct stats s = { .count = 0 };
	struct out_ping p = { .op = "send" };

	for (int i = 100; i >= 1; i--)
		cr_assert_eq(stats_add(&s, i), 0);
	stats_sum_up(&s, &p);
	cr_expect_eq(p.count, 100);
	cr_expect_eq(p.min, 1);
	cr_expect_eq(p.p50, 50);
	cr_expect_eq(p.avg, 50.5);
	cr_expect_eq(p.p99, 99);
	cr_expect_eq(p.max, 100);
	stats_free(&s);
	cr_assert_eq(stats_add(&s, 7), 0);
	stats_sum_up(&s, &p);
	cr_expect_eq(p.p99, 7);
	cr_expect_eq(p.count, 1);
	stats_free(&s);
}

Test(sessctl_advice, names_what_to_try)
{
	struct opts o = { .cmd = C_CONNECT }, plain = { .plain = true };
	struct ddps_error e = { .code = DDPS_E_SYSTEM, .sys_errno = EADDRINUSE };

	cr_expect(strstr(advice_for(&e, &o, false), "port 0"));
	e = (struct ddps_error){ .code = DDPS_E_RESET };
	cr_expect(strstr(advice_for(&e, &o, false), "--plain"));
	cr_expect_not(strstr(advice_for(&e, &plain, false), "--plain"));
	cr_expect_not(strstr(advice_for(&e, &o, true), "--plain"));
	e = (struct ddps_error){ .code = DDPS_E_TERMINATED,
				 .has_triple = true,
				 .triple = { 2, 0, 6 } };
	cr_expect(strstr(advice_for(&e, &o, false), "--ord"));
	e.triple.code = 7;
	cr_expect(strstr(advice_for(&e, &o, false), "--rtr"));
	e = (struct ddps_error){ .code = DDPS_E_ADDRESS };
	cr_expect(strstr(advice_for(&e, &o, false), "tcp://"));
	e = (struct ddps_error){ .code = DDPS_E_NOMEM };
	cr_expect_null(advice_for(&e, &o, false));
}
