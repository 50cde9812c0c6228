/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_VERBS_OOB_H
#define SIM_VERBS_OOB_H
/* Two queue pairs that a program connects itself, by number and GID, when all else is over. */
#include "sim/verbs_world.h"

#define RECVS_OOB 8u
#define LONGEST	  2000u
#define MS	  1000000ull
#define SEC	  (1000 * MS)
#define PATIENCE  (60 * SEC)

struct oob_side {
	unsigned id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	unsigned says, sent, heard, flushed;
	bool armed;
	bool error; /* the program has made it one */
	uint8_t out[RECVS_OOB][LONGEST], in[RECVS_OOB][LONGEST];
};
extern struct oob_side oob_side[2];

/* What message @n of @s is like. */
uint32_t oob_message_len(const struct oob_side *s, unsigned n);
/* @cqe: of its completion queue. */
void oob_make(struct oob_side *s, int cqe);
/* @speaks: it does not wait for RTS.  Nor does it ever go there: once there is a session RTR is enough. */
void oob_meet(struct oob_side *s, const struct oob_side *o, bool speaks);
/* All its receives. */
void oob_post(struct oob_side *s);
/* All its messages. */
void oob_say(struct oob_side *s);
void oob_take_down(struct oob_side *s);

#endif
