/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Crossed REQs between two IPoIB-CM nodes (src/ipoib_cm/cm/peer.c on top of cm.c), for spin.
 *
 * Node 0 has the larger key, node 1 the smaller.  Both want a connection.  The network is a
 * set of messages: any of them may be delivered next (reordering), stay after its delivery
 * (duplication) or vanish (loss).  Losses, duplicates, timers that fire while messages are
 * still under way and exchanges that give up are limited by the budgets below; the order of
 * everything is free.  So each run ends, and where it ends the claims are checked: nothing
 * is in flight, no timer runs, each node has a connection to send on, and there is one.
 *
 * BARE0, BARE1: 1 if that node follows the comparison rule of RFC 4755 3.3 and no more.
 * ALLOW_TWO: do not claim that only one is left, for a node that cannot promise it.
 * SHOW_CLOSE, SHOW_WITHDRAW: claim that the rules beyond the RFC's are never needed.  To be
 * refuted, so that the proof is known to have met those cases.
 */
#ifndef LOSS
#define LOSS 1
#endif
#ifndef DUP
#define DUP 1
#endif
#ifndef EARLY
#define EARLY 1
#endif
#ifndef EXPIRE
#define EXPIRE 1
#endif
#ifndef BARE0
#define BARE0 0
#endif
#ifndef BARE1
#define BARE1 0
#endif
#define ATTEMPTS 4 /* of one node, and ... */
#define LIVES	 5 /* passive connections one REQ may bring about: asserted to suffice */

/* Attempts are numbered through; those of node 0 come first. */
#define NATT	   (2 * ATTEMPTS)
#define ACTIVE(x)  ((x) / ATTEMPTS)
#define PASSIVE(x) (1 - (x) / ATTEMPTS)
#define LARGER	   0

/* Messages of an attempt.  From the REP on they name a passive connection by its life. */
#define REQ	 0
#define REJ	 1 /* reason 28 */
#define REJ_OLD	 2 /* reason 10 */
#define REP	 3
#define RTU	 4
#define REJ_REP	 5
#define DREQ_A	 6 /* sent by the active side */
#define DREQ_P	 7
#define DREP_A	 8
#define DREP_P	 9
#define PER_LIFE 7 /* REP ... DREP_P */
#define NMSG	 (REP + LIVES * PER_LIFE)

/* An attempt at its active side, */
#define A_NONE	    0
#define A_REQ_OUT   1
#define A_UP	    2
#define A_WITHDRAWN 3
#define A_DREQ	    4
#define A_GONE	    5

/* and at its passive side. */
#define P_NONE	  0
#define P_REP_OUT 1
#define P_UP	  2
#define P_DREQ	  3
#define P_GONE	  4 /* timewait: its keys may or may not be known still */

bit msg[NATT * NMSG];
byte in_flight;
byte act[NATT];
byte pas[NATT];
byte life[NATT];   /* of the passive connection: 0, 1 ... */
byte remote[NATT]; /* which life the active side is connected to */
byte cur[2];	   /* the current attempt of a node */
bit failed[2];	   /* in back-off */
bit crossed[2];	   /* an inbound REQ was accepted since the own REQ */
byte loss = LOSS;
byte dup = DUP;
byte early = EARLY;
byte expire = EXPIRE;

/* Scratch variables, zero between steps. */
short at;
byte left, kind, who, n, a, i;
bit busy;
byte live, half;

#define BARE(x) ((x) == 0 && BARE0 || (x) == 1 && BARE1)

/* Some attempt of the other node is in this state at its passive side, which is node x. */
#define INBOUND(x, s)                                                                    \
	(pas[(1 - x) * ATTEMPTS] == s || pas[(1 - x) * ATTEMPTS + 1] == s ||             \
	 pas[(1 - x) * ATTEMPTS + 2] == s || pas[(1 - x) * ATTEMPTS + 3] == s)
#define WANTS(x)                                                                         \
	(act[cur[x]] != A_UP && act[cur[x]] != A_REQ_OUT && !INBOUND(x, P_UP) &&         \
	 !INBOUND(x, P_REP_OUT))

/* Both ends of the attempt at hand agree on one connection. */
#define LINKED (act[a] == A_UP && pas[a] == P_UP && remote[a] == life[a])
/* The active side would answer the REP that is out. */
#define ANSWERS                                                                          \
	(act[a] == A_REQ_OUT || act[a] == A_WITHDRAWN ||                                 \
	 (act[a] == A_UP && remote[a] == life[a]))

