/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_CONFORM_H
#define DDPSESS_CONFORM_H
/*
 * The conformance suite of libddpsess-conform, to be run from a program or a test of your own: a
 * peer that speaks iWARP octet by octet, and cases that decide what it sends and what must come
 * back (RFC 5040, 5041, 5043, 5044, 6581, 7306).  "sessctl conform" is made of these functions.
 *
 * The target is what is tested: any implementation behind a URI, as responder or as initiator, or
 * in self mode the stack of libddpsess in this process.
 *
 * What the peer shares with that stack.  Nothing that frames, parses or decides: MPA, DDP, RDMAP,
 * SCTP, CRCs, markers, URIs and name lookup are written a second time, from the RFCs.  Of
 * libddpsess it uses what this header's neighbours declare: sessions, for the application of a
 * target in self mode, and ddps_uri_check(), for the form of URIs.
 *
 * One run at a time in a process.  Programs that embed the suite link with libddpsess-conform and
 * libddpsess.
 */
#include <ddpsess/err_codes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits. */
enum ddps_conform_wire {
	DDPS_CONFORM_TCP = 1,
	DDPS_CONFORM_SCTP = 2,
	DDPS_CONFORM_PACKET = 4, /* of an item only: a whole SCTP packet (RFC 9260) */
	DDPS_CONFORM_IB = 8	 /* IPv4 packets with UDP and InfiniBand: conform_ipoib.h */
};

/* What the target is. */
enum ddps_conform_role { DDPS_CONFORM_RESPONDER, DDPS_CONFORM_INITIATOR };

enum ddps_conform_verdict {
	DDPS_CONFORM_PASS,
	DDPS_CONFORM_FAIL,
	DDPS_CONFORM_KNOWN, /* it fails, as the profile says */
	DDPS_CONFORM_SKIP   /* it cannot be run against this target */
};

/*
 * How far the target keeps the rules of a case.  Without a word of the profile, what fails has the
 * grade PASSES if the session had to end and did, and else FAILS.
 */
enum ddps_conform_grade {
	DDPS_CONFORM_STRICT, /* to the octet, as the RFCs say */
	DDPS_CONFORM_PASSES, /* what the rule is for holds, but it is done or told in another way */
	DDPS_CONFORM_HARMLESS, /* something else happens, which harms no correct peer */
	DDPS_CONFORM_FAILS
};

/* A case.  Texts are constant. */
struct ddps_conform_case {
	const char *name; /* unique, such as "mpa-crc-pad" */
	const char *ids;  /* requirements that it covers, separated by spaces */
	const char *rule; /* what must hold, one line */
	uint32_t wires;	  /* DDPS_CONFORM_TCP and DDPS_CONFORM_SCTP, or both */
	uint32_t target;  /* enum ddps_conform_role */
	uint32_t self;	  /* 1: it needs the target's application in hand, so self mode only */
	uint32_t reserved[5];
};

struct ddps_conform_options {
	size_t struct_size; /* set by ddps_conform_options_init() */
	/*
	 * tcp://HOST:PORT or sctp://HOST:PORT[?backend=...&encap=...]: the responder to test, or
	 * where an initiator is waited for.  NULL: self mode, over @wire.
	 */
	const char *uri;
	uint32_t wire;	     /* self mode: one of enum ddps_conform_wire; else 0 */
	uint32_t target;     /* with a URI: enum ddps_conform_role */
	const char *command; /* initiator: run by sh for each case; $DDPS_URI is where to connect */
	const char *pattern; /* cases whose name matches, as for file names; NULL: all */
	/*
	 * "siw", "usrsctp", "linux-sctp", or a file of "CASE WHAT IT DOES" lines, where "passes:"
	 * or "harmless:" may come before WHAT; NULL: none
	 */
	const char *profile;
	uint32_t wait_ms;  /* the longest wait for the target; at least 1 */
	uint32_t pause_ms; /* behind each MPA Reply, for targets that overlook what follows */
};

/** ddps_conform_options_init_sized - ddps_conform_options_init() for languages that cannot call it.
 * @o: filled
 * @size: what @o takes in the caller's memory; nothing is written beyond */
DDPS_API void ddps_conform_options_init_sized(struct ddps_conform_options *o, size_t size);

/** ddps_conform_options_init - self mode over TCP, all cases, waits of 5 s */
static inline void ddps_conform_options_init(struct ddps_conform_options *o)
{
	ddps_conform_options_init_sized(o, sizeof(*o));
}

