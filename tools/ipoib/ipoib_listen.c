/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl ipoib listen: answers REQs with REP or REJ, and DREQs. */
#include "ipoib/ipoib_conn.h"
#include "cli/sessctl.h"
#include "cli/sig.h"
#include <string.h>
#include <sys/random.h>

#define FIRST_QPN   0x400 /* of the queue pairs that are announced; none is made */
#define RNR_FOREVER 7	  /* the peer waits for a receiver that is not ready */
#define LINGER_MAX  (10 * NS_PER_S)

static void answer_req(struct conn_job *j, const struct ddps_cm_report *r);

static void take_listen_report(struct conn_job *j, const struct ddps_cm_report *r)
{
	struct ddps_cm_outs o;

	if (r->ev == DDPS_CM_EV_RX_REQ) {
		answer_req(j, r);
		return;
	}
	if (r->ev == DDPS_CM_EV_RX_RTU)
		conn_out_state(j, "established", r->id);
	else if (r->ev == DDPS_CM_EV_RX_REJ || r->ev == DDPS_CM_EV_RX_REJ_STALE)
		conn_out_rejected(j, r->id, &r->mad->u.rej);
	else if (r->ev == DDPS_CM_EV_T_END && r->state == DDPS_CM_ST_IDLE && !r->mad)
		conn_out_state(j, "ended", r->id);
	if (r->state == DDPS_CM_ST_IDLE)
		j->open--;
	if (r->ev == DDPS_CM_EV_RX_DREQ) {
		conn_out_state(j, "disconnected", r->id);
		if (!ddps_cm_closed(j->cm, r->id, clock_ns(), &o))
			conn_do(j, &o, take_listen_report);
	}
}

/*
 * A refused REQ leaves no state behind, and its REJ may be lost: stay until the peer has had the
 * time to repeat it, so that --count does not turn the answer into "invalid service ID".
 */
static uint64_t refused_until(const struct ddps_cm_req *req)
{
	uint64_t ns =
		ddps_cm_time_ns(req->remote_cm_timeout) + ddps_cm_time_ns(req->primary.ack_timeout);

	return clock_ns() + (ns < LINGER_MAX ? ns : LINGER_MAX);
}

static void answer_req(struct conn_job *j, const struct ddps_cm_report *r)
{
	struct ddps_cm_rep rep = j->rep;
	struct ddps_cm_outs o;
	int err;

	j->taken++;
	j->open++;
	if (!rep.qpn)
		rep.qpn = FIRST_QPN + j->taken;
	if (j->o->reject) {
		err = ddps_cm_reject(j->cm, r->id, (uint16_t)j->o->reject, NULL, clock_ns(), &o);
		j->open--;
		j->linger = refused_until(&r->mad->u.req);
	} else {
		err = ddps_cm_reply(j->cm, r->id, &rep, clock_ns(), &o);
	}
	if (err) {
		out_error(&j->out, 0, "without --set of fields that this is about",
			  "connection 0x%08x cannot be answered: %s", (unsigned)r->id,
			  ddps_ipoib_strerror(err));
		j->status = ST_FAILED;
		j->over = true;
		return;
	}
	conn_do(j, &o, take_listen_report);
}

/* What a REP has unless --set says otherwise. */
static void default_rep(struct ddps_cm_mad *mad, const struct ipoib_opts *o)
{
	struct ddps_cm_rep *rep = &mad->u.rep;
	uint32_t psn = 0;

	ddps_cm_mad_init(mad, DDPS_CM_REP, 0);
	if (getrandom(&psn, sizeof psn, 0) == sizeof psn)
		rep->starting_psn = psn & 0xffffff;
	rep->target_ack_delay = 15;
	rep->srq = 1;
	rep->rnr_retry = RNR_FOREVER;
	conn_private_data(o, rep->private_data);
}

static int start_listen(struct conn_job *j, const struct ipoib_opts *o)
{
	struct ddps_cm_listener l = { .pkey = 0xffff };
	struct ddps_cm_mad rep;
	int res;

	default_rep(&rep, o);
	res = conn_open(j, o, "ipoib listen", &rep);
	if (res)
		return res;
	if (conn_apply_sets(j, &rep))
		return ST_USAGE;
	j->rep = rep.u.rep;
	ddps_ipoib_service_id(&j->service_id,
			      o->linux_form ? DDPS_IPOIB_SID_LINUX : DDPS_IPOIB_SID_RFC,
			      (uint32_t)o->qpn);
	l.service_id = j->service_id;
	l.pkey = j->wire.info.pkey;
	memcpy(l.gid, j->self.gid, sizeof l.gid);
	conn_private_data(o, l.priv);
	res = ddps_cm_listen(j->cm, &l);
	if (res) {
		out_error(&j->out, 0, "another --qpn", "listening: %s", ddps_ipoib_strerror(res));
		return ST_FAILED;
	}
	conn_out_port(j, "listening", j->service_id);
	return ST_DONE;
}

int ipoib_listen(const struct ipoib_opts *o)
{
	struct conn_job j;
	uint64_t due = o->timeout_ms ? clock_ns() + o->timeout_ms * NS_PER_MS : 0;

	j.status = start_listen(&j, o);
	while (!j.status && !j.over && !sig_pending()) {
		if (o->count && j.taken >= o->count && !j.open && clock_ns() >= j.linger)
			break;
		if (due && clock_ns() >= due) {
			if (!o->count) /* for so long, whoever came */
				break;
			out_error(&j.out, 0,
				  "a longer --timeout; see that the peer has this link-layer "
				  "address and service ID",
				  "%u of %u connections came in %u.%03u s", j.taken,
				  (unsigned)o->count, (unsigned)o->timeout_ms / 1000,
				  (unsigned)o->timeout_ms % 1000);
			j.status = ST_TIMEDOUT;
		} else if (conn_turn(&j, due, take_listen_report)) {
			j.status = ST_FAILED;
		}
	}
	return conn_close(&j);
}
