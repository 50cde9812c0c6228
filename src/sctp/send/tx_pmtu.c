/* SPDX-License-Identifier: BSD-2-Clause */
/* Packetization layer path MTU discovery of one path. */
#include "sctp/send/tx_pmtu.h"
#include <stddef.h>
#include <string.h>

#define MS	    1000000ull
#define SECOND	    (1000 * MS)
#define MAX_PROBES  3
#define PROBE_TIMER SECOND /* at least: RFC 8899 5.1.1 */
#define RAISE_TIMER (600 * SECOND)
/* Within a host, where what was lost had no room in a socket, as a rule; twice as long each time. */
#define RAISE_NEAR  (5 * SECOND)
#define BACKOFF_MAX (60 * SECOND)
#define PTB_DEAF    (60 * SECOND)
#define HOLE_LOSSES 3	/* packets in a row that vanish */
#define HOLE_T3	    2	/* timeouts that will do if nothing at all passes */
#define HOLE_PROVED 2	/* packets that will do if one had a timeout and a smaller one passes */
#define LEAST	    128 /* of IPv4: a HEARTBEAT without padding is smaller */
#define STEP	    20	/* the search ends when it is known this well */
#define EVER	    UINT64_MAX

/* Sizes that paths have, largest first; between them the search halves. */
static const uint16_t usual[] = {
	9000, 8900, 4352, 1500, 1492, 1480, 1454, 1420, 1400, 1380, 1280
};

/* The SCTP part is a multiple of 4, and so are the headers before it. */
static uint16_t whole_words(uint32_t size)
{
	return (uint16_t)(size & ~3u);
}

struct ddps_pmtu_limits ddps_pmtu_limits(bool ipv6, uint32_t device)
{
	struct ddps_pmtu_limits l = { .min = ipv6 ? 1280 : 576, .base = ipv6 ? 1280 : 1200 };
	uint32_t least = ipv6 ? 1280 : 68;

	/* IPv4's length counts its header: 65,532, rounded down, is the most with UDP and without.
	 * IPv6 would take a few octets more, which uint16_t does not */
	if (device < least)
		device = least;
	l.max = whole_words(device < UINT16_MAX ? device : UINT16_MAX);
	if (l.base > l.max)
		l.base = l.max;
	if (l.min > l.max)
		l.min = l.max;
	return l;
}

void ddps_pmtu_init(struct ddps_pmtu *m, const struct ddps_pmtu_limits *lim)
{
	memset(m, 0, sizeof *m);
	m->lim = *lim;
	m->size = lim->base;
	m->raise = RAISE_TIMER;
	m->next_at = EVER;
}

/* Paths whose search ended together are not to be asked together ever after. */
static uint64_t delay_by_lateness(const struct ddps_pmtu *m, uint64_t ns)
{
	return ns + ns / 4096 * m->late;
}

static void forget_losses(struct ddps_pmtu *m)
{
	m->holes = m->t3 = 0;
	m->lost_min = m->lost_max = m->lost_large = 0;
	m->smaller_passed = m->asked = false;
	m->doubt = 0;
}

static void ask_for_size(struct ddps_pmtu *m, uint16_t size, uint64_t now)
{
	m->probing = size;
	m->count = 0;
	m->out = false;
	m->next_at = now;
}

static uint64_t put_off_raise(struct ddps_pmtu *m, uint64_t now)
{
	const uint64_t at = now + delay_by_lateness(m, m->raise);

	m->raise = 2 * m->raise < RAISE_TIMER ? 2 * m->raise : RAISE_TIMER;
	return at;
}

static void end_search(struct ddps_pmtu *m, uint64_t now)
{
	m->state = DDPS_PMTU_DONE;
	m->probing = 0;
	m->out = false;
	m->next_at = m->size < m->lim.max ? put_off_raise(m, now) : EVER;
}

/* The next size worth asking for, or 0. */
static uint16_t candidate(const struct ddps_pmtu *m)
{
	uint32_t lo = m->size, hi = m->fail;

	if (lo >= m->lim.max)
		return 0;
	if (!hi || hi > m->lim.max) /* the largest first: one round trip on most paths */
		return m->lim.max;
	if (hi < lo + STEP)
		return 0;
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		if (whole_words(usual[i]) > lo && whole_words(usual[i]) < hi)
			return whole_words(usual[i]);
	return whole_words((lo + hi) / 2);
}

