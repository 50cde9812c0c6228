/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_IPOIB_PEER_H
#define DDPS_CONFORM_IPOIB_PEER_H
/*
 * A node of an InfiniBand subnet of which a case says every octet: RFC 4391, RFC 4755, and
 * communication management as far as these need it (IBA volume 1, chapter 12).
 *
 * A case is one function.  The calls below block for at most the run's limit and leave the case by
 * ci_fail() when something else than expected happens.  Each case is another neighbour to the
 * target: it has a UD queue pair, an IPv4 address, communication IDs and a CA GUID of its own, so
 * what is left of an earlier case does not matter.  What belongs to an earlier one is answered in
 * the background, as are queries to the subnet administration if that is here.
 *
 * "Nothing comes back" is proven without waiting: ci_quiet() asks something that has to be answered.
 */
#include "conform/ipoib/mad.h"
#include "conform/ipoib/packet.h"
#include "conform/peer/left.h"
#include "conform/peer/trace.h"
#include <ddpsess/conform_ipoib.h>
#include <netinet/in.h>
#include <sys/queue.h>

#define CI_GID	   16u
#define CI_LLA	   20u
#define CI_ENCAP   4u
#define CI_IP4	   0x0800u
#define CI_ARP	   0x0806u
#define CI_IP6	   0x86ddu
#define CI_RC_FLAG 0x80u
#define CI_UC_FLAG 0x40u
#define CI_RX_MTU  65524u /* what we say that we take */
#define CI_MSG_MAX 65600u
#define CI_QPS	   64u
#define CI_CONNS   8u
#define CI_GROUPS  32u
#define CI_LOG	   256u
#define CI_NODES   16u
#define CI_KEPT	   512u /* events that no case has asked for yet */
#define CI_SEEN	   16u	/* messages of which a second one is known */

struct ci;

/* What a case needs, bits. */
enum {
	CI_NEEDS_SA = 1,
	CI_NEEDS_IP6 = 2,
	CI_NEEDS_PACKETS = 4 /* of its own making, or to see those of the target as they are */
};

struct ci_case {
	const char *name, *ids, *rule;
	unsigned needs;
	void (*run)(struct ci *ci);
};

/* A case that is one call: CI_CALL(name, check(ci, 1)); */
#define CI_CALL(name, call)                                                                        \
	static void name(struct ci *ci)                                                            \
	{                                                                                          \
		call;                                                                              \
	}                                                                                          \
	struct ci

/* The tables; each ends with an entry without name. */
extern const struct ci_case ci_cases_link[], ci_cases_arp[], ci_cases_ud[], ci_cases_passive[],
	ci_cases_active[], ci_cases_end[], ci_cases_cross[], ci_cases_data[], ci_cases_sweep[],
	ci_cases_whole[], ci_cases_stray[];

