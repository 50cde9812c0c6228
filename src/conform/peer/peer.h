/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_PEER_H
#define DDPS_CONFORM_PEER_H
/*
 * The conformance suite: a peer made of octets, and cases that tell it what to say.
 *
 * A case is one function.  It drives the peer by the calls below, which block for at most the
 * run's limit and leave the case by cf_fail() when something else than expected happens: no
 * call returns an error.  The peer shares no code with the stack above the SCTP library: what
 * it frames and parses is written here a second time, from the RFCs.
 *
 * The target is the implementation under test.  In self mode it is this project's own stack in
 * the same process, with its application in the case's hand (cf_app_*); else it is anybody
 * who listens, or who is made to connect.
 */
#include "conform/peer/left.h"
#include <ddpsess/ddpsess.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cf;

/* ---- cases ---- */

/* CF_TLS, CF_DTLS: only inside it; CF_CLEAR: only without. */
enum { CF_TCP = 1, CF_SCTP = 2, CF_BOTH = 3, CF_TLS = 16, CF_CLEAR = 32, CF_DTLS = 64 };

enum cf_target { CF_RESPONDER, CF_INITIATOR }; /* what the target is */

struct cf_case {
	const char *name; /* unique; "mpa-", "sctp-", "assoc-", "ddp-", ... and the point */
	const char *ids;  /* requirements that it covers, separated by spaces */
	const char *rule; /* what must hold, one line */
	unsigned wires;
	enum cf_target target;
	bool app; /* needs the target's application in hand: self mode only */
	void (*run)(struct cf *cf);
};

/* A case that is one call: CF_CALL(name, check(cf, 1)); */
#define CF_CALL(name, call)                                                                        \
	static void name(struct cf *cf)                                                            \
	{                                                                                          \
		call;                                                                              \
	}                                                                                          \
	struct cf

/* A case of both wires for a target in either role: two rows. */
#define CF_ROLES(area, point, app, run, ids, rule)                                                 \
	{ area point, ids, rule, CF_BOTH, CF_RESPONDER, app, run },                                \
	{                                                                                          \
		area "initiator-" point, ids, rule, CF_BOTH, CF_INITIATOR, app, run                \
	}

/* The tables; each ends with an entry without name. */
extern const struct cf_case cf_cases_mpa[], cf_cases_mpa_init[], cf_cases_mpa_fpdu[],
	cf_cases_mpa_marker[], cf_cases_neg[], cf_cases_neg_init[], cf_cases_neg_p2p[],
	cf_cases_sctp[], cf_cases_sctp_app[], cf_cases_ddp[], cf_cases_ddp_queue[],
	cf_cases_rdmap[], cf_cases_rdmap_work[], cf_cases_rdmap_end[], cf_cases_rdmap_edge[],
	cf_cases_7306[], cf_cases_7306_sent[], cf_cases_assoc_init[], cf_cases_assoc_cookie[],
	cf_cases_assoc_dial[], cf_cases_assoc_cross[], cf_cases_assoc_tags[], cf_cases_assoc_data[],
	cf_cases_assoc_sent[], cf_cases_assoc_end[], cf_cases_assoc_again[], cf_cases_assoc_more[],
	cf_cases_relay[], cf_cases_tls[], cf_cases_dtls[];

/* ---- leaving a case ---- */

