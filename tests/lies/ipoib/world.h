/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIES_IPOIB_WORLD_H
#define LIES_IPOIB_WORLD_H
/*
 * The suite for IPoIB and a node of ours, on a network and with a clock of this program: nothing waits.
 * Between the two is a liar, who may alter, drop and add packets in both directions.
 */
#include "conform/ipoib/peer.h"
#include "ipoib_cm/ib/pkt.h"
#include <ddpsess/conform_ipoib.h>

#define SUITE	   1u /* LIDs */
#define TARGET	   2u
#define SA	   3u /* the subnet administration, if that is not the suite */
#define STRANGER   4u /* somebody else, whose packets are the liar's */
#define TARGET_QPN 0x300001u
#define DATA_MAX   4400u

/* Kinds of packets of the target, bits; with IN of the suite. */
enum {
	K_REQ = 1 << 0,
	K_MRA = 1 << 1,
	K_REJ = 1 << 2,
	K_REP = 1 << 3,
	K_RTU = 1 << 4,
	K_DREQ = 1 << 5,
	K_DREP = 1 << 6,
	K_CM = 0x7f,
	K_SA = 1 << 7,
	K_ARP_ASKS = 1 << 8,
	K_ARP = 1 << 9, /* reply */
	K_NA = 1 << 10,
	K_ECHO = 1 << 11, /* in a datagram */
	K_FRAME = 1 << 12,
	K_RC = 1 << 13,
	K_ACK = 1 << 14,
	K_OTHER = 1 << 15,
	K_PACKETS = 0xffff,
	/* not a packet: the world is made, the case begins */
	K_START = 1 << 16,
	K_BEGIN = 1 << 17,
	IN = 1 << 18,
	BOTH = 1 << 19 /* of either of them */
};

/* What one says to the other. */
struct said {
	struct ci_pkt p; /* data: m */
	uint16_t from, lid;
	unsigned kind, n; /* the n-th of its kind, from 1 on */
	const uint8_t *first;
	bool drop;
	unsigned cut;	/* octets that are missing at the end */
	int at;		/* octet of the packet as it is, below 0: from its end, */
	unsigned flips; /* of which these bits are changed */
	uint8_t m[DATA_MAX];
};

/* How the suite is run. */
enum {
	AS_CLIENT = 1, /* the administration is somebody else */
	BY_PORT = 2,   /* of a fabric, and so it is then */
	EARLY = 4,     /* the lie begins before the case */
	QUICKLY = 8,   /* not thorough */
	FOR_LONG = 16  /* the suite waits for long */
};

enum { PASSES = 1, FAILS, SKIPS, REFUSED }; /* the last: there is no run */

struct row {
	int due;
	unsigned mode;
	const char *name; /* of a case */
	unsigned kinds;
	const char *why;
	void (*act)(unsigned row, struct said *s);
	unsigned number;
};

static inline bool is_due(unsigned kind, unsigned kinds)
{
	return kind & kinds & (IN - 1) && (kinds & BOTH || !((kind ^ kinds) & IN));
}

/* LIST(X): X(what is due, mode, case, kinds of packets, words of the verdict, statements on s and m) */
#define LIE_ACT(due_, mode_, name_, kinds_, why_, ...)                                             \
	if (row == i++ && is_due(s->kind, kinds_)) {                                               \
		__VA_ARGS__;                                                                       \
	}
#define LIE_ROW(due_, mode_, name_, kinds_, why_, ...)                                             \
	{ .due = due_, .mode = mode_, .name = name_, .kinds = kinds_, .why = why_, .act = act },
#define LIES(table, LIST)                                                                          \
	static void act(unsigned row, struct said *s)                                              \
	{                                                                                          \
		unsigned i = 0;                                                                    \
		uint8_t *m = s->m;                                                                 \
                                                                                                   \
		(void)m;                                                                           \
		LIST(LIE_ACT)                                                                      \
	}                                                                                          \
	const struct row table[] = { LIST(LIE_ROW){ 0 } }