static void search(struct ddps_pmtu *m, uint64_t now)
{
	uint16_t next = candidate(m);

	m->state = DDPS_PMTU_SEARCH;
	if (next)
		ask_for_size(m, next, now);
	else
		end_search(m, now);
}

static void fall_to_base(struct ddps_pmtu *m, uint64_t now)
{
	m->state = DDPS_PMTU_BASE;
	m->size = m->lim.base;
	m->fragment = false;
	m->raise = m->near ? RAISE_NEAR : RAISE_TIMER;
	ask_for_size(m, m->lim.base, now);
}

/* Fragments get through where nothing else does: RFC 8899 5.2. */
static void error(struct ddps_pmtu *m, uint64_t now)
{
	m->state = DDPS_PMTU_ERROR;
	m->size = m->lim.min;
	m->fragment = true;
	m->backoff = PROBE_TIMER;
	forget_losses(m);
	ask_for_size(m, m->lim.min, now);
}

void ddps_pmtu_start(struct ddps_pmtu *m, uint16_t hint, uint64_t now)
{
	forget_losses(m);
	m->fail = 0;
	m->near = false;
	fall_to_base(m, now);
	hint = whole_words(hint < m->lim.max ? hint : m->lim.max);
	if (hint > m->lim.base) {
		m->size = hint;
		m->probing = hint;
	}
}

void ddps_pmtu_start_likely(struct ddps_pmtu *m, uint16_t size, uint64_t now)
{
	ddps_pmtu_start(m, 0, now);
	m->near = true;
	m->raise = RAISE_NEAR;
	size = whole_words(size < m->lim.max ? size : m->lim.max);
	if (size <= m->lim.base)
		return;
	m->state = DDPS_PMTU_SEARCH;
	ask_for_size(m, size, now);
}

void ddps_pmtu_stop(struct ddps_pmtu *m)
{
	m->state = DDPS_PMTU_OFF;
	m->out = false;
	m->probing = m->doubt = 0;
	m->next_at = EVER;
}

void ddps_pmtu_fix(struct ddps_pmtu *m, uint16_t size)
{
	ddps_pmtu_stop(m);
	m->size = size < m->lim.max ? size : m->lim.max;
	m->fragment = false;
}

void ddps_pmtu_probe_sent(struct ddps_pmtu *m, uint16_t size, uint64_t rto, uint64_t now)
{
	if (size == m->doubt) {
		m->doubt = 0;
		m->asked = true;
	}
	if (size != m->probing)
		return;
	m->out = true;
	m->used = false;
	m->sent_at = now;
	m->next_at = now + delay_by_lateness(m, 2 * rto > PROBE_TIMER ? 2 * rto : PROBE_TIMER);
}

/* Nothing is out in the states OFF and DONE. */
static void probe_lost(struct ddps_pmtu *m, uint64_t now)
{
	m->out = false;
	m->next_at = now;
	if (++m->count < MAX_PROBES)
		return;
	if (m->state == DDPS_PMTU_SEARCH) {
		m->fail = m->probing;
		search(m, now);
	} else if (m->state == DDPS_PMTU_ERROR) { /* from now on both in turn, seldom */
		ask_for_size(m, m->probing == m->lim.min ? m->lim.base : m->lim.min,
			     now + delay_by_lateness(m, m->backoff));
		m->backoff = 2 * m->backoff < BACKOFF_MAX ? 2 * m->backoff : BACKOFF_MAX;
	} else if (m->probing > m->lim.base) { /* the hint was wrong */
		fall_to_base(m, now);
	} else {
		error(m, now);
	}
}

/*
 * Something of this size passed.  Of smaller ones only what was sent after those that are taken for lost
 * says anything: else they may just be on their way, on a path that has become slower.
 */
static void passed(struct ddps_pmtu *m, uint16_t size, uint64_t pn)
{
	if (!m->holes)
		return;
	if (size >= m->lost_max)
		forget_losses(m);
	else if (pn > m->lost_pn)
		m->smaller_passed = true;
}

static bool proved(const struct ddps_pmtu *m)
{
	if (m->smaller_passed && m->t3)
		return m->holes >= HOLE_PROVED;
	return m->holes >= HOLE_LOSSES && (m->smaller_passed || m->t3 >= HOLE_T3);
}

