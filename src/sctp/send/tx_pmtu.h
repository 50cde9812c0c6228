/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_TX_PMTU_H
#define DDPS_SCTP_TX_PMTU_H
/*
 * How large a packet one path takes: packetization layer path MTU discovery (RFC 8899).
 *
 * A probe is a HEARTBEAT padded to a size, in a packet of its own, which the network must not
 * fragment.  This module says when to send one and of what size, takes the answers, and finds
 * out when packets that used to pass vanish ("black hole").  All sizes are those of whole IP
 * packets: IP header, UDP header if there is one, SCTP packet.
 *
 * No I/O, no heap, no errors; a call takes constant time.  Time is in nanoseconds.  One thread at
 * a time.
 */
#include <stdbool.h>
#include <stdint.h>

enum ddps_pmtu_state {
	DDPS_PMTU_OFF,	  /* path not confirmed, or lost: nothing is probed */
	DDPS_PMTU_BASE,	  /* is the base size taken? */
	DDPS_PMTU_SEARCH, /* looking for the largest */
	DDPS_PMTU_DONE,	  /* found; a larger one is tried later if the path is used */
	DDPS_PMTU_ERROR	  /* not even the base size passes: packets may be fragmented */
};

/* What the address family and the caller allow. */
struct ddps_pmtu_limits {
	uint16_t min;  /* size that is used, with fragmentation, if nothing larger passes */
	uint16_t base; /* sure to pass nearly everywhere */
	uint16_t max;  /* of the device, rounded down so that the SCTP packet is a multiple of 4 */
};

struct ddps_pmtu {
	struct ddps_pmtu_limits lim;
	enum ddps_pmtu_state state;
	uint16_t size;		     /* packets with data are at most so large */
	uint16_t probing;	     /* size that is asked for; 0: none */
	uint16_t fail;		     /* least size known not to pass; 0: none is known */
	uint16_t lost_min, lost_max; /* sizes of the lost packets that count for a black hole */
	uint16_t lost_large; /* the least of them that the base size would not take; 0: none */
	uint16_t ptb;	     /* what the last PTB that was believed said */
	uint8_t count;	     /* probes of this size sent, or lost */
	uint8_t late;	     /* to be set: how late its timers fire, in 4096ths */
	uint8_t holes, t3;   /* lost packets and timeouts since a packet of that size passed */
	bool fragment;	     /* packets may be fragmented by IP: send them without DF */
	bool out;	     /* a probe is on its way */
	bool smaller_passed; /* since the first loss that counts */
	bool asked;	     /* the probe of ->doubt has left, since the first loss that counts */
	bool used;	     /* data was sent since the last probe */
	bool near;	     /* the way does not leave the host */
	uint16_t doubt; /* a probe of this size shall go now: is it a hole, or is the path dead? */
	uint64_t sent_at;    /* of the probe on its way, else of the last */
	uint64_t next_at;    /* when something is due: probe, its time-out, raise; UINT64_MAX */
	uint64_t lost_pn;    /* the highest number of the lost packets that count */
	uint64_t last_pn;    /* of the lost packet counted last */
	uint64_t deaf_until; /* until then no PTB is believed */
	uint64_t backoff;    /* in ERROR: until the next tries */
	uint64_t raise;	     /* in DONE: the same; 10 minutes at most */
	uint32_t bad_ptb;    /* PTBs that were not believed */
	uint32_t black_holes;
};

/* Bits that calls return: what has changed. */
enum {
	DDPS_PMTU_SIZE = 1 << 0, /* ->size or ->fragment */
	DDPS_PMTU_HOLE = 1 << 1	 /* ... because of a black hole */
};

/**
 * ddps_pmtu_limits - the limits of a path
 * @ipv6:   address family
 * @device: MTU of the device, or the largest packet that the user allows
 *
 * IPv4: 576, 1200; IPv6: 1280, 1280.  A @device below these lowers them, down to 68 and to 1280.
 */
struct ddps_pmtu_limits ddps_pmtu_limits(bool ipv6, uint32_t device);