/* It comes changed as well, ahead: @act changes other, whose octets are o. */
#define ALSO(s, act)                                                                               \
	do {                                                                                       \
		struct said other = *(s);                                                          \
		uint8_t *o = other.m;                                                              \
                                                                                                   \
		other.p.data = other.m;                                                            \
		act;                                                                               \
		(void)o;                                                                           \
		ahead(&other);                                                                     \
	} while (0)

/* ---- the world ---- */

/* What a port of a fabric does wrong. */
struct port_lies {
	int create, ready, join, resolve; /* errors */
	unsigned again;			  /* calls that find no room */
	unsigned mad_again;
	uint32_t qpn;  /* of the UD queue pair; 0: another one each time */
	uint32_t says; /* and what it is said to be; 0: that */
	bool blind;    /* no port can be opened */
	bool no_path, no_answer;
	bool deaf, refused; /* joins: without an answer, or in vain */
	bool never;	    /* nothing is ever acknowledged, it says */
};

struct world {
	uint64_t now;
	struct ddps_conform_ipoib_options o;
	struct port_lies port;
	uint32_t target_qpn;
	uint8_t target_mtu; /* codes: of its network */
	struct ci *ci;	    /* of the suite, once a case has begun */
	unsigned calls;	    /* system calls that succeed before one fails; 0: all */
	int call_error;
	bool calls_for_good; /* and all after it */
	unsigned memory;     /* allocations, likewise */
	unsigned sockets;
	unsigned opened; /* ports of the fabric */
	bool came;	 /* something for the suite's port */
	/* The suite's host does not run it for so long, each time when it has waited so often. */
	unsigned stop_ms, stop_each, waits;
};

extern struct world world;

/* Begins anew.  @told: called for every packet on its way; may set drop and so on. */
void world_begin(unsigned mode, void (*told)(struct said *s));
void world_end(void);
/* So much time passes at most, up to @until.  Return: whether something has come for the suite. */
bool world_turn(uint64_t until);
/* The same up to @until, whatever comes. */
void world_stop(uint64_t until);
struct ddps_ib_udp_hdr world_header(uint16_t from, uint16_t lid);
/* As it is, and by way of the liar. */
void world_send(uint16_t from, uint16_t lid, const uint8_t *b, size_t len);
void world_says(uint16_t from, uint16_t lid, const uint8_t *b, size_t len);
extern const struct ddps_conform_ipoib_fabric world_fabric;
/* Nodes: node.c */
void nodes_begin(unsigned mode);
void nodes_end(void);
void nodes_take(uint16_t lid, uint16_t from, uint16_t mlid, const uint8_t *b, size_t len);
uint64_t nodes_due(void);
void nodes_tick(void);
bool nodes_suite(void); /* the suite is one of them */
/* What the fabric says to the suite, for liars. */
const struct ddps_ipoib_up *port_up(void **user);
void port_acked(uint32_t qpn, uint32_t msn); /* by the target, so far */

/* ---- what a liar does: liar.c ---- */

void liar_begin(const struct row *r);
void liar_case(bool begins);
void liar_hears(struct said *s);
/* @s as it is now comes, too, before it. */
void ahead(struct said *s);
/* It comes to the suite's datagrams, on its latest queue pair, to a group. */
void as_datagram(struct said *s);
void as_message(struct said *s);
void to_group(struct said *s);
/* A MAD about the suite's latest connection, of another kind. */
void as_cm(struct said *s, unsigned attr);
/* An IPv4 packet in @s, and its header's sum, is @n octets longer or shorter. */
void longer(struct said *s, int n);
/* Part of the reply to the latest echo, which has @len octets behind its IP header, as a datagram. */
void piece(struct said *s, size_t len, size_t off, size_t n);
bool is_join(const struct said *s); /* of another group than that of broadcasts */
bool is_inform(const struct said *s, unsigned trap);
bool is_path(const struct said *s);

extern const struct row lies_passive[], lies_active[], lies_data[], lies_links[], lies_port[],
	lies_packets[];

#endif
