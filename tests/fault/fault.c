/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything fails once, everywhere.  Each scenario is played again and again in a simulated kernel:
 * the n-th allocation fails, for n = 1, 2, ... until it passes without; the same with all from the
 * n-th on, for five minutes; the n-th system call, in each way in which the system lets that call
 * fail; and from the n-th on each call that needs memory or a descriptor, for a second.  Whatever fails is reported within the time that timers give, or does no harm; no memory is left,
 * no descriptor.
 * Prints "ok" and "not ok" lines.
 * usage: fault [SCENARIO tcp|sctp|kernel|tls|sctps|shm|near allocation|allocations|call|shortage N [WAY]]	this alone; WAY: from 0
 */
#include "fault/fault.h"
#include "sim/kern.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define N_MAX 20000u
/* ns: five minutes.  Who has no memory to ask whether its peer is there waits until it has. */
#define MEMORY_BACK UINT64_C(300000000000)
#define SHORTAGE_NS UINT64_C(1000000000)
#define PATIENCE    20 /* seconds of CPU that a scenario may take */

enum what { ALLOCATION, ALLOCATIONS, CALL, SHORTAGE };

static const char *const what_name[] = { "allocation", "allocations", "call", "shortage" };
static const struct wire {
	const char *name, *uri;
	bool near; /* both ends would rather have shared memory */
} wires[] = { { "tcp", "tcp://10.0.0.1:0", false },
	      { "sctp", "sctp://10.0.0.1:0?backend=native&encap=9899", false },
	      { "kernel", "sctp://10.0.0.1:0?backend=kernel&encap=9899", false },
	      { "tls", "tls://10.0.0.1:0", false },
	      { "sctps", "sctps://10.0.0.1:0", false },
	      { "shm", "shm:///sim/0", false },
	      { "near", "tcp://10.0.0.1:0", true } };

#define NWIRES (sizeof wires / sizeof *wires)

static uint8_t src[FAULT_BIG], dst[FAULT_BIG];

struct point { /* where it fails */
	enum what what;
	uint64_t n;
	unsigned way;
};

static char where[200];
static bool good;

static void hangs(int sig)
{
	(void)!write(1, where, strlen(where));
	_exit(sig);
}

struct count {
	unsigned runs, survived, codes;
	uint64_t points;
	bool good;
};

static const char *find_scenario_fault(int err, bool met, unsigned open, uint64_t before)
{
	if (err == SILENT)
		return "it was not told, or told wrong";
	if (!met && err)
		return "an error without a cause";
	if (open)
		return "a descriptor stays open";
	return kern.live != before ? "memory is left" : NULL;
}

/* Whether there was such a point. */
static bool play_one_point(const struct wire *wire, const struct fault_scenario *s, struct point at,
			   struct count *c)
{
	struct fault_world w = {
		.wire = wire->uri,
		.tcp = *wire->uri == 't' || !strcmp(wire->name, "shm"),
		.near = wire->near,
		.src = src,
		.dst = dst,
	};
	const struct itimerval patience = { .it_value.tv_sec = PATIENCE };
	uint64_t before = kern.live;
	const char *why;
	unsigned open;
	bool met, of_calls = at.what >= CALL;
	int err;

