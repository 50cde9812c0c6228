/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl: the command line. */
#include "xfer/opts.h"
#include "xfer/proto.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command cmd_of[] = {
	{ "listen", C_LISTEN, "URI", "Wait.", 1, 1, NULL },
	{ "connect", C_CONNECT, "URI", "Connect.", 1, 1, NULL },
	{ "put", C_PUT, "FILE URI", "Put.", 2, 2, NULL },
	{ "get", C_GET, "URI/NAME [FILE]", "Get.", 1, 2, NULL },
	{ "ping", C_PING, "URI", "Ping.", 1, 1, NULL },
	{ "perf", C_PERF, "URI", "Perf.", 1, 1, NULL },
};

static char why[800];

/* Parse "word word ..."; what @o points to stays valid until the next call. */
static enum opts_result parse(struct opts *o, const char *line)
{
	static char buf[4096];
	static char *argv[32];
	int argc = 0;

	snprintf(buf, sizeof buf, "%s", line);
	why[0] = 0;
	for (char *w = strtok(buf, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	for (size_t i = 0; i < sizeof cmd_of / sizeof *cmd_of; i++)
		if (!strcmp(argv[0], cmd_of[i].name))
			return opts_parse(o, &cmd_of[i], argc, argv, why, sizeof why);
	cr_assert_fail("no such command");
	return OPTS_BAD;
}

static void expect_bad_sessctl_opts(const char *line, const char *says)
{
	struct opts o;

	cr_expect_eq(parse(&o, line), OPTS_BAD, "%s", line);
	cr_expect(strstr(why, says), "%s: %s", line, why);
}

Test(sessctl_opts, defaults)
{
	struct opts o;

	cr_assert_eq(parse(&o, "connect tcp://h:1"), OPTS_OK);
	cr_expect_eq(o.cmd, C_CONNECT);
	cr_expect_eq(o.ird, OPTS_RD_UNSET);
	cr_expect_eq(o.ord, OPTS_RD_UNSET);
	cr_expect(o.crc == OPTS_UNSET && o.markers == OPTS_UNSET);
	cr_expect_not(o.p2p || o.plain || o.json || o.legacy_retry || o.force);
	cr_expect_eq(o.pd.len, 0);
	cr_expect_eq(o.timeout_ms, 0);
	cr_expect_eq(o.nargs, 1);
	cr_expect_str_eq(o.arg[0], "tcp://h:1");
}

Test(sessctl_opts, all_options_of_a_client)
{
	struct opts o;

	cr_assert_eq(parse(&o, "connect --ird 3 --ord=ulp --p2p --rtr read,send --crc off "
			       "--markers on --legacy-retry --json --timeout 1.5 tcp://h:1 "
			       "--private-data text"),
		     OPTS_OK, "%s", why);
	cr_expect_eq(o.ird, 3);
	cr_expect_eq(o.ord, DDPS_RD_ULP);
	cr_expect(o.p2p && o.legacy_retry && o.json);
	cr_expect(o.markers == OPTS_ON && o.crc == OPTS_OFF);
	cr_expect_eq(o.rtr, DDPS_RTR_READ | DDPS_RTR_SEND);
	cr_expect_eq(o.timeout_ms, 1500);
	cr_expect_eq(o.pd.len, 4);
	cr_expect_arr_eq(o.pd.b, "text", 4);
}

Test(sessctl_opts, options_of_listen_and_ping)
{
	struct opts o;

	cr_assert_eq(parse(&o, "listen --dir /d --max-size 3K --reject --count 2 "
			       "--rtr write tcp://:0"),
		     OPTS_OK, "%s", why);
	cr_expect_str_eq(o.dir, "/d");
	cr_expect_eq(o.max_size, 3072);
	cr_expect_eq(o.count, 2);
	cr_expect_eq(o.rtr, DDPS_RTR_WRITE);
	cr_expect(o.reject);
	cr_assert_eq(parse(&o, "ping --op read --size 1M --count 7 --interval 0.05 tcp://h:1"),
		     OPTS_OK, "%s", why);
	cr_expect_eq(o.op, PING_READ);
	cr_expect_eq(o.size, 1 << 20);
	cr_expect_eq(o.count, 7);
	cr_expect_eq(o.interval_ms, 50);
}

Test(sessctl_opts, options_of_perf)
{
	struct opts o;
	char many[200] = "perf --size 1";

	cr_assert_eq(parse(&o, "perf u"), OPTS_OK, "%s", why);
	cr_expect_eq(o.sizes.n, 4);
	cr_expect_eq(o.depth, 0);
	cr_assert_eq(parse(&o, "perf --op ping --size 1,4K,16M --seconds 0.1 --depth 128 "
			       "--plot f.svg u"),
		     OPTS_OK, "%s", why);
	cr_expect_eq(o.perf_op, PERF_PING);
	cr_assert_eq(o.sizes.n, 3);
	cr_expect_eq(o.sizes.v[0], 1);
	cr_expect_eq(o.sizes.v[1], 4096);
	cr_expect_eq(o.sizes.v[2], PING_MAX);
	cr_expect_eq(o.run_ms, 100);
	cr_expect_eq(o.depth, 128);
	cr_expect_str_eq(o.plot, "f.svg");
	cr_expect_eq(o.parallel, 1);
	cr_assert_eq(parse(&o, "perf --bidir --parallel 64 --rate 1M --interval 0.5 u"), OPTS_OK);
	cr_expect_eq(o.perf_op, PERF_BOTH);
	cr_expect_eq(o.parallel, 64);
	cr_expect_eq(o.rate, 1 << 20);
	cr_expect_eq(o.every_ms, 500);
	cr_assert_eq(parse(&o, "perf --reverse u"), OPTS_OK);
	cr_expect_eq(o.perf_op, PERF_READ);
	static const char *const bad[] = {
		"--bidir --reverse", "--bidir --op write", "--reverse --op ping",
		"--parallel 65",     "--parallel 0",	   "--rate 0",
		"--interval 0",	     "--size 0",	   "--size 16777217",
		"--size 1,",	     "--size ,1",	   "--size 1,,2",
		"--size 1,x",	     "--depth 0",	   "--depth 129",
		"--seconds 0",	     "--op atomic",	   "--count 3",
		"--size ="
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char line[80];

		snprintf(line, sizeof line, "perf %s u", bad[i]);
		cr_expect_eq(parse(&o, line), OPTS_BAD, "%s", line);
	}
	for (int i = 1; i < OPTVAL_SIZES_MAX; i++)
		strcat(many, ",1");
	strcat(many, " u");
	cr_expect_eq(parse(&o, many), OPTS_OK, "%s", why);
	cr_expect_eq(o.sizes.n, OPTVAL_SIZES_MAX);
	strcpy(many + strlen(many) - 2, ",1 u");
	cr_expect_eq(parse(&o, many), OPTS_BAD);
	cr_expect(strstr(why, "at most 32"), "%s", why);
}

Test(sessctl_opts, ird_and_ord_at_their_limits, .description = "6581-9.1-1")
{
	struct opts o;

	for (int v = 16381; v <= 16384; v++) {
		char line[80];

		snprintf(line, sizeof line, "connect --ird %d --ord %d tcp://h:1", v, v);
		cr_expect_eq(parse(&o, line), v <= DDPS_RD_MAX ? OPTS_OK : OPTS_BAD, "%d", v);
		if (v <= DDPS_RD_MAX)
			cr_expect_eq(o.ird, v);
	}
	expect_bad_sessctl_opts("connect --ird -1 tcp://h:1", "0 to 16382");
	expect_bad_sessctl_opts("connect --ird 1x tcp://h:1", "0 to 16382");
	expect_bad_sessctl_opts("connect --ord ULP tcp://h:1", "0 to 16382");
	expect_bad_sessctl_opts("connect --ord 99999999999999999999999 tcp://h:1", "0 to 16382");
}

/* @n octets of private data given as text. */
static enum opts_result with_pd(const char *head, size_t n)
{
	static char line[4096];
	struct opts o;
	size_t at = (size_t)snprintf(line, sizeof line, "%s --private-data ", head);

	memset(line + at, 'p', n);
	line[at + n] = 0;
	return parse(&o, line);
}

Test(sessctl_opts, private_data_limits, .description = "5044-7.1.1-8")
{
	cr_expect_eq(with_pd("connect tcp://h:1", 507), OPTS_OK);
	cr_expect_eq(with_pd("connect tcp://h:1", 508), OPTS_OK);
	cr_expect_eq(with_pd("connect tcp://h:1", 509), OPTS_BAD);
	cr_expect(strstr(why, "508") && strstr(why, "512 with --plain"));
	cr_expect_eq(with_pd("connect --plain tcp://h:1", 511), OPTS_OK);
	cr_expect_eq(with_pd("connect --plain tcp://h:1", 512), OPTS_OK);
	cr_expect_eq(with_pd("connect --plain tcp://h:1", 513), OPTS_BAD);
	cr_expect(strstr(why, "512"));
	cr_expect_eq(with_pd("listen tcp://:0", 508), OPTS_OK);
	cr_expect_eq(with_pd("listen tcp://:0", 509), OPTS_BAD);
}

Test(sessctl_opts, private_data_in_hexadecimal)
{
	char line[2048] = "connect --plain tcp://h:1 --private-data hex:";
	size_t at = strlen(line);
	struct opts o;

	cr_assert_eq(parse(&o, "connect --private-data hex:00ff10 tcp://h:1"), OPTS_OK);
	cr_expect_eq(o.pd.len, 3);
	cr_expect_arr_eq(o.pd.b, ((uint8_t[]){ 0, 0xff, 0x10 }), 3);
	cr_assert_eq(parse(&o, "connect --private-data hex: tcp://h:1"), OPTS_OK);
	cr_expect_eq(o.pd.len, 0);
	expect_bad_sessctl_opts("connect --private-data hex:0 tcp://h:1", "pairs");
	expect_bad_sessctl_opts("connect --private-data hex:0x00 tcp://h:1", "pairs");
	memset(line + at, 'a', 1024);
	cr_expect_eq(parse(&o, line), OPTS_OK);
	cr_expect_eq(o.pd.len, 512);
	memset(line + at, 'a', 1026);
	cr_expect_eq(parse(&o, line), OPTS_BAD);
	cr_expect(strstr(why, "512"));
}

Test(sessctl_opts, private_data_from_a_file)
{
	char path[] = "/tmp/sessctl-test-XXXXXX", line[100];
	uint8_t data[600];
	int fd = mkstemp(path);
	struct opts o;

	memset(data, 0, sizeof data);
	snprintf(line, sizeof line, "connect --plain --private-data @%s tcp://h:1", path);
	for (size_t n = 511; n <= 513; n++) {
		cr_assert_eq(pwrite(fd, data, n, 0), (ssize_t)n);
		cr_expect_eq(parse(&o, line), n <= 512 ? OPTS_OK : OPTS_BAD, "%zu", n);
		if (n <= 512)
			cr_expect_eq(o.pd.len, n);
	}
	close(fd);
	unlink(path);
	expect_bad_sessctl_opts(line, "No such file");
	expect_bad_sessctl_opts("connect --private-data @/ tcp://h:1", "private data file");
}

Test(sessctl_opts, numbers_sizes_and_seconds)
{
	static const struct {
		const char *line;
		enum opts_result res;
	} row[] = {
		{ "listen --count 0 u", OPTS_BAD },
		{ "listen --count 1 u", OPTS_OK },
		{ "listen --count 4294967295 u", OPTS_OK },
		{ "listen --count 4294967296 u", OPTS_BAD },
		{ "ping --size 16M u", OPTS_OK },
		{ "ping --size 16777217 u", OPTS_BAD },
		{ "ping --size 0 u", OPTS_OK },
		{ "ping --size 1KB u", OPTS_BAD },
		{ "ping --size K u", OPTS_BAD },
		{ "listen --max-size 9223372036854775807 u", OPTS_OK },
		{ "listen --max-size 9223372036854775808 u", OPTS_BAD },
		{ "listen --max-size 99999999T u", OPTS_BAD },
		{ "listen --max-size 18446744073709551616 u", OPTS_BAD },
		{ "ping --interval 0 u", OPTS_OK },
		{ "ping --interval 3600 u", OPTS_OK },
		{ "ping --interval 3600.001 u", OPTS_BAD },
		{ "connect --timeout 0 u", OPTS_BAD },
		{ "connect --timeout 0.001 u", OPTS_OK },
		{ "connect --timeout 0.0001 u", OPTS_BAD },
		{ "connect --timeout .5 u", OPTS_BAD },
		{ "connect --timeout 1. u", OPTS_BAD },
		{ "connect --timeout 1.5.5 u", OPTS_BAD },
		{ "connect --timeout 86400 u", OPTS_OK },
		{ "connect --timeout 86401 u", OPTS_BAD },
		{ "connect --timeout 1e3 u", OPTS_BAD },
		{ "connect --crc maybe u", OPTS_BAD },
		{ "connect --markers ON u", OPTS_BAD },
		{ "connect --crc on tls://h:1", OPTS_BAD },
		{ "connect --crc off tls://h:1", OPTS_OK },
		{ "connect --crc on shm://@n", OPTS_BAD },
		{ "connect --crc on sctp://h:1", OPTS_OK },
		{ "listen --quiet --stat 1 u", OPTS_BAD },
		{ "connect --p2p --rtr send, u", OPTS_BAD },
		{ "connect --p2p --rtr sendx u", OPTS_BAD },
		{ "ping --op atomic u", OPTS_BAD },
	};
	struct opts o;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		cr_expect_eq(parse(&o, row[i].line), row[i].res, "%s: %s", row[i].line, why);
		cr_expect_eq(why[0] != 0, row[i].res == OPTS_BAD, "%s", row[i].line);
	}
}

Test(sessctl_opts, says_what_is_wrong)
{
	expect_bad_sessctl_opts("connect", "missing arguments");
	expect_bad_sessctl_opts("connect a b", "too many arguments");
	expect_bad_sessctl_opts("connect --frobnicate u", "--frobnicate");
	expect_bad_sessctl_opts("connect -x u", "-x");
	expect_bad_sessctl_opts("connect --dir d u", "belongs to another command");
	expect_bad_sessctl_opts("connect u --ird", "needs a value");
	expect_bad_sessctl_opts("connect --json=1 u", "takes no value");
	expect_bad_sessctl_opts("connect --count 1 u", "belongs to another command");
	expect_bad_sessctl_opts("connect --rtr send u", "--p2p");
	expect_bad_sessctl_opts("connect --plain --p2p u", "--p2p");
	expect_bad_sessctl_opts("connect --plain --legacy-retry u", "--legacy-retry");
}

Test(sessctl_opts, help_and_version_win)
{
	struct opts o;

	cr_expect_eq(parse(&o, "put --help"), OPTS_HELP);
	cr_expect_eq(parse(&o, "put -h"), OPTS_HELP);
	cr_expect_eq(parse(&o, "get --version"), OPTS_VERSION);
	cr_expect_eq(parse(&o, "get -V"), OPTS_VERSION);
}

Test(sessctl_opts, help_names_exactly_the_commands_options)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	opts_help(f, &cmd_of[4]);
	fclose(f);
	cr_expect(strstr(text, "Usage: sessctl ping [options] URI"));
	cr_expect(strstr(text, "--op send|write|read"));
	cr_expect(strstr(text, "--private-data"));
	cr_expect_not(strstr(text, "--dir"));
	cr_expect_not(strstr(text, "--force"));
	free(text);
}
