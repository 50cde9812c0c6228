/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl ipoib connect --port rdmacm: the kernel's ib_cm writes the messages. */
#include "ipoib/ipoib_conn.h"
#include <ddpsess/ib_rdmacm.h>
#include "cli/out/out_json.h"
#include "cli/sessctl.h"
#include <poll.h>
#include <string.h>

#define WAIT_MS 100000 /* the kernel gives up after its own retries, about 98 s at the most */

static void print_rdmacm_event(void *user, const char *event, int status)
{
	struct conn_job *j = user;
	double t = (double)(clock_ns() - j->start) / 1e9;

	if (j->out.json)
		json_out_line(&j->out, json_pack("{ss sf ss si}", "event", "rdmacm", "time", t,
						 "name", event, "status", status));
	else
		fprintf(j->out.f, "%10.6f  %s, status %d\n", t, event, status);
	out_flush(&j->out);
}

/* Only what rdma_connect() takes can be set.  Return: 0, or -1 after saying so. */
static int check_sets(struct conn_job *j)
{
	char name[40];

	for (size_t i = 0; i < j->o->set.n; i++) {
		snprintf(name, sizeof name, "%.*s", (int)strcspn(j->o->set.at[i], "="),
			 j->o->set.at[i]);
		if (ddps_rdmacm_takes(name))
			continue;
		out_error(&j->out, 0, "--port umad, which writes the REQ itself",
			  "--set %s: with --port rdmacm the kernel chooses it", j->o->set.at[i]);
		return -1;
	}
	return 0;
}

static int connect_and_part(struct conn_job *j, struct ddps_rdmacm *r,
			    const struct ddps_cm_req *req)
{
	int wait = j->o->timeout_ms ? (int)j->o->timeout_ms : WAIT_MS, err;
	struct ddps_cm_rej rej = { 0 };
	struct ddps_rdmacm_result res;
	char why[300];

	err = ddps_rdmacm_connect(r, req, wait, &res, why, sizeof why);
	if (err == DDPS_E_REJECTED) {
		rej.reason = res.reason;
		memcpy(rej.private_data, res.priv, sizeof res.priv);
		conn_out_rejected(j, 0, &rej);
		conn_error_rejected(j, rej.reason);
		return ST_REJECTED;
	}
	if (err) {
		out_error(&j->out, 0, "see that the peer runs and its GID is one of this fabric",
			  "port rdmacm: %s", why);
		return err == DDPS_E_TIMEDOUT ? ST_TIMEDOUT : ST_FAILED;
	}
	conn_out_state(j, "established", 0);
	if (j->o->hold_ms)
		poll(NULL, 0, (int)j->o->hold_ms);
	err = ddps_rdmacm_disconnect(r, wait);
	conn_out_state(j, err ? "disconnect-unanswered" : "disconnected", 0);
	return err ? ST_TIMEDOUT : ST_DONE;
}

int conn_rdmacm(struct conn_job *j, struct ddps_cm_mad *mad, const struct ddps_ipoib_lladdr *peer)
{
	struct ddps_cm_req *req = &mad->u.req;
	struct ddps_rdmacm *r;
	char why[300];
	int res;

	/* Linux listens on its own form, whatever RFC 4755 says */
	ddps_ipoib_service_id(&req->service_id, DDPS_IPOIB_SID_LINUX, peer->qpn);
	memcpy(req->primary.remote_gid, peer->gid, sizeof peer->gid);
	req->pkey = 0xffff;
	if (conn_apply_sets(j, mad) || check_sets(j))
		return ST_USAGE;
	if (ddps_rdmacm_open(&r, print_rdmacm_event, j, why, sizeof why)) {
		out_error(&j->out, 0, "modprobe rdma_ucm on a machine with an InfiniBand adapter",
			  "port rdmacm: %s", why);
		return ST_FAILED;
	}
	res = connect_and_part(j, r, req);
	ddps_rdmacm_close(r);
	return res;
}