/* Octets that went over the wire: a piece of a TCP stream, an SCTP user message or packet. */
struct ddps_conform_item {
	const struct ddps_conform_item *next;
	uint64_t ns; /* since the case began */
	const uint8_t *octets;
	size_t len;
	uint32_t by_target;    /* 1: the target sent it, 0: the peer */
	uint32_t connection;   /* of the case: 0, 1, ... */
	uint32_t wire;	       /* enum ddps_conform_wire */
	uint32_t stream, ppid; /* SCTP user message */
	uint32_t wrong;	       /* 1: a packet that the case made malformed on purpose */
	uint32_t reserved[2];
};

/* What became of a case.  All of it is good until the callback returns. */
struct ddps_conform_result {
	struct ddps_conform_case c;
	uint32_t verdict;  /* enum ddps_conform_verdict */
	uint32_t number;   /* of the case in this run, from 1 */
	const char *why;   /* FAIL, KNOWN, SKIP: one line; else "" */
	const char *known; /* what the profile says of this case, whatever came out; or NULL */
	uint64_t ns;	   /* it took so long */
	const struct ddps_conform_item *first; /* NULL: nothing was sent */
	uint32_t grade;			       /* enum ddps_conform_grade; of no meaning for SKIP */
	uint32_t reserved32;
	uint64_t reserved[3];
};

/* Called from inside ddps_conform_run(), in its thread; each may be NULL. */
struct ddps_conform_calls {
	size_t struct_size; /* sizeof(struct ddps_conform_calls) */
	void *user;
	/* Before each case.  Return: false to end the run here. */
	bool (*go_on)(void *user);
	/* After each case, those skipped too. */
	void (*result)(void *user, const struct ddps_conform_result *r);
};

struct ddps_conform_sum {
	uint32_t pass, fail, known, skip;
	uint32_t grade[4]; /* by enum ddps_conform_grade, those skipped not counted */
	uint32_t reserved[4];
};

/**
 * ddps_conform_case - look at the cases
 * @i:	0, 1, ...
 * @c:	filled on success
 *
 * Return: 0, or DDPS_E_INVAL: there are not so many.
 */
DDPS_API int ddps_conform_case(size_t i, struct ddps_conform_case *c);

/**
 * ddps_conform_run - run cases, one after the other
 * @o:		what and against whom
 * @calls:	NULL: none
 * @sum:	how many cases had which verdict; may be NULL.  All 0: no case has such a name, or
 *		none is for that wire
 * @why:	on an error one sentence that says what is wrong; may be NULL with @why_len 0
 * @why_len:	its size
 *
 * Blocks until all is done; a wait for the target takes at most wait_ms.  Opens sockets, and with
 * @command a process for each case, which is sent SIGTERM at the case's end.
 *
 * Return: 0: it ran, and @sum has the outcome; or DDPS_E_INVAL (@o or @calls), DDPS_E_UNSUPPORTED
 * (something is set behind what this release knows), DDPS_E_ADDRESS (the URI, or a profile that
 * cannot be read), DDPS_E_REFUSED (a responder cannot be reached, from the first case on),
 * DDPS_E_NOMEM.
 */
DDPS_API int ddps_conform_run(const struct ddps_conform_options *o,
			      const struct ddps_conform_calls *calls, struct ddps_conform_sum *sum,
			      char *why, size_t why_len);

/**
 * ddps_conform_print - the end of what went over the wire, in hexadecimal
 * @f:		written to; errors stay in ferror()
 * @r:		a result
 * @max:	show so many items at most; if there are more, a line says how many are left out
 * @indent:	in front of each item
 */
DDPS_API void ddps_conform_print(FILE *f, const struct ddps_conform_result *r, size_t max,
				 const char *indent);

/** ddps_conform_pcap_begin - the head of a capture file.  Return: 0 or DDPS_E_SYSTEM */
DDPS_API int ddps_conform_pcap_begin(FILE *f);

/**
 * ddps_conform_pcap_add - the packets of one case, made up around its octets
 * @f:	a file that ddps_conform_pcap_begin() began
 * @r:	a result; its number chooses the ports, so that cases can be told apart
 *
 * SCTP packets are written as they were, ports included, with DF set.  Those that a case made
 * malformed on purpose have the IP identification 0x0bad, others 0.
 *
 * Return: 0 or DDPS_E_SYSTEM.
 */
DDPS_API int ddps_conform_pcap_add(FILE *f, const struct ddps_conform_result *r);

#ifdef __cplusplus
}
#endif
#endif
