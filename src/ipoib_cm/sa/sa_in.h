/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IB_SA_IN_H
#define DDPS_IB_SA_IN_H
/* The subnet administration inside. */
#include "common/bytes.h"
#include "ipoib_cm/sa/sa.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which records a query means (IBA volume 1, 15.4): those that agree with it in all components that its
 * mask names.
 */

enum ddps_sa_compare {
	DDPS_SA_EQUAL = 1, /* 0: a component that nothing is compared with */
	DDPS_SA_SELECTOR,  /* goes with the component behind it */
	DDPS_SA_MTU,
	DDPS_SA_RATE,
	DDPS_SA_LIFE,
};

/* The component of one bit of the mask: so many bits of the record, from @at on. */
struct ddps_sa_field {
	uint16_t at, bits;
	enum ddps_sa_compare how;
};

/*
 * @want, @have: MTU, rate or lifetime with the selector in the upper two of eight bits.  Rates are in the
 * order of what they mean, which is not that of their codes.
 */
bool ddps_sa_selected(enum ddps_sa_compare how, uint8_t want, uint8_t have);

/* Whether the record @have agrees with the one asked for. */
bool ddps_sa_match(const struct ddps_sa_field *field, size_t n, uint64_t mask, const uint8_t *want,
		   const uint8_t *have);

struct sa_port {
	bool known;
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	uint32_t full, limited; /* member of these partitions, by their places */
	uint8_t traps;		/* subscribed: bit n is notice 64 + n */
	unsigned made;		/* groups that are there because of it */
	uint16_t claimer;	/* LID that says it has this GID, since claimed_at; 0: none */
	bool there;		/* seen since */
	bool another;		/* it has said another GID since: it does not defend this one */
	int said;		/* of it last, and when */
	uint64_t claimed_at, said_at;
};

struct sa_group {
	bool used;
	struct ddps_sa_mcm rec; /* what a new member gets; selectors "exactly" */
	uint16_t maker;		/* LID; 0: this administration */
	uint8_t join[DDPS_SA_LIDS];
};

struct sa_report {
	uint16_t lid, trap;
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	uint64_t tid, due;
	unsigned tries;
};

/* Records on their way to a port that asked for a table: one table a port at a time. */
struct sa_table {
	uint8_t head[DDPS_CM_MAD_LEN - DDPS_SA_RECORD_LEN]; /* of each segment */
	uint16_t lid;					    /* 0: the place is free */
	uint64_t tid, due;
	uint8_t *data;
	size_t len;
	uint32_t n_seg, acked, window; /* segments: in all, arrived, the last that may be sent */
	unsigned tries;
};

/* The records that a query means, one behind the other. */
struct sa_found {
	size_t stride; /* octets from one to the next, a multiple of 8 */
	bool all;      /* else the first one is kept, and the others counted */
	bool failed;   /* more than there is room for */
	unsigned n;
	uint8_t *data; /* malloc()ed */
	size_t room;
};

struct ddps_sa {
	struct ddps_sa_config cfg;
	struct sa_port port[DDPS_SA_LIDS];
	unsigned n_part;
	struct sa_group group[DDPS_SA_GROUPS]; /* the first are broadcast groups, one a partition */
	struct sa_report report[DDPS_SA_REPORTS];
	unsigned n_report;
	struct sa_table table[DDPS_SA_TABLES];
	uint64_t tid;
	uint32_t drawn; /* MGIDs that this administration has made */
	bool undecided; /* who has a GID: the query at hand gets no answer, and is repeated */
	unsigned first_notice, n_notice;
	char notice[DDPS_SA_NOTICES][256];
	struct ddps_sa_stats stats;
};

/*
 * The port at @lid, below DDPS_SA_LIDS, says that it has @gid (sa_gid.c).  If another one had it, it may
 * have moved from there, or both have it.  Return: a status; until that is known also sa->undecided.
 */
