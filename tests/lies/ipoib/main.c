/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is a node of IPoIB that does wrong found out?  Cases of the suite run against our own node, and between
 * the two is a liar: packets are not what the target said, or it does not get what it was given.  The
 * case has to fail, or to leave what it cannot judge, and say why in the words that are due.  Prints "ok"
 * and "not ok" lines.
 * usage: lies-ipoib [CASES]	CASES: a pattern
 */
#include "lies/ipoib/world.h"
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

static const char *pattern = "*";
static bool bad;

struct heard {
	unsigned n, failed, skipped, undecided;
	enum ddps_conform_verdict verdict;
	char name[80], why[1000];
};

static bool may_lie_go_on(void *user)
{
	(void)user;
	liar_case(true);
	return true;
}

static void take_lie_result(void *user, const struct ddps_conform_result *r)
{
	struct heard *h = user;

	liar_case(false);
	h->n++;
	h->failed += r->verdict == DDPS_CONFORM_FAIL;
	h->skipped += r->verdict == DDPS_CONFORM_SKIP;
	h->undecided += r->verdict == DDPS_CONFORM_UNDECIDED;
	if (h->failed && r->verdict != DDPS_CONFORM_FAIL)
		return; /* the latest failure counts */
	h->verdict = r->verdict;
	snprintf(h->name, sizeof h->name, "%s", r->c.name);
	snprintf(h->why, sizeof h->why, "%s", r->why);
}

static int run_ipoib_liar(const struct row *r, struct heard *h)
{
	struct ddps_conform_calls calls = { sizeof calls, h, may_lie_go_on, take_lie_result };
	struct ddps_conform_sum sum;

	*h = (struct heard){ 0 };
	world_begin(r->mode, liar_hears);
	liar_begin(r);
	nodes_begin(r->mode);
	world.o.pattern = r->name;
	return ddps_conform_ipoib_run(&world.o, &calls, &sum, h->why, sizeof h->why);
}

static int get_lie_due(enum ddps_conform_verdict v)
{
	return v == DDPS_CONFORM_FAIL ? FAILS : v == DDPS_CONFORM_PASS ? PASSES : SKIPS;
}

/* Return: whether it was as it should be. */
static bool is_lie_found(const struct row *r)
{
	static const char *const words[] = { "", "pass", "fail", "skip", "refuse" };
	struct heard h;
	int err = run_ipoib_liar(r, &h);
	bool good;

	if (r->due == REFUSED)
		good = err && !h.n;
	else
		good = !err && h.n == 1 && get_lie_due(h.verdict) == r->due;
	good = good && strstr(h.why, r->why) && !world.sockets;
	if (!good)
		printf("not ok lies-ipoib: %s has to %s: '%s'; %s: '%s'%s\n", r->name,
		       words[r->due], r->why,
		       err	  ? "it is refused"
		       : h.n != 1 ? "not one case"
				  : words[get_lie_due(h.verdict)],
		       h.why, world.sockets ? ", and sockets stay open" : "");
	world_end();
	return good;
}

static void check_ipoib_liar_table(const char *name, struct row const *rows)
{
	unsigned good = 0, all = 0, number = 0;

	for (const struct row *at = rows; at->name; at++) {
		struct row r = *at;

		r.number = number++;
		if (fnmatch(pattern, r.name, 0))
			continue;
		all++;
		good += is_lie_found(&r);
		fflush(stdout);
	}
	bad |= good != all;
	printf("%s lies-ipoib about %s: %u of %u are found out\n", good == all ? "ok" : "not ok",
	       name, good, all);
}

static void ignore_lie_call(unsigned row, struct said *s)
{
	(void)row, (void)s;
}

/* Nobody lies: no case fails, and so many cannot be run. */
static void truth(const char *name, unsigned mode, unsigned skips)
{
	const struct row r = { .mode = mode, .name = pattern, .act = ignore_lie_call };
	struct heard h;
	int err = run_ipoib_liar(&r, &h);
	bool all = !strcmp(pattern, "*");
	bool good = !err && !h.failed && (!all || (h.n > 100 && h.skipped == skips));

	world_end();
	bad |= !good;
	printf("%s lies-ipoib: the truth %s: %u cases, %u are skipped, %u fail%s%s: %s\n",
	       good ? "ok" : "not ok", name, h.n, h.skipped, h.failed, good ? "" : ", ",
	       good ? "" : h.name, good ? "" : h.why);
}

/* Nobody lies, and the suite's own host runs it late: no verdict is a wrong one. */
static void expect_late_verdict(unsigned stop_each, unsigned stop_ms)
{
	const struct row r = { .mode = FOR_LONG, .name = pattern, .act = ignore_lie_call };
	struct ddps_conform_calls calls = { sizeof calls, NULL, may_lie_go_on, take_lie_result };
	struct heard h = { 0 };
	bool all = !strcmp(pattern, "*"), good;
	int err;

	calls.user = &h;
	world_begin(r.mode, liar_hears);
	liar_begin(&r);
	nodes_begin(r.mode);
	world.o.pattern = pattern;
	world.stop_each = stop_each;
	world.stop_ms = stop_ms;
	err = ddps_conform_ipoib_run(&world.o, &calls, NULL, h.why, sizeof h.why);
	good = !err && !h.failed && (!all || (h.n > 100 && h.undecided && h.undecided < h.n / 2));
	world_end();
	bad |= !good;
	printf("%s lies-ipoib: contact 31: the truth, stopped for %u ms in each wait of %u: %u "
	       "cases, "
	       "%u are undecided, %u fail%s%s: %s\n",
	       good ? "ok" : "not ok", stop_ms, stop_each, h.n, h.undecided, h.failed,
	       good ? "" : ", ", good ? "" : h.name, h.why);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		pattern = argv[1];
	truth("to an administration", FOR_LONG, 0);
	truth("to its client", FOR_LONG | AS_CLIENT, 11);
	truth("by a port", FOR_LONG | BY_PORT, 39);
	expect_late_verdict(1, 1600);
	expect_late_verdict(2, 400);
	expect_late_verdict(3, 6400);
	expect_late_verdict(5, 25600);
	check_ipoib_liar_table("the link and address resolution", lies_links);
	check_ipoib_liar_table("asking the target", lies_passive);
	check_ipoib_liar_table("the target asking", lies_active);
	check_ipoib_liar_table("data", lies_data);
	check_ipoib_liar_table("packets", lies_packets);
	check_ipoib_liar_table("a port of a fabric", lies_port);
	return bad;
}
