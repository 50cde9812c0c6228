/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl ipoib connect: REQ, RTU, DREQ, with every field of the REQ settable. */
#include "ipoib/ipoib_conn.h"
#include "cli/sessctl.h"
#include "cli/sig.h"
#include <string.h>
#include <sys/random.h>

#define CM_TIMEOUT 20 /* 4.3 s */
#define CM_RETRIES 15

/* An end that the peer or time has made: what to say, and the exit status. */
static void finish_connect(struct conn_job *j, const char *event, uint32_t id, int status)
{
	conn_out_state(j, event, id);
	j->status = status;
}

/* The attempt or the connection ends by a timer. */
static void take_connect_end(struct conn_job *j, const struct ddps_cm_report *r)
{
	if (r->state == DDPS_CM_ST_TIMEWAIT) {
		finish_connect(j, "disconnect-unanswered", r->id, ST_TIMEDOUT);
		out_error(&j->out, 0, "see whether the peer still runs and its link is up",
			  "connection 0x%08x: no DREP for any DREQ", (unsigned)r->id);
		j->over = true;
	} else if (!j->part_at) {
		finish_connect(j, "unanswered", r->id, ST_TIMEDOUT);
		out_error(&j->out, 0, "check that the peer listens and its link is up",
			  "no answer to any REQ");
	}
}

static void take_connect_report(struct conn_job *j, const struct ddps_cm_report *r)
{
	struct ddps_cm_outs o = { 0 };

	switch (r->ev) {
	case DDPS_CM_EV_RX_REP:
		if (!ddps_cm_ready(j->cm, r->id, NULL, clock_ns(), &o)) {
			conn_do(j, &o, take_connect_report);
			conn_out_state(j, "established", r->id);
			j->part_at = clock_ns() + j->o->hold_ms * NS_PER_MS;
		}
		break;
	case DDPS_CM_EV_RX_REJ:
	case DDPS_CM_EV_RX_REJ_STALE:
		conn_out_rejected(j, r->id, &r->mad->u.rej);
		conn_error_rejected(j, r->mad->u.rej.reason);
		j->status = ST_REJECTED;
		j->over = true;
		break;
	case DDPS_CM_EV_RX_DREQ: /* stays through TIMEWAIT, lest the DREP be lost */
		conn_out_state(j, "disconnected", r->id);
		if (!ddps_cm_closed(j->cm, r->id, clock_ns(), &o))
			conn_do(j, &o, take_connect_report);
		break;
	case DDPS_CM_EV_RX_DREP:
		finish_connect(j, "disconnected", r->id, ST_DONE);
		j->over = true;
		break;
	case DDPS_CM_EV_T_END:
		take_connect_end(j, r);
		break;
	default:
		break;
	}
	if (r->state == DDPS_CM_ST_IDLE)
		j->over = true;
}

/* What a REQ has unless --set says otherwise. */
static void default_req(struct ddps_cm_mad *mad, const struct ipoib_opts *o)
{
	struct ddps_cm_req *req = &mad->u.req;
	uint32_t random[2];

	ddps_cm_mad_init(mad, DDPS_CM_REQ, 0);
	/* no queue pair is made; a number used before would be taken for a stale connection */
	if (getrandom(random, sizeof random, 0) == sizeof random) {
		req->starting_psn = random[0] & 0xffffff;
		req->qpn = random[1] & 0x7fffff;
	}
	req->qpn += 0x400;
	req->remote_cm_timeout = req->local_cm_timeout = CM_TIMEOUT;
	req->max_cm_retries = CM_RETRIES;
	req->srq = 1;
	conn_private_data(o, req->private_data);
}

static int refuse_peer(struct conn_job *j, const char *why)
{
	out_error(&j->out, 0,
		  "20 octets as 'sessctl ipoib lladdr' prints them, or a GID with --peer-qpn",
		  "peer '%s': %s", j->o->arg[0], why);
	return ST_USAGE;
}

/* The peer of the command line: link-layer address, or GID and --peer-qpn. */
static int read_connect_peer(struct conn_job *j, struct ddps_ipoib_lladdr *peer)
{
	const struct ipoib_opts *o = j->o;

	if (!ddps_ipoib_lladdr_parse(peer, o->arg[0])) {
		if (o->peer_qpn != IPOIB_UNSET)
			peer->qpn = (uint32_t)o->peer_qpn;
		return ST_DONE;
	}
	if (ddps_ipoib_gid_parse(peer->gid, o->arg[0]))
		return refuse_peer(j, "neither a link-layer address nor a GID");
	if (o->peer_qpn == IPOIB_UNSET)
		return refuse_peer(j, "a GID alone does not say which UD queue pair");
	peer->qpn = (uint32_t)o->peer_qpn;
	return ST_DONE;
}

static int find_connect_path(struct conn_job *j, const uint8_t gid[DDPS_IPOIB_GID_LEN],
			     struct ddps_sa_path *path)
{
	char text[DDPS_IPOIB_GID_TEXT];
	int err = j->wire.ops->path(j->wire.port, gid, path);

