/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion control and pacing of one path. */
#include "sctp/send/tx_cc.h"
#include <string.h>

#define INITIAL_MAX (256u << 10)
#define BETA	    0.7		 /* RFC 9438 4.6 */
#define C_CUBIC	    0.4		 /* segments per second cubed, RFC 9438 5 */
#define FRIENDLY    (9.0 / 17.0) /* 3 (1 - b) / (1 + b), RFC 9438 4.3 */
#define MS	    1000000ull
#define SECOND	    1e9
#define RTT_MIN_N   8 /* samples that a round needs, RFC 9406 4.3 */
#define CSS_ROUNDS  5
#define CSS_DIVISOR 4
#define GAIN_SLOW   2.0
#define GAIN	    1.25

static uint64_t initial_window(uint32_t smss)
{
	uint64_t ten = 10ull * smss;

	/* RFC 6928, but with large packets less than 10 of them, and more than its two */
	return ten < INITIAL_MAX ? ten : INITIAL_MAX;
}

/* @x is more than 0. */
static double cube_root(double x)
{
	double y = x > 1 ? x : 1;

	for (int i = 0; i < 128; i++) { /* Newton; once an epoch */
		double z = (2 * y + x / (y * y)) / 3;

		if (z >= y)
			break;
		y = z;
	}
	return y;
}

void ddps_cc_init(struct ddps_cc *cc, uint32_t smss, uint64_t grain)
{
	memset(cc, 0, sizeof *cc);
	cc->smss = smss;
	cc->grain = grain;
	cc->cwnd = initial_window(smss);
	cc->ssthresh = DDPS_CC_NO_LIMIT;
	cc->rtt_cur = UINT64_MAX;
}

static double co(const struct ddps_cc *cc)
{
	return C_CUBIC * cc->smss;
}

static void find_k(struct ddps_cc *cc)
{
	double left = cc->w_max - (double)cc->cwnd;

	cc->k = left > 0 ? cube_root(left / co(cc)) : 0;
}

void ddps_cc_set_smss(struct ddps_cc *cc, uint32_t smss)
{
	if (smss == cc->smss)
		return;
	cc->smss = smss;
	if (!cc->used)
		cc->cwnd = initial_window(smss);
	cc->epoch = 0; /* the curve goes on from here with the new slope */
}

/* ---- pacing ---- */

static double per_ns(const struct ddps_cc *cc)
{
	bool slow = cc->phase == DDPS_CC_SLOW || cc->phase == DDPS_CC_CSS;
	uint64_t window = cc->cwnd;

	if (!cc->srtt)
		return 0;
	/* PRR moves cwnd with what is in flight; the rate aims at where it ends */
	if (cc->phase == DDPS_CC_RECOVER && window < cc->ssthresh)
		window = cc->ssthresh;
	return (slow ? GAIN_SLOW : GAIN) * (double)window / (double)cc->srtt;
}

double ddps_cc_rate(const struct ddps_cc *cc)
{
	return per_ns(cc) * SECOND;
}

static double get_bucket_size(const struct ddps_cc *cc, double rate)
{
	double least = 2.0 * cc->smss, b = rate * (double)MS;

	if (b > DDPS_CC_BUNDLE)
		b = DDPS_CC_BUNDLE;
	return b > least ? b : least;
}

static void refill(struct ddps_cc *cc, double rate, double size, uint64_t now)
{
	double more = rate * (double)(now - cc->tokens_at);

	cc->tokens_at = now;
	cc->tokens = cc->tokens + more < size ? cc->tokens + more : size;
}

