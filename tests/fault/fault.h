/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FAULT_H
#define FAULT_H
/* Both ends of sessions in one context, in a simulated kernel: scenario.c; what fails: fault.c. */
#include <ddpsess/ddpsess.h>

#define SILENT 1 /* nobody was told, or something wrong: no code of the library */

#define FAULT_BIG 300000u
#define FAULT_EPS 4u

struct fault_world {
	const char *wire; /* a URI to listen at */
	bool tcp;
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_listener *listener;
	struct ddps_ep *a[FAULT_EPS], *b[FAULT_EPS]; /* initiators, responders */
	struct ddps_request *req;
	unsigned neps, accepted;
	unsigned up, down; /* endpoints established, and at their end */
	unsigned posted;   /* requests without a completion yet */
	unsigned codes;	   /* 1u << code of each Terminate 2/0/code that the peer was sent */
	uint8_t *src, *dst;
	char text[300]; /* of the last error */
};

struct fault_scenario {
	const char *name;
	/* What happens once all is made: 0, an error of the library, or SILENT. */
	int (*play)(struct fault_world *w);
};

extern const struct fault_scenario fault_scenarios[];
extern const unsigned fault_nscenarios;

/* From nothing to nothing. */
int fault_play(struct fault_world *w, const struct fault_scenario *s);

#endif
