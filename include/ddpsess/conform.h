/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_CONFORM_H
#define DDPSESS_CONFORM_H
/*
 * The conformance suite for iWARP, to be run from a program or a test of your own.  It consists of
 * a peer that speaks iWARP octet by octet, and of cases.  A case decides what the peer sends and
 * what must come back (RFC 5040, 5041, 5043, 5044, 6581, 7306).  The command "sessctl conform" uses
 * these functions.
 *
 * The target is what is tested.  It is any implementation behind a URI, as responder or as
 * initiator.  In self mode it is the stack of libddpsess in this process.
 *
 * A run:
 *
 *	struct ddps_conform_options o;
 *	struct ddps_conform_sum sum;
 *	char why[300];
 *
 *	ddps_conform_options_init(&o);
 *	o.uri = "tcp://192.0.2.1:7174";
 *	if (!ddps_conform_run(&o, NULL, &sum, why, sizeof why))
 *		printf("%" PRIu32 " cases failed\n", sum.fail);
 *
 * What the peer shares with libddpsess.  Nothing that frames, parses or decides: MPA, DDP, RDMAP,
 * SCTP, CRCs, markers, URIs and name lookup are written a second time, from the RFCs.  The suite
 * uses only public functions of libddpsess: sessions, for the application of a target in self mode,
 * and ddps_uri_check(), for the form of URIs.
 *
 * Threads: one run at a time in a process.  Link with libddpsess-conform and libddpsess.
 */
#include <ddpsess/err_codes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What carries the octets.  These are bits. */
enum ddps_conform_wire {
	DDPS_CONFORM_TCP = 1,
	DDPS_CONFORM_SCTP = 2,
	DDPS_CONFORM_PACKET = 4, /* of an item only: a whole SCTP packet (RFC 9260) */
	DDPS_CONFORM_IB = 8,	 /* IPv4 packets with UDP and InfiniBand: conform_ipoib.h */
	DDPS_CONFORM_TLS = 16,	 /* of a case: it is about TLS, and is run over tls:// only */
	DDPS_CONFORM_DTLS = 64,	 /* the same of DTLS and sctps:// */
	DDPS_CONFORM_SHM = 128	 /* of self mode only: shared memory in place of TCP */
};

/* The part that the target has. */
enum ddps_conform_role { DDPS_CONFORM_RESPONDER, DDPS_CONFORM_INITIATOR };

/* What came of a case. */
enum ddps_conform_verdict {
	DDPS_CONFORM_PASS,
	DDPS_CONFORM_FAIL,
	DDPS_CONFORM_KNOWN, /* it fails, and the profile says that it does */
	DDPS_CONFORM_SKIP,  /* it cannot be run against this target */
	/* It failed, and while it waited this host had no processor for the suite for a large part
	 * of the wait, twice: the target may be right. */
	DDPS_CONFORM_UNDECIDED
};

/*
 * How far the target keeps the rules of a case.  A case that passes is STRICT.  A case that fails
 * has the grade that the profile gives it.  Without one it is PASSES if the session had to end and
 * did, otherwise FAILS.
 */
enum ddps_conform_grade {
	DDPS_CONFORM_STRICT, /* to the octet, as the RFCs say */
	DDPS_CONFORM_PASSES, /* what the rule is for holds, but it is done or told in another way */
	DDPS_CONFORM_HARMLESS, /* something else happens, which harms no correct peer */
	DDPS_CONFORM_FAILS
};

/* How the wait ended in which a case failed.  For IPoIB a session is a connection, and a set-up what goes
 * over the link without one: ARP, and datagrams. */
enum ddps_conform_stop {
	DDPS_CONFORM_STOP_NONE,		  /* something came, and was wrong; or no wait failed */
	DDPS_CONFORM_STOP_SILENT_SETUP,	  /* nothing came, while a session was set up */
	DDPS_CONFORM_STOP_SILENT_SESSION, /* nothing came, in a session */
	DDPS_CONFORM_STOP_CLOSED_SETUP,	  /* the target ended it, while a session was set up */
	DDPS_CONFORM_STOP_CLOSED_SESSION, /* the target ended it, in a session */
	DDPS_CONFORM_STOP_WENT_ON,	  /* the target sent something, and had to end it */
	DDPS_CONFORM_STOP_GONE		  /* the target cannot be reached any more */
};