/*
 * What used to pass vanishes, and it is not the path that is dead.  Of packets that the base size would
 * take that is said only if one more is lost (@lost) after a smaller one has passed: silence alone is an
 * outage, and whoever sends small packets is not to be slowed by each of those.
 */
static bool hole(struct ddps_pmtu *m, bool lost, uint64_t now)
{
	bool at_base = m->state == DDPS_PMTU_BASE && m->size <= m->lim.base;
	bool small = m->lost_max <= m->lim.base;

	if (!proved(m) || (small && !at_base && !(m->smaller_passed && lost)))
		return false;
	m->black_holes++;
	/* when all is silent it may also be an outage: then the search begins anew */
	m->fail = m->smaller_passed ? m->lost_large : 0;
	forget_losses(m);
	if (small || at_base) /* the base does not pass either */
		error(m, now);
	else
		fall_to_base(m, now);
	return true;
}

/* The bits for what has changed since. */
static unsigned get_changed_bits(const struct ddps_pmtu *m, uint16_t size, bool fragment,
				 bool was_hole)
{
	unsigned bits = was_hole ? DDPS_PMTU_HOLE : 0;

	return m->size != size || m->fragment != fragment ? bits | DDPS_PMTU_SIZE : bits;
}

unsigned ddps_pmtu_probe_acked(struct ddps_pmtu *m, uint16_t size, uint64_t now)
{
	uint16_t was = m->size;
	bool fragment = m->fragment, was_hole;

	if (m->state == DDPS_PMTU_OFF || size > m->lim.max)
		return 0;
	passed(m, size, m->asked ? UINT64_MAX : 0); /* an answer from before says nothing */
	was_hole = hole(m, false, now);
	if (m->fail && size >= m->fail)
		m->fail = 0;
	if (m->ptb && size > m->ptb && now >= m->deaf_until) /* a router lied */
		m->deaf_until = now + PTB_DEAF;
	if (m->state == DDPS_PMTU_ERROR && size >= m->lim.min) {
		m->fragment = false;
		m->fail = 0;
		m->size = size;
		search(m, now);
	} else if (m->state == DDPS_PMTU_BASE && size >= m->lim.base) {
		m->size = size > m->size ? size : m->size;
		if (m->probing <= m->size)
			search(m, now);
	} else if (size > m->size) { /* as all is that is searched for */
		m->size = size;
		if (m->state == DDPS_PMTU_SEARCH && m->probing <= m->size)
			search(m, now);
	}
	return get_changed_bits(m, was, fragment, was_hole);
}

unsigned ddps_pmtu_local(struct ddps_pmtu *m, uint32_t device, uint64_t now)
{
	uint16_t was = m->size, max = whole_words(device < UINT16_MAX ? device : UINT16_MAX);
	bool fragment = m->fragment;

	if (max < 68)
		max = 68;
	m->lim.max = max;
	if (m->lim.base > max)
		m->lim.base = max;
	if (m->lim.min > max)
		m->lim.min = max;
	if (m->size > max)
		m->size = max;
	if (m->fail > max)
		m->fail = 0;
	if (m->state == DDPS_PMTU_SEARCH || m->state == DDPS_PMTU_DONE)
		search(m, now);
	else if (m->probing > max)
		ask_for_size(m, max, now);
	return get_changed_bits(m, was, fragment, false);
}

unsigned ddps_pmtu_ptb(struct ddps_pmtu *m, uint16_t mtu, uint64_t now)
{
	uint16_t was = m->size, asked = m->probing > was ? m->probing : was;
	bool fragment = m->fragment;

	mtu = whole_words(mtu);
	if (m->state == DDPS_PMTU_OFF || m->state == DDPS_PMTU_ERROR || mtu < m->lim.min ||
	    mtu >= asked || now < m->deaf_until) { /* RFC 8899 4.6.2 */
		m->bad_ptb++;
		return 0;
	}
	m->ptb = mtu;
	/* unless all this is known and something smaller is in use: that goes on */
	if (mtu < m->lim.base && mtu < m->size) {
		if (m->state == DDPS_PMTU_BASE || m->size <= m->lim.base)
			error(m, now);
		else
			fall_to_base(m, now);
	} else if (mtu == m->size) {
		m->fail = asked;
		end_search(m, now);
	} else {
		m->fail = asked;
		m->state = DDPS_PMTU_SEARCH;
		if (mtu < m->size)
			m->size = m->lim.base;
		if (mtu > m->size)
			ask_for_size(m, mtu, now);
		else
			search(m, now);
	}
	return get_changed_bits(m, was, fragment, false);
}

