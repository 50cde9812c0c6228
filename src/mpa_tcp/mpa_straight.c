/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The straight way out: nothing stands before what was posted.  One message in one small FPDU is framed on the stack and
 * written; what fits a batch is written with one call, too.  What is not so takes the way of mpa_data.c, which would
 * have done the same with more steps.  mpa_straight_test.c holds both against each other.
 */
#include "mpa_tcp/mpa_conn.h"
#include <ddpsess/err.h>
#include <errno.h>

/* All is as it is between two messages; the loop does not want others to have their turn first. */
static bool is_usual(const struct ddps_mpa_conn *c)
{
	return c->state == DDPS_MPA_FULL && c->wr == DDPS_MPA_WR_OPEN && !c->tx.batch &&
	       !c->startup && !c->want_close && !c->stepwise &&
	       c->mulpdu_age <= DDPS_MPA_MULPDU_AGE && !ddps_io_waits(c->env->loop, &c->io);
}

/* TCP has not taken all of the FPDU, @n octets or a negative errno: the rest waits in a batch.  Return: as below. */
static __attribute__((noinline)) bool keep_rest(struct ddps_mpa_conn *c, const uint8_t *fpdu,
						size_t len, ssize_t n)
{
	if (ddps_mpa_tx_keep(&c->tx, fpdu, len, n < 0 ? 0 : (size_t)n)) {
		ddps_mpa_data_fill_failed(c, DDPS_E_NOMEM);
		return true;
	}
	if (n < 0) {
		ddps_mpa_data_send_failed(c, (int)-n);
	} else {
		c->mulpdu_age += (size_t)n;
		c->wr = DDPS_MPA_WR_FULL;
	}
	if (n == -EINTR)
		return false;
	ddps_mpa_conn_watch(c);
	return true;
}

/* What is to be sent is one batch, which TCP takes: true.  Else it is as far as it got. */
static bool write_one_batch(struct ddps_mpa_conn *c)
{
	int n = ddps_mpa_tx_fill(&c->tx, c->llp.data->tx_next, c->llp.data_user, c->mulpdu);

	if (n < 0)
		ddps_mpa_data_fill_failed(c, n);
	if (!c->tx.dry || !ddps_mpa_alive(c))
		return false;
	ddps_mpa_data_write(c, ddps_mpa_tx_left(&c->tx));
	return !ddps_mpa_tx_left(&c->tx) && !c->held && !c->want_close;
}

/* @seg was pulled, and is not alone or not small.  Return: as below. */
static __attribute__((noinline)) bool send_many(struct ddps_mpa_conn *c, const struct ddps_seg *seg)
{
	int err = ddps_mpa_tx_begin(&c->tx, seg, c->mulpdu);
	bool all;

	if (err) {
		ddps_mpa_data_fill_failed(c, err);
		return true;
	}
	c->pumping = true;
	all = write_one_batch(c);
	c->pumping = false;
	if (all || !c->open)
		ddps_mpa_tx_fini(&c->tx);
	ddps_llp_lend(c->env, &c->llp, ddps_mpa_tx_refers(&c->tx));
	/* Where TCP is lost, what came before is not shown from in here. */
	all |= c->wr == DDPS_MPA_WR_LOST;
	if (all && (!c->calm || c->wr != DDPS_MPA_WR_OPEN))
		ddps_mpa_conn_watch(c);
	return all;
}

bool ddps_mpa_straight_send(struct ddps_mpa_conn *c)
{
	uint8_t fpdu[DDPS_MPA_FRAME_SMALL];
	struct ddps_seg seg;
	struct iovec iov;
	size_t len;
	ssize_t n;

	if (!is_usual(c))
		return false;
	c->held = false;
	c->tx.dry = true; /* unless a batch is begun */
	seg.final = false;
	if (c->llp.data->tx_next(c->llp.data_user, &seg, c->mulpdu) <= 0 || !ddps_mpa_alive(c))
		return !c->held;
	len = seg.final ? ddps_mpa_tx_frame(&c->tx, &seg, c->mulpdu, fpdu) : 0;
	if (!len)
		return send_many(c, &seg);
	iov = (struct iovec){ fpdu, len };
	n = c->tcp->send(c, &iov, 1);
	if (n != (ssize_t)len)
		return keep_rest(c, fpdu, len, n);
	c->mulpdu_age += len;
	c->llp.data->tx_done(c->llp.data_user, 1);
	if (!c->calm)
		ddps_mpa_conn_watch(c);
	return !c->held;
}