/* A case.  Texts are constant. */
struct ddps_conform_case {
	const char *name; /* unique, such as "mpa-crc-pad" */
	const char *ids;  /* requirements that it covers, separated by spaces */
	const char *rule; /* what must hold, one line */
	uint32_t wires;	  /* DDPS_CONFORM_TCP, DDPS_CONFORM_SCTP or both */
	uint32_t target;  /* enum ddps_conform_role */
	uint32_t self;	  /* 1: it has to control the target's application, so self mode only */
	uint32_t reserved;
	union {
		const char *area; /* what the cases next to it are about, for a title */
		uint32_t reserved_area[2];
	};
	uint32_t reserved_last[2];
};

struct ddps_secure_attr;

/* What to run, and against what.  Strings are borrowed for the run. */
struct ddps_conform_options {
	size_t struct_size; /* set by ddps_conform_options_init() */
	/*
	 * tcp://HOST:PORT, tls://HOST:PORT, shm:///PATH, shm://@NAME or
	 * sctp://HOST:PORT[?backend=...&encap=...]: the responder to test, or where to wait for an initiator.
	 * NULL: self mode, over @wire.
	 */
	const char *uri;
	uint32_t wire;	 /* self mode: DDPS_CONFORM_TCP, _SCTP or _SHM; ignored with a URI */
	uint32_t target; /* with a URI: enum ddps_conform_role */
	/* Initiator: a command that sh runs for each case.  It makes the target connect to
	 * $DDPS_URI.  If it still runs at the end of its case it gets SIGTERM.  NULL: none, the
	 * target connects by itself. */
	const char *command;
	const char *pattern; /* cases whose name matches, as for file names; NULL: all */
	/*
	 * What is known of the target already: "siw", "usrsctp", "linux-sctp", or the name of a
	 * file of at most 1 MiB.  Each of its lines has the name of a case, blanks, and what the
	 * target does instead, optionally with "passes:" or "harmless:" in front, which gives the
	 * grade.  '#' begins a comment.  NULL: none.
	 */
	const char *profile;
	/* The longest wait for the target, in milliseconds, 1..INT32_MAX.  If the target has sent
	 * no valid message in a set-up, or in a session, a wait there takes a quarter of the one before, and at
	 * least 50 ms. */
	uint32_t wait_ms;
	/* A pause behind each MPA Reply in milliseconds, for targets that overlook what follows it
	 * immediately. */
	uint32_t pause_ms;
	/* tls://: who the suite's peer is, and whose certificates it trusts, or its pre-shared keys
	 * (ddpsess/secure.h).  Lists of peers and of revoked certificates are not looked at. */
	const struct ddps_secure_attr *secure;
};

/**
 * ddps_conform_options_init_sized - ddps_conform_options_init() for languages that cannot call it
 * @o:		receives the defaults
 * @size:	the size of @o in the caller's memory, in octets; nothing is written beyond
 */
DDPS_API void ddps_conform_options_init_sized(struct ddps_conform_options *o, size_t size);

/**
 * ddps_conform_options_init - fill in the defaults
 * @o:		receives the defaults
 *
 * The defaults are: self mode over TCP, all cases, no profile, waits of 5 s, no pause.
 */
static inline void ddps_conform_options_init(struct ddps_conform_options *o)
{
	ddps_conform_options_init_sized(o, sizeof(*o));
}

/* Octets that went over the wire: a piece of a TCP stream, an SCTP user message or packet. */
struct ddps_conform_item {
	const struct ddps_conform_item *next; /* the next one in time, or NULL */
	uint64_t ns;			      /* since the case began, nanoseconds */
	const uint8_t *octets;
	size_t len;
	uint32_t by_target;    /* 1: the target sent it, 0: the peer */
	uint32_t connection;   /* of the case: 0, 1, ... */
	uint32_t wire;	       /* one of enum ddps_conform_wire */
	uint32_t stream, ppid; /* of an SCTP user message, otherwise 0 */
	uint32_t wrong;	       /* 1: a packet that the case made malformed on purpose */
	uint32_t reserved[2];
};

/* What became of a case.  It is valid, with all that it points to, until the callback returns. */
struct ddps_conform_result {
	struct ddps_conform_case c;
	uint32_t verdict;  /* enum ddps_conform_verdict */
	uint32_t number;   /* of the case in this run, from 1 */
	const char *why;   /* all but PASS: one line; else "" */
	const char *known; /* what the profile says of this case, whatever came out; or NULL */
	uint64_t ns;	   /* how long it took, nanoseconds */
	const struct ddps_conform_item *first; /* what went over the wire; NULL: nothing */
	uint32_t grade; /* enum ddps_conform_grade; no meaning for SKIP, UNDECIDED */
	uint32_t stop;	/* FAIL, KNOWN: enum ddps_conform_stop */
	union {
		const char
			*expected; /* FAIL, KNOWN: what was waited for, one line; NULL: see rule */
		uint64_t reserved_expected;
	};
	uint64_t reserved[2];
};

