/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is a peer that does wrong found out?  Every case of the suite runs against our own stack, and between the
 * two is a liar: the n-th segment, frame, chunk, packet, completion or event is not what the target
 * said, its memory is not as it left it, a call of the library's or of the system's fails.  The case has to
 * fail then, and say why; what does little (a call interrupted) must not matter.  Prints "ok" and
 * "not ok" lines.
 * A part of the lies is tried on a part of the cases, all of them with --all.
 * usage: lies [--all] [tcp|sctp|shm [CASES]]	CASES: a pattern
 */
#include "conform/run.h"
#include "lies/lies.h"
#include <dirent.h>
#include <fnmatch.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAYS	  40u
#define LIMIT_MS  60u	 /* a lie is often one of silence */
#define LONG_MS	  10000u /* of what must pass */
#define CALLS_MAX 30u
#define CASES_MAX 1000u

#define SHM    4u /* a wire, next to CF_TCP and CF_SCTP: its cases are those of TCP */
#define ALL    (CF_BOTH | SHM)
#define OCTETS (CF_TCP | SHM)

static const char *pattern = "*";
static unsigned stride = 3; /* of cases that hear a lie */
static bool bad;
static bool patient; /* what the target says comes, however long it takes */

struct count {
	unsigned told, caught;
	char missed[160]; /* the latest one */
};

static const char *wire_name(unsigned wire)
{
	return wire == CF_TCP ? "tcp" : wire == SHM ? "shm" : "sctp";
}

static unsigned count_liar_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* What threads of the library close is closed a while later. */
static bool is_any_left_open(unsigned before)
{
	for (unsigned i = 0; i < LONG_MS && count_liar_descriptors() != before; i++)
		poll(NULL, 0, 1);
	return count_liar_descriptors() != before;
}

static void find_unnoticed_lie(unsigned wire, const struct cf_case *c, unsigned n, const char *why)
{
	printf("not ok lies: %s over %s, number %u: %s: %s\n", c->name, wire_name(wire), n,
	       lie_text(), why);
	bad = true;
}

static struct cf_run get_lied_run(unsigned wire)
{
	return (struct cf_run){ .wire = wire == SHM ? CF_TCP : wire,
				.shared = wire == SHM,
				.self = true };
}

/* It is asked for, and is one of this wire's. */
static bool is_lied_to(unsigned wire, const struct cf_case *c)
{
	const struct cf_run run = get_lied_run(wire);
	const char *why;

	return !fnmatch(pattern, c->name, 0) && cf_case_fits(c, &run, &why);
}

/* One run of a case.  Return: whether the lie was reported. */
static bool play_lie(unsigned wire, const struct cf_case *c, enum lie_kind kind, unsigned way,
		     unsigned n, struct cf_result *res)
{
	struct cf_run run = get_lied_run(wire);
	unsigned before = count_liar_descriptors();
	bool told;

	run.target = c->target;
	run.limit_ms = kind == LIE_SLOW || patient ? LONG_MS : LIMIT_MS;
	lie_begin(kind, way, n);
	cf_run_case(&run, c, res);
	told = lie_end();
	cf_trace_free(res->trace);
	if (is_any_left_open(before))
		find_unnoticed_lie(wire, c, n, "a descriptor stays open");
	if (res->verdict == DDPS_CONFORM_FAIL && !res->why[0])
		find_unnoticed_lie(wire, c, n, "it fails and does not say why");
	return told;
}

/* ---- what a peer says ---- */

/* Of which ways of a kind every lie is caught; the others do not matter to every case. */
static const struct kind {
	const char *name;
	enum lie_kind kind;
	unsigned wires;
	uint64_t always;
} kinds[] = {
	{ "segments", LIE_SEGMENT, ALL, 1u << 7 | 1u << 8 | 1u << 13 },
	{ "MPA frames", LIE_MPA, OCTETS, 0 },
	{ "session chunks", LIE_CHUNK, CF_SCTP, 1u << 0 | 1u << 8 },
	{ "completions", LIE_WC, ALL, 1u << 0 },
	{ "events", LIE_EVENT, ALL, 1u << 0 },
	{ "shared memory", LIE_SHARED, SHM, (UINT64_C(1) << LIE_SHARED_WAYS) - 1 },
	{ "memory", LIE_MEMORY, ALL, 0 },
};