_Noreturn void cf_fail(struct cf *cf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void cf_skip(struct cf *cf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define CF_CHECK(cf, cond, ...) ((cond) ? (void)0 : cf_fail(cf, __VA_ARGS__))

/* Octets as text for a message: "0a 0b ..."; up to four results live at a time. */
const char *cf_hex(const void *p, size_t len);

/* Big-endian fields. */
void cf_put16(uint8_t *p, uint16_t v);
void cf_put32(uint8_t *p, uint32_t v);
void cf_put64(uint8_t *p, uint64_t v);
uint16_t cf_get16(const uint8_t *p);
uint32_t cf_get32(const uint8_t *p);
uint64_t cf_get64(const uint8_t *p);

/* A pattern that differs from octet to octet and with @seed. */
void cf_fill(void *p, size_t len, uint32_t seed);

/* ---- transport ---- */

#define CF_MAX 66100 /* the largest thing on a wire: an FPDU with markers */

struct cf_buf {
	size_t len;
	uint8_t b[CF_MAX];
};

/*
 * A connection or association between peer and target, made by whoever must.  The first one
 * is "current"; a case may open more, and choose by cf_use() (0 = the first).
 */
void cf_open(struct cf *cf);
void cf_use(struct cf *cf, unsigned n);
/* TCP: an initiator connects once more, of its own accord. */
void cf_tcp_again(struct cf *cf);

/* TCP octets.  cf_tcp_read: exactly @len octets, or the case fails, saying what came. */
void cf_tcp_write(struct cf *cf, const void *p, size_t len);
void cf_tcp_read(struct cf *cf, void *p, size_t len);
void cf_tcp_fin(struct cf *cf);	  /* close our direction */
void cf_tcp_reset(struct cf *cf); /* RST */

/* Neither octets nor an end have come so far.  Only after something that took its time. */
bool cf_tcp_quiet(struct cf *cf);

/* RFC 5043 section 5.2: what a message is. */
#define PPID_SEGMENT 16u
#define PPID_CONTROL 17u

/* One SCTP user message of the target. */
struct cf_msg {
	uint16_t stream;
	uint32_t ppid;
	bool unordered;
	size_t len;
	uint8_t b[CF_MAX];
};

/* Always unordered.  The message returned is good until the next call. */
void cf_sctp_write(struct cf *cf, uint16_t stream, uint32_t ppid, const void *p, size_t len);
const struct cf_msg *cf_sctp_read(struct cf *cf);
/* The next control chunk; outside self mode what an application says is left for later. */
const struct cf_msg *cf_sctp_read_ctrl(struct cf *cf);
void cf_sctp_abort(struct cf *cf);
void cf_sctp_shutdown(struct cf *cf);

/*
 * The target ends the connection or association, and sends nothing more before that.
 * cf_expect_end: anything does; over TCP a FIN or RST (@in_order: FIN only); over SCTP the
 * session's Terminate (the association may go on) or the end of the association.
 */
void cf_expect_end(struct cf *cf, bool in_order);
/* SCTP: the association itself ends (SHUTDOWN or ABORT). */
void cf_expect_gone(struct cf *cf);

/* ---- set-up ---- */

/* RFC 6581 figure 4: the enhanced word, as both halves. */
#define CF_A 0x8000u /* peer to peer */
#define CF_B 0x4000u /* zero-length Send */
#define CF_C 0x8000u /* zero-length RDMA Write */
#define CF_D 0x4000u /* zero-length RDMA Read */

#define CF_MPA_M 0x80u
#define CF_MPA_C 0x40u
#define CF_MPA_R 0x20u
#define CF_MPA_S 0x10u

struct cf_mpa { /* a Request or Reply */
	bool reply;
	uint8_t flags, rev;
	uint16_t pd_len;
	uint8_t pd[512 + 4];
};

/* Control chunks of RFC 5043 and RFC 6581. */
enum {
	CF_INITIATE = 1,
	CF_ACCEPT,
	CF_REJECT,
	CF_TERMINATE,
	CF_ENH_INITIATE,
	CF_ENH_ACCEPT,
	CF_ENH_REJECT
};

struct cf_ctrl {
	uint16_t stream, ssn, code, pd_len;
	uint8_t pd[512 + 4];
};

#define CF_MPA_MAX (20 + 512 + 4)

/* The frame's octets, into CF_MPA_MAX of them. */
size_t cf_mpa_octets(const struct cf_mpa *f, uint8_t *b);
void cf_mpa_write(struct cf *cf, const struct cf_mpa *f);
/* Reads a frame with the right key and a legal length. */
void cf_mpa_read(struct cf *cf, struct cf_mpa *f);
void cf_ctrl_write(struct cf *cf, const struct cf_ctrl *c);
/* The next message is a PPID 17 one, unordered, with a legal length. */
void cf_ctrl_read(struct cf *cf, struct cf_ctrl *c);

/*
 * TCP: the exchange with this very frame, and what it decides.  Towards an initiator its
 * Request must be in cf->mpa already.  cf_mpa_rest: the case has written the frame itself.
 */
void cf_mpa_session(struct cf *cf, const struct cf_mpa *f);
void cf_mpa_rest(struct cf *cf, const struct cf_mpa *f);
/* Only what it decides: CRC, markers.  Segments may flow. */
void cf_mpa_agree(struct cf *cf, const struct cf_mpa *f);

/* A whole session, on either wire and in either role. */
struct cf_opts {
	bool plain;	       /* Rev 1 / Initiate 0x0001 */
	bool no_crc;	       /* MPA: C = 0, on both sides in self mode */
	bool markers;	       /* MPA: ask the target to send markers */
	bool target_markers;   /* MPA: the target asks us (self mode) */
	uint16_t ird_w, ord_w; /* the halves of our enhanced word; both 0: 16 and 16 */
	uint16_t stream;       /* SCTP */
	const void *pd;
	size_t pd_len;
};

/*
 * cf_open() if that was not done, then the exchange.  In self mode the application accepts (or
 * connects) with cf->app.param.  @o: NULL for enhanced, CRC, no markers.  The target's answer
 * (or request) stays in cf->mpa or cf->ctrl.
 */
void cf_session(struct cf *cf, const struct cf_opts *o);
/* The target's half of it that needs its application: nothing outside self mode. */
void cf_app_answer(struct cf *cf);

/* ---- segments ---- */

/* Control octets: T, L, DV; and the RDMAP octet. */
enum { CF_TAGGED = 0x81, CF_TAGGED_L = 0xc1, CF_UNTAGGED = 0x01, CF_UNTAGGED_L = 0x41 };
enum {
	CF_WRITE = 0x40,
	CF_READ_REQ,
	CF_READ_RESP,
	CF_SEND,
	CF_SEND_INV,
	CF_SEND_SE,
	CF_SEND_SE_INV,
	CF_TERM
};

/* These fill cf->out, which cf_send() sends and cf_expect_term() compares with. */
void cf_tagged(struct cf *cf, uint8_t ctl, uint8_t op, uint32_t stag, uint64_t to,
	       const void *payload, size_t len);
void cf_untagged(struct cf *cf, uint8_t ctl, uint8_t op, uint32_t inv_stag, uint32_t qn,
		 uint32_t msn, uint32_t mo, const void *payload, size_t len);
void cf_read_req(struct cf *cf, uint32_t msn, uint32_t sink_stag, uint64_t sink_to, uint32_t size,
		 uint32_t src_stag, uint64_t src_to);
/* The MSN of the next message on queue @qn of the current session (1, 2, ...). */
uint32_t cf_msn(struct cf *cf, unsigned qn);

/* cf->out as an FPDU, or as a PPID 16 message with the session's next DDP-SSN. */
void cf_send(struct cf *cf);
/* The next segment, into cf->in; its framing is checked, CRC, pad and markers included. */
void cf_recv(struct cf *cf);
/*
 * The next one that a case waits for: of opcode @op, or a Terminate.  In self mode any; a target
 * from outside may have an application that says something of its own.
 */
void cf_recv_op(struct cf *cf, uint8_t op);

/* TCP: what is wrong with an FPDU; all zero: nothing. */
struct cf_fault {
	uint32_t crc_xor;	 /* on the CRC field */
	uint32_t marker_xor;	 /* on its markers, before the CRC is made */
	uint8_t pad;		 /* the pad octets, before the CRC is made */
	bool pad_late;		 /* the last pad octet, changed behind the CRC's back */
	bool leading_uncovered;	 /* the CRC leaves out a marker before the length */
	bool trailing_uncovered; /* ... or one between pad and CRC */
};

/* cf->out as the stream's next FPDU, into @b (CF_MAX octets), which must then be written. */
size_t cf_fpdu_build(struct cf *cf, const struct cf_fault *w, uint8_t *b);
void cf_fpdu_write(struct cf *cf, const struct cf_fault *w);

/* cf->in: fields of the DDP header, whichever it has. */
bool cf_in_tagged(struct cf *cf);
bool cf_in_last(struct cf *cf);
uint8_t cf_in_op(struct cf *cf);    /* RDMAP octet: 0x40.. */
uint32_t cf_in_stag(struct cf *cf); /* tagged: STag; untagged: Invalidate STag */
uint64_t cf_in_to(struct cf *cf);
uint32_t cf_in_qn(struct cf *cf);
uint32_t cf_in_msn(struct cf *cf);
uint32_t cf_in_mo(struct cf *cf);
const uint8_t *cf_in_payload(struct cf *cf, size_t *len);

/* A zero-length RDMA Read, in cf->out only, whose answer shows that it was taken in; its MSN. */
uint32_t cf_question(struct cf *cf);
/* The answer comes next. */
void cf_answer(struct cf *cf);

/*
 * The target is alive and has dealt with all that was sent: a zero-length RDMA Read that it
 * answers with the next segment.  This is how "nothing comes back" is proven without waiting.
 */
void cf_ping(struct cf *cf);

/* What a Terminate must carry in addition to its code (RFC 5040 figure 10). */
enum cf_carries {
	CF_BARE,  /* nothing: 4 octets */
	CF_DDP,	  /* DDP header and segment length of cf->out */
	CF_RDMAP, /* the Read Request header too */
	CF_ANY	  /* whatever is legal */
};

/*
 * The next segment is a Terminate with this code: 0x1101 is layer 1, type 1, code 01.  Checked
 * whole: header, reserved bits, MSN 1, L, length.  Then the stream ends, with nothing between.
 */
void cf_expect_term(struct cf *cf, uint16_t code, enum cf_carries carries);
/* The same for the segment that is in cf->in already. */
void cf_check_term(struct cf *cf, uint16_t code, enum cf_carries carries);
/* The same behind segments of opcode @op, of a message that the Terminate cuts off. */
void cf_expect_term_in(struct cf *cf, uint8_t op, uint16_t code, enum cf_carries carries);
/* The same for one of several codes that the RFCs leave open; 0 ends the list. */
void cf_expect_term_of(struct cf *cf, const uint16_t *codes, enum cf_carries carries);
/* Any Terminate, or the end without one: what an outside target may do at least. */
void cf_expect_dead(struct cf *cf);

/* ---- the target's application (self mode) ---- */

struct cf_mr {
	struct ddps_mr *mr;
	uint8_t *mem;
	size_t len;
	uint32_t stag;
	uint64_t to;
};

struct cf_app {
	struct ddps_ctx *ctx; /* with a thread of its own */
	struct ddps_pd *pd;
	struct ddps_cq *cq; /* for both directions */
	struct ddps_listener *listener;
	struct ddps_ep *ep;	      /* of the latest session */
	struct ddps_ep_attr attr;     /* for the next one: change before cf_session() */
	struct ddps_conn_param param; /* likewise */
	struct ddps_event request;    /* the latest CONNECT_REQUEST */
	struct ddps_event established;
};

/* Post @n receives of @len octets each: on the next session's endpoint, or the present one. */
void cf_app_recv(struct cf *cf, unsigned n, size_t len);
/* The octets of the receive that completed as @wc. */
const uint8_t *cf_app_recv_data(struct cf *cf, const struct ddps_wc *wc);
/* Register memory of the application's, filled with cf_fill(.., 7). @access: DDPS_REMOTE_... */
struct cf_mr cf_app_mr(struct cf *cf, size_t len, unsigned access);
/* Post; must succeed.  @mr NULL: no payload. */
void cf_app_post(struct cf *cf, enum ddps_op op, unsigned flags, const struct cf_mr *mr,
		 uint32_t len, uint32_t stag, uint64_t to);
/* The next completion; the case fails if none comes. */
struct ddps_wc cf_app_wc(struct cf *cf);
/* No completion is there now. Use after cf_ping(). */
void cf_app_no_wc(struct cf *cf);
/* The next event, which must be of this type. */
struct ddps_event cf_app_event(struct cf *cf, enum ddps_event_type type);

/* ---- what a case may look at ---- */

struct cf_conn;	 /* one connection, inside.h */
struct cf_trace; /* what went over the wire, trace.c */

struct cf {
	const struct cf_case *c;
	unsigned wire; /* CF_TCP or CF_SCTP */
	bool self;
	struct cf_app app;
	struct cf_buf out, in;
	struct cf_mpa mpa;   /* the target's latest Request or Reply */
	struct cf_ctrl ctrl; /* its latest control chunk */
	/* the rest is the runner's */
	const struct cf_run *run;
	struct cf_conn *conn, *conns;
	struct cf_trace *trace;
	struct cf_res *res;
	struct cf_left left;
	char want[200];	      /* what is waited for, for people */
	uint32_t stop;	      /* enum ddps_conform_stop */
	bool must_end, ended; /* what came last must be the end of the session; one came */
	bool dialling;	      /* the case's first connection to the target is not there yet */
};

#endif