	if (!err) {
		conn_out_path(j, path);
		return ST_DONE;
	}
	ddps_ipoib_gid_print(text, gid);
	out_error(&j->out, 0, j->wire.ops->no_path, "no path to %s: %s", text,
		  err == DDPS_E_ADDRESS ? "nobody knows one" : ddps_strerror(err));
	return err == DDPS_E_TIMEDOUT ? ST_TIMEDOUT : ST_FAILED;
}

static int send_req(struct conn_job *j, struct ddps_cm_mad *mad, const struct ddps_sa_path *path,
		    const struct ddps_ipoib_lladdr *peer)
{
	struct ddps_cm_req *req = &mad->u.req;
	struct ddps_cm_connect c = { .packet_life = path->life,
				     .to = j->wire.ops->addr(j->wire.port, path) };
	struct ddps_cm_outs o;
	int err;

	ddps_ipoib_service_id(&req->service_id,
			      j->o->linux_form ? DDPS_IPOIB_SID_LINUX : DDPS_IPOIB_SID_RFC,
			      peer->qpn);
	req->primary = path->path;
	req->pkey = path->pkey;
	req->path_mtu = path->mtu;
	if (conn_apply_sets(j, mad))
		return ST_USAGE;
	c.req = *req;
	conn_out_port(j, "connecting", req->service_id);
	err = ddps_cm_connect(j->cm, &c, clock_ns(), &j->id, &o);
	if (err) {
		out_error(&j->out, 0, "without --set of fields that this is about",
			  "the REQ cannot be sent: %s", ddps_ipoib_strerror(err));
		return ST_FAILED;
	}
	conn_do(j, &o, take_connect_report);
	return ST_DONE;
}

static int begin_connect(struct conn_job *j, const struct ipoib_opts *o)
{
	struct ddps_ipoib_lladdr peer = { 0 };
	struct ddps_sa_path path = { 0 };
	struct ddps_cm_mad req;
	int res;

	default_req(&req, o);
	res = conn_open(j, o, "ipoib connect", &req);
	if (!res)
		res = read_connect_peer(j, &peer);
	if (!res)
		res = find_connect_path(j, peer.gid, &path);
	return res ? res : send_req(j, &req, &path, &peer);
}

/* The end of the time that was given, or of the user's patience. */
static bool interrupted(struct conn_job *j, uint64_t due)
{
	struct ddps_cm_outs o;

	if (due && clock_ns() >= due) {
		out_error(&j->out, 0, "a longer --timeout, or none: a REQ is repeated for a minute",
			  "not done in %u.%03u s", (unsigned)j->o->timeout_ms / 1000,
			  (unsigned)j->o->timeout_ms % 1000);
		j->status = ST_TIMEDOUT;
	} else if (!sig_pending()) {
		return false;
	} else if (!j->part_at) { /* nothing has come of it */
		out_error(&j->out, 0, "again; --timeout ends it by itself",
			  "interrupted before the connection was there");
		j->status = ST_FAILED;
	}
	if (!ddps_cm_abort(j->cm, j->id, DDPS_CM_REJ_TIMEOUT, clock_ns(), &o) ||
	    !ddps_cm_disconnect(j->cm, j->id, clock_ns(), &o))
		conn_do(j, &o, take_connect_report);
	return true;
}

/* The other port does everything in its calls. */
static int connect_rdmacm(const struct ipoib_opts *o)
{
	struct conn_job j = { .o = o, .start = clock_ns() };
	struct ddps_ipoib_lladdr peer = { 0 };
	struct ddps_cm_mad req;

	out_init(&j.out, "ipoib connect", o->json);
	default_req(&req, o);
	j.status = read_connect_peer(&j, &peer);
	if (!j.status && o->capture) {
		out_error(&j.out, 0, "--port umad",
			  "--capture: the kernel does not show its messages");
		j.status = ST_USAGE;
	}
	if (!j.status)
		j.status = conn_rdmacm(&j, &req, &peer);
	return conn_close(&j);
}

int ipoib_connect(const struct ipoib_opts *o)
{
	uint64_t due = o->timeout_ms ? clock_ns() + o->timeout_ms * NS_PER_MS : 0;
	struct ddps_cm_outs outs;
	struct conn_job j;
	bool parted = false;

	if (!strcmp(o->port, "rdmacm"))
		return connect_rdmacm(o);
	j.status = begin_connect(&j, o);
	while (!j.status && !j.over && !interrupted(&j, due)) {
		if (j.part_at && !parted && clock_ns() >= j.part_at) {
			parted = true;
			if (!ddps_cm_disconnect(j.cm, j.id, clock_ns(), &outs))
				conn_do(&j, &outs, take_connect_report);
		}
		if (conn_turn(&j, !parted && j.part_at ? j.part_at : due, take_connect_report))
			j.status = ST_FAILED;
	}
	return conn_close(&j);
}