	snprintf(where, sizeof where, "not ok fault: %s over %s, %s %llu %u: does not end\n",
		 s->name, wire->name, what_name[at.what], (unsigned long long)at.n, at.way);
	setitimer(ITIMER_VIRTUAL, &patience, NULL);
	memset(dst, 0, sizeof dst);
	kern_start(1);
	kern.mtu = 65535;
	kern.sctp = true;
	kern.sctp_udp = 9899;
	kern.window = 4 * FAULT_BIG;
	kern.fail_allocation = of_calls ? 0 : at.n;
	kern.fail_on = at.what == ALLOCATIONS;
	kern.fail_until = kern.now + MEMORY_BACK;
	kern.fail_call = of_calls ? at.n : 0;
	kern.shortage = at.what == SHORTAGE ? SHORTAGE_NS : 0;
	kern.fail_way = at.way;
	err = fault_play(&w, s);
	met = (of_calls ? kern.calls : kern.allocations) >= at.n;
	open = kern_stop();
	why = find_scenario_fault(err, met, open, before);
	if (why) {
		printf("not ok fault: %s over %s, %s %llu %u", s->name, wire->name,
		       what_name[at.what], (unsigned long long)at.n, at.way);
		if (of_calls && met)
			printf(" (%s: %s)", kern.failed,
			       kern.how > 0 ? strerror(kern.how) : "does little");
		printf(": %s (%s: %s)\n", why, ddps_strerror(err), w.text);
		c->good = false;
	}
	kern.live = before; /* it is reported once */
	c->runs += met;
	c->survived += met && !err;
	c->codes |= w.codes;
	return met;
}

static void play_all_points(const struct wire *wire, const struct fault_scenario *s, enum what what)
{
	struct count c = { .good = true };
	struct point at = { .what = what };
	bool there = true;

	for (at.n = 1; there && at.n < N_MAX; at.n++) {
		at.way = 0;
		kern.ways = 1;
		there = play_one_point(wire, s, at, &c);
		while (there && what == CALL && ++at.way < kern.ways)
			play_one_point(wire, s, at, &c);
	}
	if (there) {
		printf("not ok fault: %s does not end\n", s->name);
		c.good = false;
	}
	/* No memory for the private data, for the inbound queue, but for a Terminate [6581-9.3-1]. */
	if (what == ALLOCATION && !strcmp(s->name, "transfer") && (c.codes & 0x60) != 0x60) {
		printf("not ok fault: Terminates 2/0 with codes %02x\n", c.codes);
		c.good = false;
	}
	printf("%s %s over %s, %s 1 to %llu failing, %u runs: told, or without harm (%u)\n",
	       c.good ? "ok" : "not ok", s->name, wire->name, what_name[what],
	       (unsigned long long)at.n - 2, c.runs, c.survived);
	good &= c.good;
	fflush(stdout);
}

/* What the simulated kernel keeps. */
static void warm_up(void)
{
	for (unsigned s = 0; s < fault_nscenarios; s++) {
		struct fault_world w = { .wire = wires[1].uri, .src = src, .dst = dst };

		kern_start(1);
		fault_play(&w, &fault_scenarios[s]);
		kern_stop();
	}
}

/* fault SCENARIO tcp|sctp|kernel|tls|sctps|shm|near WHAT N [WAY] */
static int play_point_again(char **argv, int argc)
{
	struct count c = { .good = true };
	struct point at = { .n = strtoull(argv[4], NULL, 10),
			    .way = argc > 5 ? (unsigned)atoi(argv[5]) : 0 };
	size_t wire = 0;

	for (unsigned s = 0; s < fault_nscenarios; s++) {
		if (strcmp(argv[1], fault_scenarios[s].name))
			continue;
		while (at.what < SHORTAGE && strcmp(argv[3], what_name[at.what]))
			at.what++;
		while (wire < NWIRES - 1 && strcmp(argv[2], wires[wire].name))
			wire++;
		play_one_point(&wires[wire], &fault_scenarios[s], at, &c);
		return !c.good;
	}
	return 2;
}

int main(int argc, char **argv)
{
	signal(SIGVTALRM, hangs);
	for (uint32_t i = 0; i < FAULT_BIG; i++)
		src[i] = (uint8_t)(i * 2654435761u >> 24);
	warm_up();
	if (argc > 4)
		return play_point_again(argv, argc);
	good = true;
	for (unsigned s = 0; s < fault_nscenarios; s++)
		for (unsigned w = 0; w < NWIRES; w++)
			for (unsigned k = ALLOCATION; k <= SHORTAGE; k++)
				play_all_points(&wires[w], &fault_scenarios[s], k);
	return !good;
}
