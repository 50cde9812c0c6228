/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The conformance suite inside a test program: every case that suits the responder at a URI, or
 * with "tcp" or "sctp" this library's own stack.  The last octets of what failed are shown.
 *
 * cc conform.c $(pkg-config --cflags --libs libddpsess-conform)
 */
#include <ddpsess/conform.h>
#include <string.h>

static void print_result(void *user, const struct ddps_conform_result *r)
{
	(void)user;
	if (r->verdict != DDPS_CONFORM_FAIL)
		return;
	printf("%s: %s\n  %s [%s]\n", r->c.name, r->c.rule, r->why, r->c.ids);
	ddps_conform_print(stdout, r, 4, "  ");
}

int main(int argc, char **argv)
{
	const struct ddps_conform_calls calls = { .struct_size = sizeof(calls),
						  .result = print_result };
	const char *target = argc > 1 ? argv[1] : "tcp";
	struct ddps_conform_options o;
	struct ddps_conform_sum sum;
	char why[300];

	ddps_conform_options_init(&o);
	o.pattern = argc > 2 ? argv[2] : NULL;
	if (strstr(target, "://")) {
		o.uri = target;
		o.wire = 0;
	} else if (!strcmp(target, "sctp")) {
		o.wire = DDPS_CONFORM_SCTP;
	}
	if (ddps_conform_run(&o, &calls, &sum, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		return 2;
	}
	printf("%u cases passed, %u failed, %u were not for this target\n", sum.pass, sum.fail,
	       sum.skip);
	return sum.fail ? 1 : 0;
}