uint16_t ddps_sa_learn(struct ddps_sa *sa, const uint8_t *gid, uint16_t lid, uint64_t now);

/* Partitions: each is its place in the configuration. */
#define DDPS_SA_NO_PART DDPS_SA_PKEYS
unsigned ddps_sa_part(const struct ddps_sa *sa, uint16_t pkey);
/* The port says that it has @pkey, which is one of partition @part. */
void ddps_sa_part_learn(struct ddps_sa *sa, uint16_t lid, unsigned part, uint16_t pkey);
bool ddps_sa_part_member(const struct ddps_sa *sa, uint16_t lid, unsigned part);
/* Both are members, and one of them is a full one. */
bool ddps_sa_part_talk(const struct ddps_sa *sa, uint16_t a, uint16_t b, unsigned part);

void ddps_sa_broadcast_groups(struct ddps_sa *sa);
struct sa_group *ddps_sa_group_find(struct ddps_sa *sa, const uint8_t *mgid);
/* Where the port is that has this GID; 0: not known */
uint16_t ddps_sa_lid_of(const struct ddps_sa *sa, const uint8_t *gid);
bool ddps_sa_knows(const struct ddps_sa *sa, uint16_t lid);

/* ---- queries: sa_record.c, sa_path.c ---- */

void ddps_sa_found_add(struct sa_found *f, const uint8_t *rec, size_t len);
/* Each adds what @mad asks for.  Return: a status; DDPS_SA_OK also if nothing was found. */
uint16_t ddps_sa_find_paths(struct ddps_sa *sa, uint16_t slid, const struct ddps_sa_head *h,
			    const uint8_t *mad, struct sa_found *f, uint64_t now);
uint16_t ddps_sa_find_records(struct ddps_sa *sa, const struct ddps_sa_head *h, const uint8_t *mad,
			      struct sa_found *f);

/* ---- sa_table.c ---- */

/* Takes @f's records; @head: of the answer, up to its record.  Return: DDPS_SA_OK: it is on its way; or the status of a refusal. */
uint16_t ddps_sa_table_send(struct ddps_sa *sa, uint16_t slid, const struct ddps_sa_head *h,
			    const uint8_t *head, struct sa_found *f, uint64_t now);
/* What the receiver of a table says of it. */
void ddps_sa_table_heard(struct ddps_sa *sa, uint16_t slid, uint64_t tid, const struct ddps_rmpp *r,
			 uint64_t now);
uint64_t ddps_sa_table_due(const struct ddps_sa *sa);
void ddps_sa_table_tick(struct ddps_sa *sa, uint64_t now);
void ddps_sa_table_free(struct sa_table *t);

/* ---- sa_group.c: each returns the status and makes the record of @mad that of the answer ---- */

uint16_t ddps_sa_group_join(struct ddps_sa *sa, uint16_t slid, const struct ddps_sa_head *h,
			    uint8_t *mad, uint64_t now);
uint16_t ddps_sa_group_leave(struct ddps_sa *sa, uint16_t slid, const struct ddps_sa_head *h,
			     uint8_t *mad, uint64_t now);

/* Of all groups; those that nobody needs any more go. */
void ddps_sa_leave_all(struct ddps_sa *sa, uint16_t lid, uint64_t now);

uint16_t ddps_sa_subscribe(struct ddps_sa *sa, uint16_t slid, const uint8_t *mad);
/* A report to all that have subscribed and are in the group's partition; the one that caused it
 * gets one, too. */
void ddps_sa_report(struct ddps_sa *sa, uint16_t trap, const struct sa_group *g, uint64_t now);
void ddps_sa_heard(struct ddps_sa *sa, uint16_t slid, uint64_t tid);

#ifdef DDPS_ASSERTS
/* At the end of each call: groups, their makers and what is sent of tables agree. */
void ddps_sa_check(const struct ddps_sa *sa);
#else
static inline void ddps_sa_check(const struct ddps_sa *s)
{
	(void)s;
}
#endif

#endif