/* After a pause of more than one RTO the window is a guess of old: 9260-7.2.1-10. */
static void shrink_after_idle(struct ddps_cc *cc, uint64_t rto, uint64_t now)
{
	uint64_t pause = now - cc->sent_at, n = pause / rto, keep = initial_window(cc->smss);
	uint64_t most = cc->cwnd / 4 * 3;

	if (cc->ssthresh != DDPS_CC_NO_LIMIT && cc->ssthresh < most)
		cc->ssthresh = most;
	if (cc->cwnd > keep) {
		cc->cwnd = n < 64 ? cc->cwnd >> n : 0;
		if (cc->cwnd < keep)
			cc->cwnd = keep;
		if (cc->phase != DDPS_CC_RECOVER && cc->cwnd < cc->ssthresh &&
		    cc->ssthresh != DDPS_CC_NO_LIMIT)
			cc->phase = DDPS_CC_SLOW;
	}
	if (cc->epoch)
		cc->epoch += pause;
	cc->sent_at = now;
}

uint64_t ddps_cc_room(struct ddps_cc *cc, uint64_t flight, uint64_t rto, uint64_t now,
		      uint64_t *wait)
{
	uint64_t most = DDPS_CC_BUNDLE;

	*wait = 0;
	if (!flight && cc->used && rto && now > cc->sent_at && now - cc->sent_at > rto)
		shrink_after_idle(cc, rto, now);
	if (!flight && cc->cwnd < cc->smss) /* PRR had none to give; no acknowledgement will come */
		cc->cwnd = cc->smss;
	if (flight >= cc->cwnd || (cc->after_t3 && flight)) { /* 9260-7.2.1-2 */
		cc->limited = true;
		return 0;
	}
	if (cc->srtt) {
		double rate = per_ns(cc), size = get_bucket_size(cc, rate), need;

		refill(cc, rate, size, now);
		need = (size < DDPS_CC_BUNDLE ? size : DDPS_CC_BUNDLE) - cc->tokens;
		if (cc->tokens <= 0 && need / rate >= (double)cc->grain) {
			cc->limited = true;
			*wait = now + (uint64_t)(need / rate);
			return 0;
		}
		most = (uint64_t)size;
	}
	return cc->cwnd - flight < most ? cc->cwnd - flight : most;
}

void ddps_cc_sent(struct ddps_cc *cc, uint64_t size, uint64_t flight, uint64_t now)
{
	cc->used = true;
	cc->sent_at = now;
	if (cc->srtt)
		cc->tokens -= (double)size;
	if (flight > cc->max_flight)
		cc->max_flight = flight;
	if (cc->phase == DDPS_CC_RECOVER)
		cc->prr_out += size;
}

/* ---- growth ---- */

static void avoid(struct ddps_cc *cc)
{
	cc->phase = DDPS_CC_AVOID;
	cc->epoch = 0;
}

/* RFC 9406 4.2, the first slow start only. */
static void hystart(struct ddps_cc *cc, const struct ddps_cc_ack *ack)
{
	uint64_t eta = cc->rtt_last / 8;

	if (ack->rtt && ack->rtt < cc->rtt_cur)
		cc->rtt_cur = ack->rtt;
	cc->rtt_n += ack->rtt != 0;
	eta = eta < 4 * MS ? 4 * MS : eta > 16 * MS ? 16 * MS : eta;
	if (cc->rtt_n >= RTT_MIN_N && cc->rtt_last) {
		if (cc->phase == DDPS_CC_SLOW && cc->rtt_cur >= cc->rtt_last + eta) {
			cc->rtt_css = cc->rtt_cur;
			cc->css_rounds = 0;
			cc->phase = DDPS_CC_CSS;
		} else if (cc->phase == DDPS_CC_CSS && cc->rtt_cur < cc->rtt_css) {
			cc->phase = DDPS_CC_SLOW;
		}
	}
	if (!ack->round)
		return;
	cc->rtt_last = cc->rtt_cur == UINT64_MAX ? 0 : cc->rtt_cur;
	cc->rtt_cur = UINT64_MAX;
	cc->rtt_n = 0;
	if (cc->phase == DDPS_CC_CSS && ++cc->css_rounds >= CSS_ROUNDS) {
		cc->ssthresh = cc->cwnd;
		avoid(cc);
	}
}