/* Return: whether there is anything to lie about. */
static bool lie_to(unsigned wire, const struct kind *k, const struct cf_case *c, unsigned way,
		   struct count *sum)
{
	for (unsigned n = 1; n <= 2; n++) {
		struct cf_result res;

		if (!play_lie(wire, c, k->kind, way, n, &res))
			return n > 1;
		sum->told++;
		if (res.verdict == DDPS_CONFORM_FAIL)
			sum->caught++;
		else
			snprintf(sum->missed, sizeof sum->missed, "%s, number %u: %s", c->name, n,
				 lie_text());
	}
	return true;
}

/* Those of a peer made of packets, and those with a relay, see little of these. */
static bool speaks(const struct cf_case *c)
{
	return strncmp(c->name, "assoc-", 6) != 0 && strncmp(c->name, "relay-", 6) != 0;
}

static void make_liar_of_kind(unsigned wire, const struct kind *k)
{
	static bool deaf[CASES_MAX];
	const struct cf_case *c;

	memset(deaf, 0, sizeof deaf);
	for (unsigned way = 0; way < lie_ways(k->kind); way++) {
		struct count sum = { 0 };
		bool good;

		for (size_t i = 0; (c = cf_case_at(i, NULL)); i++)
			if (is_lied_to(wire, c) && speaks(c) && (i + way) % stride == 0 && !deaf[i])
				deaf[i] = !lie_to(wire, k, c, way, &sum);
		good = !(k->always >> way & 1) || sum.caught == sum.told;
		bad |= !good;
		printf("%s lies about %s over %s, way %u: %u of %u are caught%s%s\n",
		       good ? "ok" : "not ok", k->name, wire_name(wire), way, sum.caught, sum.told,
		       good ? "" : ", not in ", good ? "" : sum.missed);
		fflush(stdout);
	}
}

/* ---- in its words ---- */

