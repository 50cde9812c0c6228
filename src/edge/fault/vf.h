/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_EDGE_VF_H
#define DDPS_EDGE_VF_H
/*
 * Faults on demand: the rules, which of them fires, and what the trace says of it.  No I/O, no time
 * and no state but what the caller keeps: the edge of the drop-in (src/edge) asks, and does
 * what that says.
 *
 * A rule is a line (docs/faults.md):
 *
 *	on POINT [CONDITION...]: EFFECT
 *	at TIME [qp N]: EFFECT
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where rules can stand: a call, a completion, a time. */
#define VD_CALL(name)  VF_##name,
#define VD_POINT(name) VF_##name,
enum vf_point {
#include "verbs/verbs_calls.def"
	VF_COMPLETION,
	VF_TIME,
	VF_POINTS
};

enum vf_effect {
	VF_FAIL,      /* the call fails with errno @value */
	VF_STATUS,    /* the completion has status @value, and the connection ends by it */
	VF_DELAY,     /* @ms: the call takes longer, the completion comes later */
	VF_LOSE,      /* the completion never comes */
	VF_REORDER,   /* it comes behind the next one of another queue, @ms later at most */
	VF_RNR,	      /* receives reach the device @ms later */
	VF_CORRUPT,   /* one bit of the payload is another */
	VF_RESET,     /* the connection ends, both sides see it */
	VF_SILENCE,   /* nothing arrives any more, neither side sees why */
	VF_HALF_OPEN, /* the connection ends, this side does not see it */
	VF_EVENT,     /* event @value of rdma_cm, status @status, @ms later */
	VF_ASYNC,     /* asynchronous event @value */
	VF_REMOVE,    /* the device goes */
	VF_EFFECTS
};

#define VF_NOT_SAID (-1)
#define VF_RULES    256 /* of one file */
#define VF_PEER	    64
#define VF_TEXT	    160 /* octets of a trace line or a complaint */

struct vf_when {
	enum vf_point point;
	unsigned qp;		    /* the how many-th that was made, 0: any */
	char peer[VF_PEER];	    /* "192.0.2.1", "192.0.2.1:7174", empty: any */
	int opcode;		    /* enum ibv_wc_opcode or VF_NOT_SAID */
	uint64_t nth, every, first; /* of those that all before agrees with; 0: any */
	uint64_t chance;	    /* of them, in millionths; VF_CERTAIN: all */
	uint64_t after_ms;	    /* since the beginning */
	uint64_t bytes;		    /* that the queue pair has moved, with this one */
};

#define VF_CERTAIN 1000000

struct vf_rule {
	unsigned line;
	struct vf_when when;
	enum vf_effect what;
	int value, status;
	uint64_t ms;
};

struct vf_rules {
	unsigned n;
	uint64_t seed;
	struct vf_rule rule[VF_RULES];
	uint64_t seen[VF_RULES]; /* how often all conditions but the last four were met */
};

struct vf_error {
	unsigned line, column;
	char why[VF_TEXT]; /* what is expected there */
};

/* What happens. */
struct vf_event {
	enum vf_point point;
	unsigned qp;	  /* 0: none is concerned */
	const char *peer; /* "ADDRESS:PORT", or NULL */
	int opcode;
	uint64_t ms, bytes;
	unsigned queue;	 /* of the queue pair: chance is drawn for each by itself */
	uint64_t *drawn; /* that queue's VF_RULES counters, or NULL: there is but one */
};

/*
 * Read rules.  Everything in @text may be anything.
 * Return: 0, or -1 and @error says where and what is expected; @r has no rule then.
 */
int vf_parse(struct vf_rules *r, const char *text, size_t len, struct vf_error *error);

/* The first rule that fires, or NULL.  Counts. */
const struct vf_rule *vf_match(struct vf_rules *r, const struct vf_event *e);

/* A number that is drawn by seed, rule and how often; the same for the same. */
uint64_t vf_draw(uint64_t seed, uint64_t rule, uint64_t queue, uint64_t n);

/* "7 completion recv qp 1: line 3: status IBV_WC_GENERAL_ERR", without a newline. */
void vf_trace(char text[VF_TEXT], uint64_t number, const struct vf_event *e,
	      const struct vf_rule *rule);

/* ---- names (vf_names.c) ---- */

enum vf_kind {
	VF_NAME_POINT,
	VF_NAME_EFFECT,
	VF_NAME_OPCODE,
	VF_NAME_STATUS,
	VF_NAME_EVENT,
	VF_NAME_ASYNC,
	VF_NAME_ERRNO
};

/* The value of a name, whatever its case, with its prefix (IBV_WC_ ...) or without; or -1. */
int vf_value(enum vf_kind kind, const char *word, size_t len);
/* The name of a value, or NULL. */
const char *vf_name(enum vf_kind kind, int value);

#endif