/* Functions of the program that a run calls, in its thread.  Each may be NULL. */
struct ddps_conform_calls {
	size_t struct_size; /* sizeof(struct ddps_conform_calls) */
	void *user;	    /* the first argument of both */
	/* Called before each case.  Return: true to go on, false to end the run here. */
	bool (*go_on)(void *user);
	/* Called after each case, also after one that was skipped. */
	void (*result)(void *user, const struct ddps_conform_result *r);
};

/* How many cases had which verdict, and which grade. */
struct ddps_conform_sum {
	uint32_t pass, fail, known, skip; /* by enum ddps_conform_verdict */
	uint32_t grade[4]; /* by enum ddps_conform_grade, without those skipped or undecided */
	uint32_t undecided;
	uint32_t reserved[3];
};

/**
 * ddps_conform_case - read the list of cases
 * @i:		which one, from 0 on
 * @c:		receives the case; unchanged on failure
 *
 * Thread safe.  Does not block.
 *
 * Return: 0, or DDPS_E_INVAL: there are not so many.
 */
DDPS_API int ddps_conform_case(size_t i, struct ddps_conform_case *c);

/**
 * ddps_conform_run - run cases, one after the other
 * @o:		what to run, and against what
 * @calls:	NULL: none
 * @sum:	receives the counts on success; may be NULL.  If all are 0, no case matches the
 *		pattern, or none is for that wire
 * @why:	receives, on an error one sentence that says what is wrong; may be NULL if @why_len
 *		is 0
 * @why_len:	octets of room at @why
 *
 * Blocks until all cases are done, or @calls ends the run.  A wait for the target takes at most
 * wait_ms.  The run opens sockets.  With a command it starts a process for each case.
 *
 * A case that lacks memory fails, and its result says so.
 *
 * The suite measures how late it wakes up while it waits.  If a case fails after a wait of which
 * this host spent a quarter or more, and at least 50 ms, without a processor for the suite, the case
 * is run once more.  If that is so again, its verdict is DDPS_CONFORM_UNDECIDED.  An initiator that
 * connects by itself is not asked to do so once more: there the first failure of this kind is
 * undecided.
 *
 * Return: 0: it ran, whatever the verdicts are; or
 * - DDPS_E_INVAL: a member of @o is out of range, there is a command but no initiator to wait for,
 *   or a struct_size is below that of this release
 * - DDPS_E_UNSUPPORTED: a member of a later release is set
 * - DDPS_E_ADDRESS: the URI is malformed or, for a responder, lacks host or port; or the profile
 *   cannot be read
 * - DDPS_E_REFUSED: the responder cannot be reached, from the first case on
 * - tls://: DDPS_E_NO_CERT, if @o has no credentials, and the errors of ddps_secure_open()
 */
DDPS_API int ddps_conform_run(const struct ddps_conform_options *o,
			      const struct ddps_conform_calls *calls, struct ddps_conform_sum *sum,
			      char *why, size_t why_len);

/**
 * ddps_conform_print - print the end of what went over the wire, in hexadecimal
 * @f:		where to print; errors stay in ferror()
 * @r:		a result
 * @max:	the most items to print.  If there are more, a line says how many are left out
 * @indent:	text in front of each item
 *
 * Of each item at most 64 octets are printed.
 */
DDPS_API void ddps_conform_print(FILE *f, const struct ddps_conform_result *r, size_t max,
				 const char *indent);

/**
 * ddps_conform_pcap_begin - write the head of a capture file
 * @f:		file, opened for writing
 *
 * @f is the program's, which also flushes and closes it.  Beyond the limit of a file's size
 * (ulimit -f) the system sends SIGXFSZ, as for any other write; a program that ignores it gets the error.
 *
 * Return: 0, or DDPS_E_SYSTEM: the file cannot be written.
 */
DDPS_API int ddps_conform_pcap_begin(FILE *f);

/**
 * ddps_conform_pcap_add - write the packets of one case, with made-up headers around its octets
 * @f:		file that ddps_conform_pcap_begin() began
 * @r:		a result; its number chooses the ports, so that cases can be told apart
 *
 * SCTP packets are written as they were, with their ports, and DF set.  Those that a case made
 * malformed on purpose have the IP identification 0x0bad, others 0.
 *
 * Return: 0, or DDPS_E_SYSTEM: the file cannot be written, or there is no memory.
 */
DDPS_API int ddps_conform_pcap_add(FILE *f, const struct ddps_conform_result *r);

#ifdef __cplusplus
}
#endif
#endif