static const struct {
	const char *name;
	unsigned wire;
	enum lie_kind kind;
	unsigned way;
	const char *why;
} said[] = {
	{ "mpa-request-plain", CF_TCP, LIE_SEGMENT, 0,
	  "expected a Read Response to a zero-length Read" },
	{ "mpa-request-plain", CF_TCP, LIE_SEGMENT, 1,
	  "wrong answer to a zero-length Read: 81 42" },
	{ "mpa-request-plain", CF_TCP, LIE_SEGMENT, 2, "untagged segment of 14 octets" },
	{ "mpa-request-plain", CF_TCP, LIE_SEGMENT, 4, "the answer to another Read" },
	{ "mpa-request-plain", CF_TCP, LIE_SEGMENT, 7, "DDP control octet c5" },
	{ "mpa-request-plain", CF_TCP, LIE_SEGMENT, 8, "RDMAP control octet c2" },
	{ "mpa-request-plain", CF_TCP, LIE_SEGMENT, 9, "segment of 13 octets" },
	{ "mpa-request-plain", CF_TCP, LIE_MPA, 0, "wrong key" },
	{ "mpa-request-plain", CF_TCP, LIE_MPA, 3, "the target rejected the request" },
	{ "mpa-request-plain", CF_TCP, LIE_MPA, 5, "reserved bits in the Reply: flags 41" },
	{ "mpa-request-plain", CF_TCP, LIE_MPA, 6, "Reply with Rev 2 to Rev 1" },
	{ "mpa-request-plain", CF_TCP, LIE_MPA, 9, "private data of 1024 octets" },
	{ "mpa-i-request", CF_TCP, LIE_MPA, 3, "R in a Request" },
	{ "mpa-crc-off-data", CF_TCP, LIE_MPA, 2, "CRC 00000000 instead of" },
	{ "mpa-i-first-fpdu-crc", CF_TCP, LIE_SEGMENT, 3,
	  "Terminate with Invalidate STag 00000001" },
	{ "mpa-i-first-fpdu-crc", CF_TCP, LIE_SEGMENT, 4, "Terminate on queue 3, MSN 1, MO 0" },
	{ "mpa-i-first-fpdu-crc", CF_TCP, LIE_SEGMENT, 9, "Terminate of 21 octets" },
	{ "mpa-i-first-fpdu-crc", CF_TCP, LIE_SEGMENT, 11, "reserved bits in a Terminate" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 0, "message: 64 64 70 73 65 73 73 0b 00" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 1, "message: 64 64 70 73 65 73 73 0a 00 00 00 03" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 2,
	  "message: 64 64 70 73 65 73 73 0a 00 00 00 02 00 05" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 3, "first message is not of 16 octets" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 4, "passes no memory" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 5, "passes no memory of 266240 octets" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 6, "is not allocated whole" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 7, "is not sealed: 0x" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 8, "there are 262145 octets in a ring" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 9, "writing index" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 10, "writing index" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 11, "the target says 3 where it is" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 12, "the target says 65538 where it is" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 13, "has woken sleeps 4294967295 and 0" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 14, "has woken sleeps 0 and 4294967295" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 15, "reading index is not possible" },
	{ "mpa-request-plain", SHM, LIE_SHARED, 16, "reading index goes back by 1" },
	{ "mpa-i-request", SHM, LIE_SHARED, 6, "is not allocated whole" },
	{ "neg-enhanced", CF_SCTP, LIE_CHUNK, 0, "expected a control chunk, got PPID 16" },
	{ "neg-enhanced", CF_SCTP, LIE_CHUNK, 1, "an ordered control chunk" },
	{ "neg-enhanced", CF_SCTP, LIE_CHUNK, 2, "expected an Accept, got function code 7" },
	{ "neg-enhanced", CF_SCTP, LIE_CHUNK, 6, "Accept on stream 0, SSN 1" },
	{ "neg-enhanced", CF_SCTP, LIE_CHUNK, 8, "control chunk of 3 octets" },
	{ "neg-need-ord", CF_SCTP, LIE_CHUNK, 12, "instead of the 32 that are needed" },
	{ "sctp-initiate-513", CF_SCTP, LIE_CHUNK, 9, "a session Terminate with private data" },
};