#define SEND(x, what, l)                                                                 \
	if                                                                               \
	:: msg[(x) * NMSG + (what) + (l) * PER_LIFE] == 0 ->                             \
		msg[(x) * NMSG + (what) + (l) * PER_LIFE] = 1;                           \
		in_flight++                                                              \
	:: else                                                                          \
	fi

#define EACH(what)                                                                       \
	a = 0;                                                                           \
	do                                                                               \
	:: a < NATT -> what(); a++                                                       \
	:: else -> break                                                                 \
	od;                                                                              \
	a = 0

#define CONNECT(x)                                                                       \
	if                                                                               \
	:: act[cur[x]] != A_NONE -> cur[x]++                                             \
	:: else                                                                          \
	fi;                                                                              \
	assert(cur[x] < (x + 1) * ATTEMPTS);                                             \
	failed[x] = 0;                                                                   \
	crossed[x] = 0;                                                                  \
	act[cur[x]] = A_REQ_OUT;                                                         \
	SEND(cur[x], REQ, 0)

inline on_req()
{
	if
	:: pas[a] == P_REP_OUT || pas[a] == P_UP || pas[a] == P_DREQ /* duplicate */
	:: pas[a] == P_GONE -> SEND(a, REJ_OLD, 0)
	:: pas[a] == P_NONE || pas[a] == P_GONE ->
		if
		:: act[cur[who]] == A_REQ_OUT && who == LARGER -> SEND(a, REJ, 0)
		:: else ->
			assert(life[a] < LIVES);
			pas[a] = P_REP_OUT;
			crossed[who] = 1;
			SEND(a, REP, life[a])
		fi
	fi
}

inline on_rep()
{
	if
	:: act[a] == A_REQ_OUT ->
		act[a] = A_UP;
		remote[a] = n;
		SEND(a, RTU, n)
	:: act[a] == A_UP && remote[a] == n -> SEND(a, RTU, n)
	:: act[a] == A_WITHDRAWN -> SEND(a, REJ_REP, n)
	:: else
	fi
}

/* The passive connection of the attempt ends; a REQ after that starts another life. */
inline end_passive(state)
{
	pas[a] = state;
	life[a]++
}