/* Not probing; ->size is the base size. */
void ddps_pmtu_init(struct ddps_pmtu *m, const struct ddps_pmtu_limits *lim);

/**
 * ddps_pmtu_start - the path is confirmed: begin
 * @hint: size that was right for another association with this peer; 0: none
 */
void ddps_pmtu_start(struct ddps_pmtu *m, uint16_t hint, uint64_t now);

/* The same where @size is likely to pass, since the way does not leave the host: it is asked first, and used
 * when it is answered.  A relay of this host may take less. */
void ddps_pmtu_start_likely(struct ddps_pmtu *m, uint16_t size, uint64_t now);

/* The path is lost: no probes.  The size is kept. */
void ddps_pmtu_stop(struct ddps_pmtu *m);

/* Use this size for ever, and probe nothing. */
void ddps_pmtu_fix(struct ddps_pmtu *m, uint16_t size);

/**
 * ddps_pmtu_probe - is a probe due
 * Return: its size, or 0.  The caller sends it (or tries again later), not limited by cwnd, and
 * then calls ddps_pmtu_probe_sent().
 */
static inline uint16_t ddps_pmtu_probe(const struct ddps_pmtu *m, uint64_t now)
{
	if (m->doubt)
		return m->doubt;
	return m->probing && !m->out && now >= m->next_at ? m->probing : 0;
}

/* The probe of @size has left.  @rto: the path's, without back-off, ns */
void ddps_pmtu_probe_sent(struct ddps_pmtu *m, uint16_t size, uint64_t rto, uint64_t now);

/**
 * ddps_pmtu_probe_acked - a HEARTBEAT ACK whose nonce belongs to a probe of @size has come
 *
 * The caller has checked the nonce.  An answer to an older probe counts as well.
 *
 * Return: bits as above.
 */
unsigned ddps_pmtu_probe_acked(struct ddps_pmtu *m, uint16_t size, uint64_t now);

/* The probe could not be sent, since the device's MTU is @device: see ddps_pmtu_local(). */
unsigned ddps_pmtu_local(struct ddps_pmtu *m, uint32_t device, uint64_t now);

/**
 * ddps_pmtu_ptb - ICMP says that the next hop takes @mtu only
 *
 * The caller has checked addresses, ports and the quoted verification tag (RFC 6951 5.5).  The
 * word of a router never sets the size: it is tried next.
 */
unsigned ddps_pmtu_ptb(struct ddps_pmtu *m, uint16_t mtu, uint64_t now);

/* A packet with data was delivered, number @pn, sent at @sent_at; 0: nobody knows which, or when.  Bits as
 * above. */
unsigned ddps_pmtu_delivered(struct ddps_pmtu *m, uint16_t size, uint64_t pn, uint64_t sent_at,
			     uint64_t srtt, uint64_t now);

/* A packet with data was lost.  The chunks of one packet have one @pn and are reported in a row. */
unsigned ddps_pmtu_lost(struct ddps_pmtu *m, uint16_t size, uint64_t pn, uint64_t now);

/* What was taken for lost has arrived: nothing is known of losses. */
void ddps_pmtu_false(struct ddps_pmtu *m);

/* What is likely to pass while losses make the size doubtful. */
uint16_t ddps_pmtu_sure(const struct ddps_pmtu *m);

/* Whether a packet of ->size was answered: it is neither too large nor is the path dead, as far as is known. */
static inline bool ddps_pmtu_answered(const struct ddps_pmtu *m)
{
	return m->state == DDPS_PMTU_SEARCH || m->state == DDPS_PMTU_DONE;
}

/* T3 has fired on the path, after its losses were reported. */
unsigned ddps_pmtu_timeout(struct ddps_pmtu *m, uint64_t now);

/* Time passes; to be called when ddps_pmtu_deadline() has come.  Bits as above. */
unsigned ddps_pmtu_timer(struct ddps_pmtu *m, uint64_t now);

/* When ddps_pmtu_timer() or a probe is due; UINT64_MAX: never. */
static inline uint64_t ddps_pmtu_deadline(const struct ddps_pmtu *m)
{
	return m->doubt ? 0 : m->next_at;
}

#endif