static const struct cf_case *case_of(const char *name)
{
	const struct cf_case *c;

	for (size_t i = 0; (c = cf_case_at(i, NULL)); i++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

static void words(unsigned wire)
{
	unsigned good = 0, all = 0;

	for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
		const struct cf_case *c = case_of(said[i].name);
		struct cf_result res;

		if (said[i].wire != wire || fnmatch(pattern, said[i].name, 0))
			continue;
		all++;
		patient = true;
		if (c && play_lie(wire, c, said[i].kind, said[i].way, 1, &res) &&
		    res.verdict == DDPS_CONFORM_FAIL && strstr(res.why, said[i].why))
			good++;
		else
			printf("not ok lies: %s over %s, %s: wanted '%s', got '%s'\n", said[i].name,
			       wire_name(wire), lie_text(), said[i].why,
			       c ? res.why : "no such case");
		patient = false;
	}
	bad |= good != all;
	printf("%s lies are named over %s: %u of %u\n", good == all ? "ok" : "not ok",
	       wire_name(wire), good, all);
}

/* ---- packets ---- */

/* A lost or spoiled packet comes again: many of these do no harm.  Each case hears a few of them. */
static void send_liar_packets(void)
{
	struct count sum = { 0 };
	const struct cf_case *c;
	struct cf_result res;

	for (size_t i = 0; (c = cf_case_at(i, NULL)); i++)
		for (unsigned way = (unsigned)i % (4 * stride); way < lie_ways(LIE_PACKET);
		     way += 4 * stride) {
			if (strncmp(c->name, "assoc-", 6) != 0 || fnmatch(pattern, c->name, 0) ||
			    !play_lie(CF_SCTP, c, LIE_PACKET, way, 1 + (unsigned)(i + way) / 4 % 4,
				      &res))
				continue;
			sum.told++;
			sum.caught += res.verdict == DDPS_CONFORM_FAIL;
		}
	bad |= sum.caught * 2 < sum.told;
	printf("%s lies about packets: %u of %u are caught\n",
	       sum.caught * 2 < sum.told ? "not ok" : "ok", sum.caught, sum.told);
}

/* ---- calls that fail ---- */

static const struct {
	const char *name;
	unsigned wires;
} called[] = {
	{ "mpa-request-pd-512", OCTETS },
	{ "mpa-initiator-*-pd", OCTETS },
	{ "relay-cut", CF_TCP },
	{ "relay-lossy", CF_SCTP },
	{ "assoc-restart-addresses", CF_SCTP },
	{ "assoc-i-crossing*", CF_SCTP },
	{ "assoc-other-socket", CF_SCTP },
	{ "ddp-write-zero", ALL },
	{ "ddp-initiator-queue-4", ALL },
	{ "rdmap-source-*", ALL },
	{ "sctp-initiator-*", CF_SCTP },
	{ "sctp-sends*", CF_SCTP },
	{ "neg-need-ord*", ALL },
	{ "mpa-emss*", CF_TCP },
	{ "assoc-i-init", CF_SCTP },
	{ "mpa-mulpdu*", OCTETS },
	{ "mpa-marker-tx-*", OCTETS },
	{ "sctp-*size*", CF_SCTP },
};

static bool is_called(unsigned wire, const struct cf_case *c)
{
	for (size_t i = 0; i < sizeof called / sizeof *called; i++)
		if (called[i].wires & wire && !fnmatch(called[i].name, c->name, 0))
			return is_lied_to(wire, c);
	return false;
}

/* The n-th of them, for the first of them: the case fails and says so, or does without. */
static void make_liar_fail(unsigned wire, const char *name, enum lie_kind kind, unsigned way)
{
	struct count sum = { 0 };
	const struct cf_case *c;
	struct cf_result res;

	for (size_t i = 0; (c = cf_case_at(i, NULL)); i++)
		for (unsigned n = 1; is_called(wire, c) && n < CALLS_MAX; n++) {
			if (!play_lie(wire, c, kind, way, n, &res))
				break;
			sum.told++;
			sum.caught += res.verdict == DDPS_CONFORM_FAIL;
			if (kind == LIE_SLOW && res.verdict == DDPS_CONFORM_FAIL)
				find_unnoticed_lie(wire, c, n, res.why);
		}
	printf("ok %s over %s, way %u: %u of %u are told of\n", name, wire_name(wire), way,
	       sum.caught, sum.told);
	fflush(stdout);
}

static void end_of_lie(unsigned wire)
{
	words(wire);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (kinds[i].wires & wire)
			make_liar_of_kind(wire, &kinds[i]);
	if (wire == CF_SCTP)
		send_liar_packets();
	make_liar_fail(wire, "calls of the library's that fail", LIE_CALL, 0);
	for (unsigned way = 0; way < lie_ways(LIE_INFO); way++)
		make_liar_fail(wire, "what a session is said to be", LIE_INFO, way);
	make_liar_fail(wire, "calls of the system's that fail", LIE_FAILS, 0);
	for (unsigned way = 0; way < lie_ways(LIE_SLOW); way++)
		make_liar_fail(wire, "calls that do little", LIE_SLOW, way);
	make_liar_fail(wire, "allocations that fail", LIE_NO_MEMORY, 0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--all")) {
		stride = 1;
		argv++;
		argc--;
	}
	if (argc > 2)
		pattern = argv[2];
	for (unsigned wire = CF_TCP; wire <= SHM; wire *= 2)
		if (argc < 2 || !strcmp(argv[1], wire_name(wire)))
			end_of_lie(wire);
	return bad;
}