static double curve(const struct ddps_cc *cc, double t)
{
	double d = t - cc->k;

	return co(cc) * d * d * d + cc->w_max;
}

static void epoch_begins(struct ddps_cc *cc, uint64_t now)
{
	cc->epoch = now ? now : 1;
	if (cc->w_max < (double)cc->cwnd)
		cc->w_max = (double)cc->cwnd;
	find_k(cc);
	cc->w_est = (double)cc->cwnd;
	if (cc->cwnd_prior < cc->w_est)
		cc->cwnd_prior = cc->w_est;
	cc->part = 0;
}

/* RFC 9438 4.2 to 4.5, in octets. */
static void cubic(struct ddps_cc *cc, const struct ddps_cc_ack *ack)
{
	double cwnd = (double)cc->cwnd, acked = (double)ack->acked, t, target, more;

	if (!cc->epoch)
		epoch_begins(cc, ack->now);
	if (acked > cwnd)
		acked = cwnd;
	t = ack->now > cc->epoch ? (double)(ack->now - cc->epoch) / SECOND : 0;
	target = curve(cc, t + (double)ack->srtt / SECOND);
	target = target < cwnd ? cwnd : target > 1.5 * cwnd ? 1.5 * cwnd : target;
	cc->w_est += (cc->w_est >= cc->cwnd_prior ? 1 : FRIENDLY) * cc->smss * acked / cwnd;
	more = (target - cwnd) * acked / cwnd + cc->part;
	cc->cwnd += (uint64_t)more;
	cc->part = more - (double)(uint64_t)more;
	if (curve(cc, t) < cc->w_est && (double)cc->cwnd < cc->w_est)
		cc->cwnd = (uint64_t)cc->w_est;
}

/* Growth is earned by a window that was used: 9260-7.2.1-6. */
static bool used_up(const struct ddps_cc *cc)
{
	return cc->limited || cc->limited_was ||
	       (cc->phase != DDPS_CC_AVOID && 2 * cc->max_flight > cc->cwnd);
}

static void slow_start(struct ddps_cc *cc, uint64_t acked)
{
	cc->cwnd += cc->phase == DDPS_CC_CSS ? acked / CSS_DIVISOR : acked;
	if (cc->cwnd < cc->ssthresh)
		return;
	cc->cwnd = cc->ssthresh;
	avoid(cc);
}

void ddps_cc_grow(struct ddps_cc *cc, const struct ddps_cc_ack *ack)
{
	bool may = used_up(cc);

	cc->srtt = ack->srtt;
	if (ack->round) {
		cc->limited_was = cc->limited;
		cc->limited = false;
		cc->max_flight = ack->flight;
	}
	if (cc->phase == DDPS_CC_RECOVER || !ack->acked)
		return;
	cc->after_t3 = false;
	if (cc->ssthresh == DDPS_CC_NO_LIMIT)
		hystart(cc, ack);
	if (ack->round && ack->enough && ack->enough < cc->cwnd) {
		cc->cwnd = ack->enough;
		cc->epoch = 0;
	}
	if (!may || ack->queued) { /* the curve stands still meanwhile: RFC 9438 5.8 */
		if (!cc->stopped)
			cc->stopped = ack->now;
		return;
	}
	if (cc->stopped && cc->epoch)
		cc->epoch += ack->now - cc->stopped;
	cc->stopped = 0;
	if (cc->phase == DDPS_CC_AVOID)
		cubic(cc, ack);
	else
		slow_start(cc, ack->acked);
}

/* ---- reduction ---- */

/* The window that is meant: while PRR moves cwnd, that is ssthresh. */
static uint64_t get_meant_window(const struct ddps_cc *cc)
{
	return cc->phase == DDPS_CC_RECOVER ? cc->ssthresh : cc->cwnd;
}