_Noreturn void ci_fail(struct ci *ci, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void ci_skip(struct ci *ci, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define CI_CHECK(ci, cond, ...) ((cond) ? (void)0 : ci_fail(ci, __VA_ARGS__))

/* ---- what comes ---- */

enum { CI_EV_CM = 1, CI_EV_FRAME = 2, CI_EV_MSG = 4, CI_EV_ACK = 8, CI_EV_SA = 16 };

struct ci_qp;

struct ci_ev {
	TAILQ_ENTRY(ci_ev) of_all;
	unsigned kind;
	uint64_t at;	  /* ns */
	uint32_t src_qpn; /* FRAME */
	uint16_t mlid;	  /* FRAME to a group; else 0 */
	struct ci_qp *qp; /* MSG, ACK */
	uint8_t syndrome; /* ACK */
	uint32_t psn, msn;
	unsigned packets; /* MSG: it came in so many */
	size_t len;
	uint8_t b[];
};

/* ---- queue pairs and connections ---- */

struct ci_qp {
	bool used;
	bool gone;   /* with the port that had it */
	int failed;  /* says the port */
	uint8_t nak; /* with this every packet is answered; 0: as it should be */
	uint32_t qpn, peer;
	uint32_t psn;	/* of the next packet that we send */
	uint32_t epsn;	/* expected */
	uint32_t first; /* what we expected first: the PSN that we named */
	uint32_t msn;
	uint32_t mtu;
	unsigned n_in;
	size_t in_len;
	uint8_t *in;
};

struct ci_conn {
	uint32_t id, peer_id; /* communication IDs: ours, the target's */
	bool by_target;	      /* it sent the REQ */
	bool background;      /* and it was accepted without the case */
	bool up;
	struct ci_qp *qp;
	uint32_t peer_qpn;
	uint32_t rx_mtu; /* the target's */
	uint8_t req[CI_MAD], rep[CI_MAD], rtu[CI_MAD];
	uint64_t req_at; /* when it came */
};

/* ---- state ---- */

/* What a wait is for. */
enum ci_part {
	CI_PART_LINK, /* ARP, neighbour discovery, datagrams */
	CI_PART_REP,  /* an answer to a REQ */
	CI_PART_END,  /* a DREQ, or an answer to one */
	CI_PART_REQ,
	CI_PART_RTU,
	CI_PART_DATA, /* over a connection */
	CI_PARTS
};
_Static_assert(CI_PARTS <= CF_PARTS, "patience has room for each");

struct ci_group {
	uint16_t mlid; /* 0: free */
	int fd;	       /* sends with the MLID as source port */
	uint8_t mgid[CI_GID];
	uint8_t rec[56]; /* MCMemberRecord */
};

/* A query to the subnet administration. */
struct ci_query {
	uint64_t at;
	uint16_t slid;
	uint8_t mad[CI_MAD];
};

/* What was seen wrong on the wire, whatever case was running. */
enum ci_lint {
	CI_LINT_ICRC,
	CI_LINT_PACKET,
	CI_LINT_KEYS,
	CI_LINT_ENCAP,
	CI_LINT_SOURCE,
	CI_LINT_MAD,
	CI_NLINT
};

struct ci_target {
	bool known;
	uint16_t lid;
	uint32_t ip;
	uint8_t ip6[16];
	bool has_ip6;
	uint8_t lla[CI_LLA];
	uint32_t qpn;
	uint64_t guid; /* CA GUID, once it has sent a REQ or REP; 0: not yet */
};

struct ci_me {
	uint32_t ip;
	uint8_t ip6[16];
	uint8_t lla[CI_LLA];
	uint32_t qpn;
	uint64_t guid;
	uint32_t first_id; /* communication IDs of this case are from here on */
};

struct ci_plan {
	uint32_t wire_ip; /* own address on the wire, host order */
	uint32_t broadcast;
	uint16_t port;
	uint16_t sa_lid;
	uint8_t gid[CI_GID];
	uint32_t ip;	 /* first of our addresses on the link */
	unsigned ips;	 /* how many */
	uint32_t target; /* address on the link */
	bool has_target6;
	uint8_t target6[16];
	uint16_t pkey;
	uint32_t qkey; /* of the link, if the administration is here */
	unsigned mtu;  /* 1 to 5, likewise */
	unsigned life; /* 5-bit time, likewise */
	unsigned limit_ms;
	unsigned thorough; /* 1: every bit of every message */
};

/* A port of a fabric; without one, there are sockets. */
struct ci_fab {
	bool used;
	struct ddps_conform_ipoib_fabric f;
	struct ddps_ipoib_port *port;
	uint32_t qpn; /* of its UD queue pair */
	STAILQ_HEAD(, ci_came) came;
	struct ci_came *at; /* the one that is being looked at */
	unsigned n;
	struct ddps_ipoib_path path; /* to the target */
	bool answered, lost, down;
	int join_err;
	uint32_t link_mtu;
};

struct ci {
	struct ci_plan plan;
	struct ci_fab fab;
	const struct ci_case *c;
	/* the wire */
	int unicast, multicast;
	uint16_t lid;
	struct ci_group group[CI_GROUPS]; /* 0: broadcast */
	bool sa;			  /* the administration is here */
	/* the link */
	uint32_t qkey;
	unsigned mtu; /* octets of a datagram, encapsulation included */
	struct ci_target target;
	struct ci_query log[CI_LOG]; /* the first ones */
	unsigned n_log;
	struct {
		uint16_t lid;
		uint8_t gid[CI_GID];
	} node[CI_NODES]; /* who has joined */
	unsigned n_nodes;
	char lint[CI_NLINT][160];
	unsigned sid_form; /* octet 0 of a service ID that it takes; 0: not tried yet */
	unsigned unswept;  /* cases in a row whose end the target did not answer */
	uint32_t random, next_qpn, next_id, n_cases;
	uint64_t next_tid;
	/* the case */
	struct ci_me me;
	bool accept;	 /* REQs of the target are accepted in the background */
	bool no_arp;	 /* ARP requests for us are not answered */
	bool again;	 /* messages that come a second time are shown, too */
	uint32_t rx_mtu; /* what we say that we take */
	struct ci_qp qp[CI_QPS];
	struct ci_conn conn[CI_CONNS];
	unsigned n_conns;
	TAILQ_HEAD(, ci_ev) ev;
	unsigned n_ev;
	uint8_t seen[CI_SEEN][CI_MAD]; /* messages that came, to know repeated ones */
	unsigned n_seen;
	uint32_t seq;	/* of echoes */
	uint32_t never; /* the one to which no answer may come; 0: none */
	uint16_t ip_id;
	struct ci_ev *at; /* the latest event taken: ci_want() and others point into it */
	struct cf_trace *trace;
	struct cf_left left;
	struct cf_patience patience; /* of the run, by what is waited for */
	struct {
		enum ci_part part;
		uint64_t begin, until; /* 0: none has begun */
	} wait;
	char due[160];		/* what is waited for, for people; "": nothing */
	uint64_t claimed_until; /* until then a target that starts may answer no ARP */
	uint32_t stop;		/* enum ddps_conform_stop */
	uint8_t frame[CI_MSG_MAX];
};

/* ---- the wire: net.c ---- */

int ci_open(struct ci *ci, char *why, size_t why_len);
void ci_close(struct ci *ci);
/* Takes in what is there, and waits for more until @until. */
void ci_pump(struct ci *ci, uint64_t until);
void ci_packet(struct ci *ci, uint32_t lid, struct ci_pkt *p);
void ci_mad_packet(struct ci *ci, uint16_t lid, const uint8_t *m); /* to queue pair 1 */
struct ci_ev *ci_event(struct ci *ci, unsigned kind, const void *b, size_t len);
/* The first event of one of @kinds that has come or comes before @until; NULL: none. */
struct ci_ev *ci_await(struct ci *ci, unsigned kinds, uint64_t until);
/* The end of a wait that begins now, and of one that takes an nth of that. */
uint64_t ci_limit(struct ci *ci, enum ci_part part);
uint64_t ci_part(struct ci *ci, enum ci_part part, unsigned n);
/* What is waited for from here on, as people say it; it came. */
void ci_due(struct ci *ci, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ci_got(struct ci *ci);
/* What was waited for came; did not come, and the case fails. */
void ci_heard(struct ci *ci, enum ci_part part);
void ci_silent(struct ci *ci);
void ci_lint(struct ci *ci, enum ci_lint what, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void ci_forget(struct ci *ci); /* all events */
struct ci_group *ci_group(struct ci *ci, const uint8_t *mgid);
struct ci_group *ci_group_make(struct ci *ci, const uint8_t *mgid, uint16_t mlid);

/* ---- a port of a fabric: fabric.c ---- */

/* Another one, so with another UD queue pair; the link is joined, the path to the target known. */
void ci_fab_open(struct ci *ci);
void ci_fab_close(struct ci *ci);
void ci_fab_path(struct ci *ci); /* to the target, whose GID is known now */
void ci_fab_pump(struct ci *ci, uint64_t until);
void ci_fab_mad(struct ci *ci, const uint8_t *m);
/* @mgid NULL: to the target. */
void ci_fab_ud(struct ci *ci, const uint8_t *mgid, const void *frame, size_t len);
void ci_fab_qp_new(struct ci *ci, struct ci_qp *qp);
void ci_fab_qp_ready(struct ci *ci, struct ci_qp *qp); /* peer and psn are known */
void ci_fab_qp_send(struct ci *ci, struct ci_qp *qp, const void *b, size_t len);
void ci_fab_qp_stop(struct ci *ci, struct ci_qp *qp);
bool ci_fab_acked(struct ci *ci, const struct ci_qp *qp);
void ci_fab_want_acked(struct ci *ci, struct ci_qp *qp);

/* ---- subnet administration: sa.c ---- */

void ci_sa_start(struct ci *ci);
void ci_sa_rx(struct ci *ci, uint16_t slid, const uint8_t *m);
/* As a client: joins, and finds the target's LID.  Fails by ci_fail(). */
void ci_sa_join(struct ci *ci);
void ci_sa_path(struct ci *ci, const uint8_t *gid);
/* The target's first query of this kind to a group, or with @mgid NULL to any; NULL: none. */
const uint8_t *ci_sa_asked(const struct ci *ci, unsigned method, unsigned attr,
			   const uint8_t *mgid);

/* ---- datagrams: ud.c ---- */

/* One UD packet, with what is wrong in @p already: qkey, pkey and so on are those of the link. */
struct ci_pkt ci_ud(const struct ci *ci, const void *b, size_t len);
/* To the target's UD queue pair, or to a group. */
void ci_ud_send(struct ci *ci, const void *frame, size_t len);
void ci_ud_group(struct ci *ci, const struct ci_group *g, const void *frame, size_t len);
/* An ARP frame, 60 octets: from us. */
size_t ci_arp(const struct ci *ci, uint8_t *b, unsigned op, uint32_t sender, uint32_t target);
/* Waits for an ARP reply for @asker and returns its frame; sets ci->target.lla if @learn. */
const uint8_t *ci_arp_reply(struct ci *ci, uint32_t asker, uint64_t until, bool learn);
/* A new neighbour with these flags, which the target knows then. */
void ci_meet(struct ci *ci, uint8_t flags);
/* The same with a smaller or larger address than the target's (RFC 4755 3.3): < 0, > 0. */
void ci_meet_order(struct ci *ci, uint8_t flags, int order);
/* The same with the target's own QPN, and a GID that decides. */
void ci_meet_gid(struct ci *ci, uint8_t flags, int order);
/* @gid has its prefix, and gets an interface ID by which it is smaller (@order < 0) or larger than
 * @target.  @n: of the case, so that it is a new one where there is room.  Return: whether there is
 * one; 0 is no interface ID. */
bool ci_gid_order(uint8_t gid[CI_GID], const uint8_t target[CI_GID], int order, uint16_t n);
/* Asks for it again: an address of ours has changed. */
void ci_resolve(struct ci *ci);
/* An address of ours that the target does not know. */
uint32_t ci_stranger(const struct ci *ci);
/* The target deals with frames in order: an ARP request under another address is answered. */
void ci_ud_quiet(struct ci *ci);

/* ---- IP: ip.c ---- */

/* An echo request of @ip_len octets with encapsulation into @b; its number is ci->seq then. */
size_t ci_echo(struct ci *ci, uint8_t *b, size_t ip_len);
size_t ci_echo_from(struct ci *ci, uint8_t *b, size_t ip_len, uint32_t from);
void ci_echo_ud(struct ci *ci, size_t ip_len); /* in fragments if it has to be */
struct ci_reply {
	bool connected;
	struct ci_qp *qp;
	size_t len;	/* of the IP packet, put together */
	size_t largest; /* message or datagram, encapsulation included */
	unsigned pieces;
};
/* The answer to echo number @seq.  Return: whether it came before @until. */
bool ci_replied(struct ci *ci, uint32_t seq, uint64_t until, struct ci_reply *r);
void ci_want_reply(struct ci *ci, uint32_t seq, struct ci_reply *r);
/* Echo in datagrams, again and again until there is an answer: the path's MTU has to be learnt. */
void ci_ping_ud(struct ci *ci, size_t ip_len, struct ci_reply *r);
/* A neighbour solicitation for the target, to its solicited-node address. */
size_t ci_ns(const struct ci *ci, uint8_t *b);
void ci_ns_send(struct ci *ci, const uint8_t *b, size_t len);	/* to the group of that */
bool ci_na_ok(struct ci *ci, const uint8_t *frame, size_t len); /* is it the answer? */

/* ---- RC: rc.c ---- */

struct ci_qp *ci_qp_new(struct ci *ci);
void ci_qp_rx(struct ci *ci, const struct ci_pkt *p);
void ci_qp_send(struct ci *ci, struct ci_qp *qp, const void *b, size_t len);
/* One packet of the next PSN, whatever it is. */
void ci_qp_packet(struct ci *ci, struct ci_qp *qp, unsigned op, const void *b, size_t len);
/* An acknowledgement of all that was sent. */
void ci_want_acked(struct ci *ci, struct ci_qp *qp);
/* What comes on it is refused, or, by a port of a fabric, has no answer: it ends for the target. */
void ci_qp_refuse(struct ci *ci, struct ci_qp *qp);
/* A NAK with this syndrome, and its PSN. */
uint32_t ci_want_nak(struct ci *ci, struct ci_qp *qp, uint8_t syndrome);
void ci_echo_rc(struct ci *ci, struct ci_conn *c, size_t ip_len);

/* ---- communication management: cm.c ---- */

void ci_cm_send(struct ci *ci, const uint8_t *m);
void ci_cm_rx(struct ci *ci, uint16_t slid, const uint8_t *m);
/* Transaction ID of a message; by a port of a fabric the half that its kernel leaves alone. */
uint64_t ci_tid(const struct ci *ci, const uint8_t *m);
/* The next message about this case; the others fail it.  @attr 0: any.  What the target may say at any
 * time is answered and is none of them: a DREQ of a connection that is up (if @attr is not that), an
 * MRA, a LAP. */
const uint8_t *ci_want(struct ci *ci, unsigned attr);
/* The same, NULL if none comes before @until. */
const uint8_t *ci_came(struct ci *ci, unsigned attr, uint64_t until);
/* All that was sent has been dealt with; what came before that is dropped. */
void ci_settle(struct ci *ci);
/* All that was sent has been dealt with, and there is no further answer. */
void ci_quiet(struct ci *ci);
/* Private data of RFC 4755 6 of the target: checked.  Return: Receive MTU. */
uint32_t ci_private(struct ci *ci, const uint8_t *m);
void ci_put_private(const struct ci *ci, uint8_t *m, uint32_t rx_mtu);

/* A REQ of ours into c->req, with a service ID that the target takes; nothing is sent. */
struct ci_conn *ci_req(struct ci *ci);
void ci_rep_in(struct ci *ci, struct ci_conn *c, const uint8_t *rep);
void ci_rtu(struct ci *ci, struct ci_conn *c, bool two_way);
/* All of it.  Two ways: the RTU has private data, so the target may use it as well. */
struct ci_conn *ci_connect(struct ci *ci, bool two_way);
/* An echo that makes the target connect, and its REQ. */
struct ci_conn *ci_provoke(struct ci *ci);
struct ci_conn *ci_req_in(struct ci *ci, const uint8_t *req, uint64_t at);
/* Our REP into c->rep. */
void ci_rep(struct ci *ci, struct ci_conn *c);
void ci_accept(struct ci *ci, struct ci_conn *c); /* and the RTU comes */
/* Other messages, into @m. */
void ci_rej(const struct ci *ci, uint8_t *m, const struct ci_conn *c, unsigned msg,
	    unsigned reason);
void ci_mra(const struct ci *ci, uint8_t *m, const struct ci_conn *c, unsigned msg, unsigned t);
void ci_dreq(struct ci *ci, uint8_t *m, const struct ci_conn *c);
void ci_drep(uint8_t *m, const uint8_t *dreq);
/* Return: whether @m is the target's DREQ for a connection that is up.  It may end one at any time:
 * that is no answer to anything, and gets its DREP here. */
bool ci_surplus(struct ci *ci, const uint8_t *m);
/* DREQ and its DREP. */
void ci_disconnect(struct ci *ci, struct ci_conn *c);
/* There is nothing left of it: its DREQ is answered, its data is not. */
void ci_gone(struct ci *ci, struct ci_conn *c);
/* The target takes a connection and answers on it: it is alive and well. */
void ci_alive(struct ci *ci);
void ci_sweep(struct ci *ci); /* at the end of a case: connections end */

#endif
