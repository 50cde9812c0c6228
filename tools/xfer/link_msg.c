/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of a client's one session. */
#include "xfer/link.h"
#include "xfer/advice.h"

enum status link_message(struct link *l, const struct ddps_wc *wc, enum msg_type want,
			 struct msg *m)
{
	uint32_t i = WR_INDEX(wc->wr_id);
	const char *why;
	int bad = msg_decode(m, chan_data(&l->chan, i), wc->len, &why);
	int err = chan_recv(&l->chan, i);

	if (bad)
		return link_fail(l, ST_FAILED, "is the peer a sessctl of this version?", "%s: %s",
				 l->uri, why);
	if (m->type == MSG_REFUSE || m->type == MSG_ERROR)
		return link_fail(l, ST_FAILED,
				 l->o->digest && m->type == MSG_REFUSE
					 ? "a listener of an earlier version needs --digest sha256"
					 : advice_refused(m->text),
				 "%s: the peer %s: %s", l->uri,
				 m->type == MSG_REFUSE ? "refused" : "gave up", m->text);
	if (want != MSG_ANY && m->type != want)
		return link_fail(l, ST_FAILED, "is the peer a sessctl of this version?",
				 "%s: the peer sent %s where %s was due", l->uri, msg_name(m->type),
				 msg_name(want));
	/* DDPS_E_STATE: the end is near, and explained by its event */
	if (err && err != DDPS_E_STATE)
		return link_call_failed(l, err, "posting a receive");
	return ST_DONE;
}

enum status link_expect(struct link *l, enum msg_type want, struct msg *m)
{
	struct ddps_wc wc = { .wr_id = 0 };
	enum status s;

	do
		s = link_next(l, &wc);
	while (!s && WR_KIND(wc.wr_id) != WR_RECV);
	return s ? s : link_message(l, &wc, want, m);
}

enum status link_send(struct link *l, const struct msg *m)
{
	int err = chan_send(&l->chan, m);

	return err ? link_call_failed(l, err, "sending a message") : ST_DONE;
}