/* An inbound connection is up: it replaces one that the same node asked for before. */
inline close_older()
{
	i = ACTIVE(a) * ATTEMPTS;
	do
	:: i < ACTIVE(a) * ATTEMPTS + ATTEMPTS ->
		if
		:: i != a && pas[i] == P_UP -> pas[i] = P_DREQ; SEND(i, DREQ_P, life[i])
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

/* The part that RFC 4755 does not have. */
inline settle()
{
	if
	:: act[cur[who]] == A_REQ_OUT ->
#ifdef SHOW_WITHDRAW
		assert(false);
#endif
		act[cur[who]] = A_WITHDRAWN
	:: act[cur[who]] == A_UP && who == LARGER ->
#ifdef SHOW_CLOSE
		assert(false);
#endif
		act[cur[who]] = A_DREQ;
		SEND(cur[who], DREQ_A, remote[cur[who]])
	:: else
	fi
}

inline on_rtu()
{
	if
	:: pas[a] == P_REP_OUT && life[a] == n ->
		pas[a] = P_UP;
		failed[who] = 0;
		close_older();
		if
		:: BARE(who)
		:: else -> settle()
		fi
	:: else
	fi
}

inline on_rej(backoff)
{
	if
	:: act[a] == A_REQ_OUT -> act[a] = A_GONE; failed[who] = backoff
	:: else
	fi
}

inline on_dreq_a()
{
	if
	:: life[a] == n && (pas[a] == P_REP_OUT || pas[a] == P_UP || pas[a] == P_DREQ) ->
		end_passive(P_GONE)
	:: else
	fi;
	SEND(a, DREP_P, n)
}

inline on_dreq_p()
{
	if
	:: remote[a] == n && (act[a] == A_UP || act[a] == A_DREQ) -> act[a] = A_GONE
	:: else
	fi;
	SEND(a, DREP_A, n)
}

inline deliver()
{
	if
	:: kind == REQ -> who = PASSIVE(a); on_req()
	:: kind == REJ -> who = ACTIVE(a); on_rej(!crossed[who])
	:: kind == REJ_OLD -> who = ACTIVE(a); on_rej(1)
	:: kind == REP -> who = ACTIVE(a); on_rep()
	:: kind == RTU -> who = PASSIVE(a); on_rtu()
	:: kind == REJ_REP ->
		if
		:: pas[a] == P_REP_OUT && life[a] == n -> end_passive(P_NONE)
		:: else
		fi
	:: kind == DREQ_A -> on_dreq_a()
	:: kind == DREQ_P -> on_dreq_p()
	:: kind == DREP_P ->
		if
		:: act[a] == A_DREQ && remote[a] == n -> act[a] = A_GONE
		:: else
		fi
	:: kind == DREP_A ->
		if
		:: pas[a] == P_DREQ && life[a] == n -> end_passive(P_GONE)
		:: else
		fi
	fi
}

/* Any message in flight may be next: stop at one, or pass it by if there are more. */
inline pick()
{
	left = in_flight;
	do
	:: msg[at] == 1 -> break
	:: msg[at] == 1 && left > 1 -> left--; at++
	:: msg[at] == 0 -> at++
	od;
	a = at / NMSG;
	kind = at % NMSG;
	do
	:: kind >= REP + PER_LIFE -> kind = kind - PER_LIFE; n++
	:: else -> break
	od
}

inline pick_attempt()
{
	do
	:: a < NATT - 1 -> a++
	:: break
	od
}

inline clear()
{
	at = 0; left = 0; kind = 0; who = 0; n = 0; a = 0; i = 0; busy = 0
}

inline resend()
{
	if
	:: act[a] == A_REQ_OUT -> SEND(a, REQ, 0); busy = 1
	:: act[a] == A_DREQ -> SEND(a, DREQ_A, remote[a]); busy = 1
	:: else
	fi;
	if
	:: pas[a] == P_REP_OUT -> SEND(a, REP, life[a]); busy = 1
	:: pas[a] == P_DREQ -> SEND(a, DREQ_P, life[a]); busy = 1
	:: else
	fi
}

/* All retries of a REP are used up that nobody is going to answer; else as above. */
inline resend_or_end()
{
	if
	:: pas[a] == P_REP_OUT && !ANSWERS -> end_passive(P_NONE); busy = 1
	:: else -> resend()
	fi
}

/* An exchange gives up although a message of it may be under way. */
inline give_up()
{
	if
	:: act[a] == A_REQ_OUT -> act[a] = A_GONE; failed[ACTIVE(a)] = 1
	:: act[a] == A_DREQ -> act[a] = A_GONE
	:: pas[a] == P_REP_OUT -> end_passive(P_NONE)
	:: pas[a] == P_DREQ -> end_passive(P_GONE)
	:: else
	fi
}

/*
 * One end is up, the other not: the first packet sent on it fails, or it stays idle for too
 * long; either way it is closed.
 */
inline find_half_open()
{
	if
	:: act[a] == A_UP && !LINKED ->
		act[a] = A_DREQ;
		SEND(a, DREQ_A, remote[a]);
		busy = 1
	:: pas[a] == P_UP && !LINKED ->
		pas[a] = P_DREQ;
		SEND(a, DREQ_P, life[a]);
		busy = 1
	:: else
	fi
}

inline retry(x)
{
	if
	:: !busy && WANTS(x) -> CONNECT(x); busy = 1
	:: else
	fi
}

inline count()
{
	if
	:: LINKED -> live++
	:: else ->
		half = half + (act[a] == A_UP) + (pas[a] == P_UP)
	fi
}

init {
	cur[1] = ATTEMPTS;
	do
	:: atomic { in_flight > 0 ->
		pick();
		if
		:: msg[at] = 0; in_flight--; deliver()
		:: dup > 0 -> dup--; deliver()
		:: loss > 0 -> loss--; msg[at] = 0; in_flight--
		fi;
		clear() }
	:: atomic { WANTS(0) && !failed[0] -> CONNECT(0); clear() }
	:: atomic { WANTS(1) && !failed[1] -> CONNECT(1); clear() }
	:: atomic { early > 0 && in_flight > 0 ->
		early--;
		pick_attempt();
		resend();
		clear() }
	:: atomic { expire > 0 && in_flight > 0 ->
		expire--;
		pick_attempt();
		give_up();
		clear() }
	/* The time for which a withdrawn attempt is remembered is over. */
	:: atomic { act[cur[0]] == A_WITHDRAWN -> act[cur[0]] = A_GONE }
	:: atomic { act[cur[1]] == A_WITHDRAWN -> act[cur[1]] = A_GONE }
	:: else -> atomic {
		/* Nothing moves: every timer fires; then packets, then back-off is over. */
		EACH(resend_or_end);
		if
		:: !busy -> EACH(find_half_open)
		:: else
		fi;
		retry(0);
		retry(1);
		if
		:: !busy -> break
		:: else
		fi;
		clear() }
	od;
	clear();
	EACH(count);
	assert(live > 0);
#ifndef ALLOW_TWO
	assert(live < 2);
	assert(half == 0);
#endif
}