static void reduce_window(struct ddps_cc *cc)
{
	uint64_t was = get_meant_window(cc), floor = 4ull * cc->smss;

	cc->saved = (struct ddps_cc_saved){
		.valid = true,
		.cwnd = was,
		.ssthresh = cc->ssthresh,
		.epoch = cc->epoch,
		.w_max = cc->w_max,
		.k = cc->k,
		.w_est = cc->w_est,
		.cwnd_prior = cc->cwnd_prior,
		.phase = cc->phase == DDPS_CC_RECOVER ? DDPS_CC_AVOID : cc->phase,
	};
	/* fast convergence: RFC 9438 4.7 */
	cc->w_max = (double)was < cc->w_max ? (double)was * (1 + BETA) / 2 : (double)was;
	cc->cwnd_prior = (double)was;
	cc->ssthresh = (uint64_t)(BETA * (double)was);
	if (cc->ssthresh < floor) /* 9260-7.2.3-1 */
		cc->ssthresh = floor;
	cc->epoch = cc->stopped = 0;
}

void ddps_cc_loss(struct ddps_cc *cc, uint64_t outstanding)
{
	reduce_window(cc);
	cc->phase = DDPS_CC_RECOVER;
	cc->fs = outstanding ? outstanding : 1;
	cc->prr_delivered = cc->prr_out = 0;
	cc->after_t3 = false;
}

void ddps_cc_doubt(struct ddps_cc *cc)
{
	if (cc->phase != DDPS_CC_SLOW && cc->phase != DDPS_CC_CSS)
		return;
	cc->ssthresh = cc->cwnd;
	avoid(cc);
}

void ddps_cc_recover(struct ddps_cc *cc, const struct ddps_cc_ack *ack)
{
	uint64_t snd, gap;

	if (cc->phase != DDPS_CC_RECOVER)
		return;
	cc->srtt = ack->srtt;
	cc->prr_delivered += ack->acked;
	if (ack->flight > cc->ssthresh) {
		double due = (double)cc->prr_delivered * (double)cc->ssthresh / (double)cc->fs;
		uint64_t out = (uint64_t)due + 1;

		snd = out > cc->prr_out ? out - cc->prr_out : 0;
		if (!cc->prr_delivered)
			snd = 0;
	} else {
		snd = cc->prr_delivered > cc->prr_out ? cc->prr_delivered - cc->prr_out : 0;
		if (snd < ack->acked)
			snd = ack->acked;
		if (ack->cum_advanced && !ack->new_loss)
			snd += cc->smss;
		gap = cc->ssthresh - ack->flight;
		if (snd > gap)
			snd = gap;
	}
	if (!cc->prr_out && !snd) /* the first retransmission always goes */
		snd = cc->smss;
	cc->cwnd = ack->flight + snd;
}

void ddps_cc_recovered(struct ddps_cc *cc)
{
	if (cc->phase != DDPS_CC_RECOVER)
		return;
	cc->cwnd = cc->ssthresh;
	avoid(cc);
}

void ddps_cc_timeout(struct ddps_cc *cc, bool first)
{
	if (first)
		reduce_window(cc);
	cc->w_max = 0; /* the next epoch starts from where slow start ends: RFC 9438 4.8 */
	cc->cwnd = cc->smss;
	cc->phase = DDPS_CC_SLOW;
	cc->epoch = cc->stopped = 0;
	cc->after_t3 = true;
}

void ddps_cc_repaired(struct ddps_cc *cc)
{
	reduce_window(cc);
	cc->cwnd = cc->ssthresh;
	avoid(cc);
}

void ddps_cc_undo(struct ddps_cc *cc)
{
	const struct ddps_cc_saved *o = &cc->saved;

	if (!o->valid)
		return;
	if (cc->cwnd < o->cwnd || cc->phase == DDPS_CC_RECOVER)
		cc->cwnd = o->cwnd;
	cc->ssthresh = o->ssthresh;
	cc->epoch = o->epoch;
	cc->w_max = o->w_max;
	cc->k = o->k;
	cc->w_est = o->w_est;
	cc->cwnd_prior = o->cwnd_prior;
	cc->phase = o->phase;
	cc->after_t3 = false;
	cc->saved.valid = false;
}
