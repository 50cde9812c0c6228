/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that its owner writes all the time, while peers read it and while it is sent. */
#include "support/e2e.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LEN    (1u << 20)
#define OCTETS (8u << 20) /* of each size and operation, but at most */
#define TIMES  200	  /* so often */

struct owner {
	uint64_t *words;
	atomic_bool stop;
	pthread_t thread;
};

/* No order between it and what the library reads is wanted: the sanitizer need not ask for one. */
__attribute__((no_sanitize("thread"))) static void *write_on(void *arg)
{
	struct owner *o = arg;

	for (uint64_t n = 1; !atomic_load_explicit(&o->stop, memory_order_relaxed); n++)
		for (size_t i = 0; i < LEN / sizeof *o->words; i++)
			((volatile uint64_t *)o->words)[i] = n;
	return NULL;
}

/* Reads by the initiator of the responder's memory, or Writes from its own. */
static void operations(struct e2e *e, enum ddps_op op, size_t size, uint8_t *changing,
		       struct ddps_mr *changing_mr, uint8_t *still, struct ddps_mr *still_mr)
{
	bool reads = op == DDPS_OP_READ;
	uint32_t stag = ddps_mr_stag(reads ? changing_mr : still_mr);
	uint64_t to = ddps_mr_to(reads ? changing_mr : still_mr);
	unsigned n = OCTETS / size < TIMES ? (unsigned)(OCTETS / size) : TIMES;

	for (unsigned i = 0; i < n; i++) {
		struct ddps_wc wc;

		cr_assert_eq(e2e_post(&e->a, op, reads ? still : changing, size,
				      reads ? still_mr : changing_mr, stag, to),
			     0);
		wc = e2e_wc(e);
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS, "%s of %zu octets, the %uth: %s",
			     ddps_op_name(op), size, i, ddps_wc_status_name(wc.status));
	}
}

static void every_size(const char *wire, bool markers)
{
	struct owner o = { .words = aligned_alloc(64, LEN) };
	uint8_t *still = calloc(1, LEN);
	struct ddps_mr *changing_mr, *still_mr;
	struct e2e e;

	cr_assert(o.words && still);
	memset(o.words, 0, LEN);
	e2e_open(&e, wire);
	e.connect.markers = e.accept.markers = markers;
	e2e_connect(&e);
	cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	changing_mr = e2e_reg(&e, o.words, LEN, DDPS_REMOTE_READ);
	still_mr = e2e_reg(&e, still, LEN, DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE);
	cr_assert_eq(pthread_create(&o.thread, NULL, write_on, &o), 0);
	for (size_t size = 64; size <= LEN; size *= 4) {
		operations(&e, DDPS_OP_READ, size, (uint8_t *)o.words, changing_mr, still,
			   still_mr);
		operations(&e, DDPS_OP_WRITE, size, (uint8_t *)o.words, changing_mr, still,
			   still_mr);
	}
	e2e_disconnect(&e, &e.a);
	atomic_store(&o.stop, true);
	pthread_join(o.thread, NULL);
	e2e_close(&e);
	free(o.words);
	free(still);
}

E2E_WIRES(changing, attack_12a_memory_that_changes_while_it_is_sent_ends_no_session)
{
	every_size(wire, false);
	if (!strncmp(wire, "tcp", 3))
		every_size(wire, true);
}