unsigned ddps_pmtu_delivered(struct ddps_pmtu *m, uint16_t size, uint64_t pn, uint64_t sent_at,
			     uint64_t srtt, uint64_t now)
{
	uint16_t was = m->size;
	bool fragment = m->fragment, was_hole;

	m->used = true;
	if (m->state == DDPS_PMTU_OFF)
		return 0;
	/* one that is larger than those now came in fragments */
	passed(m, size <= m->size ? size : 0, pn);
	was_hole = hole(m, false, now);
	/* lost earlier than its timer says, when what was sent after it has arrived */
	if (m->out && srtt && sent_at > m->sent_at && now - m->sent_at >= 3 * srtt)
		probe_lost(m, now);
	return get_changed_bits(m, was, fragment, was_hole);
}

/* What passes any path: IPv6 has none that is narrower than its least size. */
static uint16_t get_least_mtu(const struct ddps_pmtu *m)
{
	return m->lim.min < m->lim.base ? LEAST : m->lim.min;
}

unsigned ddps_pmtu_lost(struct ddps_pmtu *m, uint16_t size, uint64_t pn, uint64_t now)
{
	uint16_t was = m->size;
	bool fragment = m->fragment;

	if (m->state == DDPS_PMTU_OFF || m->fragment || size <= get_least_mtu(m) ||
	    size > m->size || (m->holes && pn == m->last_pn))
		return 0;
	if (!m->holes) {
		m->lost_min = m->lost_max = size;
		m->lost_large = 0;
		m->lost_pn = 0;
		m->smaller_passed = false;
	}
	m->last_pn = pn;
	m->lost_pn = pn > m->lost_pn ? pn : m->lost_pn;
	if (m->holes < UINT8_MAX)
		m->holes++;
	m->lost_min = size < m->lost_min ? size : m->lost_min;
	m->lost_max = size > m->lost_max ? size : m->lost_max;
	if (size > m->lim.base && (!m->lost_large || size < m->lost_large))
		m->lost_large = size;
	return get_changed_bits(m, was, fragment, hole(m, true, now));
}

void ddps_pmtu_false(struct ddps_pmtu *m)
{
	forget_losses(m);
}

/* The largest size below all that was lost; after more timeouts one that is smaller. */
static uint16_t get_smaller_mtu(const struct ddps_pmtu *m)
{
	const uint16_t sizes[] = { m->lim.base, m->lim.min, get_least_mtu(m) };
	uint16_t found = 0;
	unsigned n = m->t3;

	for (unsigned i = 0; n && i < sizeof sizes / sizeof *sizes; i++) {
		if (sizes[i] >= m->lost_min || sizes[i] == found)
			continue;
		found = sizes[i];
		n--;
	}
	return found;
}

uint16_t ddps_pmtu_sure(const struct ddps_pmtu *m)
{
	return m->holes && m->lost_min <= m->lim.base ? m->lim.min : m->lim.base;
}

unsigned ddps_pmtu_timeout(struct ddps_pmtu *m, uint64_t now)
{
	uint16_t was = m->size;
	bool fragment = m->fragment;

	if (!m->holes)
		return 0;
	if (m->t3 < UINT8_MAX)
		m->t3++;
	/* an answer says within one round trip whether the path is dead or too narrow */
	m->doubt = get_smaller_mtu(m);
	return get_changed_bits(m, was, fragment, hole(m, true, now));
}

unsigned ddps_pmtu_timer(struct ddps_pmtu *m, uint64_t now)
{
	uint16_t was = m->size;
	bool fragment = m->fragment;

	if (now < m->next_at)
		return 0;
	if (m->out) {
		probe_lost(m, now);
	} else if (m->state == DDPS_PMTU_DONE && m->used) {
		m->fail = 0;
		search(m, now);
	} else if (m->state == DDPS_PMTU_DONE) {
		m->next_at = put_off_raise(m, now);
	}
	return get_changed_bits(m, was, fragment, false);
}
