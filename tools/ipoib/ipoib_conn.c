/* SPDX-License-Identifier: BSD-2-Clause */
/* What sessctl ipoib connect and listen share. */
#include "ipoib/ipoib_conn.h"
#include "ipoib/show/capture.h"
#include "ipoib/show/madtext.h"
#include "cli/sessctl.h"
#include "cli/sig.h"
#include "cli/text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define MAX_CONNS 64
#define SLICE_MS  100 /* a wait in libibumad does not see signals that come just before it */

void conn_private_data(const struct ipoib_opts *o, uint8_t out[DDPS_IPOIB_PRIV_LEN])
{
	struct ddps_ipoib_priv p = { .qpn = (uint32_t)o->qpn, .rx_mtu = (uint32_t)o->mtu };

	ddps_ipoib_priv_encode(out, &p);
}

int conn_apply_sets(struct conn_job *j, struct ddps_cm_mad *mad)
{
	const struct ddps_cm_field *rows = ddps_cm_fields(mad->hdr.attr_id);
	char why[300] = "", name[40];

	for (size_t i = 0; i < j->o->set.n; i++) {
		const char *arg = j->o->set.at[i], *value = strchr(arg, '=');

		if (!value || (size_t)(value - arg) >= sizeof name)
			snprintf(why, sizeof why, "it takes FIELD=VALUE");
		else {
			snprintf(name, sizeof name, "%.*s", (int)(value - arg), arg);
			madtext_set(mad, rows, name, value + 1, why, sizeof why);
		}
		if (*why) {
			out_error(&j->out, 0, "sessctl ipoib mad shows the names of all fields",
				  "--set %s: %s", arg, why);
			return -1;
		}
	}
	return 0;
}

static int open_agent(struct conn_job *j, const struct ddps_cm_mad *template)
{
	struct ddps_cm_config cfg;
	uint64_t guid = template->hdr.attr_id == DDPS_CM_REQ ? template->u.req.ca_guid
							     : template->u.rep.ca_guid;
	uint32_t id = template->hdr.attr_id == DDPS_CM_REQ ? template->u.req.local_id
							   : template->u.rep.local_id;
	int err;

	ddps_cm_config_init(&cfg);
	cfg.ca_guid = guid ? guid : j->wire.info.ca_guid;
	cfg.max_conns = MAX_CONNS;
	if (getrandom(&cfg.tid_high, sizeof cfg.tid_high, 0) < 0 ||
	    getrandom(&cfg.id_seed, sizeof cfg.id_seed, 0) < 0 ||
	    getrandom(cfg.hash_key, sizeof cfg.hash_key, 0) < 0) {
		out_error(&j->out, 0, "a kernel that has getrandom(2)", "no random numbers: %s",
			  strerror(errno));
		return ST_FAILED;
	}
	if (id) /* the agent counts from its seed */
		cfg.id_seed = id;
	conn_private_data(j->o, cfg.priv);
	err = ddps_cm_new(&j->cm, &cfg);
	if (!err)
		return ST_DONE;
	out_error(&j->out, 0,
		  err == DDPS_E_NOMEM ? "fewer programs simultaneously" : "without --set of IDs",
		  "the connection manager: %s", ddps_ipoib_strerror(err));
	return ST_FAILED;
}

int conn_open(struct conn_job *j, const struct ipoib_opts *o, const char *cmd,
	      const struct ddps_cm_mad *template)
{
	struct ddps_cm_mad scratch = *template;
	int res;

	*j = (struct conn_job){ .o = o, .start = clock_ns() };
	out_init(&j->out, cmd, o->json);
	if (conn_apply_sets(j, &scratch))
		return ST_USAGE;
	res = wire_open(&j->wire, o, &j->out);
	if (res)
		return res;
	j->self.flags = DDPS_IPOIB_RC;
	j->self.qpn = (uint32_t)o->qpn;
	memcpy(j->self.gid, j->wire.info.gid, sizeof j->self.gid);
	if (o->capture) {
		j->capture = capture_create(o->capture);
		if (!j->capture) {
			out_error(&j->out, 0, text_file_advice(errno), "capture '%s': %s",
				  o->capture, strerror(errno));
			return ST_FAILED;
		}
	}
	return open_agent(j, &scratch);
}

int conn_close(struct conn_job *j)
{
	if (j->cm)
		ddps_cm_free(j->cm);
	wire_close(&j->wire);
	if (j->capture && fclose(j->capture)) {
		out_error(&j->out, 0, text_file_advice(errno), "capture '%s': %s", j->o->capture,
			  strerror(errno));
		j->status = ST_FAILED;
	}
	return out_finish(&j->out) ? ST_FAILED : j->status;
}

static void record_cm_message(struct conn_job *j, bool sent, uint16_t lid,
			      const uint8_t octets[DDPS_CM_MAD_LEN])
{
	const struct ddps_umad_info *i = &j->wire.info;
	struct capture_mad m = { .pkey = i->pkey, .mad = octets };
	struct timespec t;

	conn_out_mad(j, sent, lid, octets);
	if (!j->capture)
		return;
	clock_gettime(CLOCK_REALTIME, &t);
	m.time_ns = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
	m.slid = sent ? i->lid : lid;
	m.dlid = sent ? lid : i->lid;
	if (capture_write(j->capture, &m)) {
		out_error(&j->out, 0, text_file_advice(errno), "capture '%s': %s", j->o->capture,
			  strerror(errno));
		fclose(j->capture);
		j->capture = NULL;
		j->status = ST_FAILED;
	}
}

void conn_do(struct conn_job *j, const struct ddps_cm_outs *o, conn_report_fn report)
{
	for (unsigned i = 0; i < o->n_send; i++) {
		record_cm_message(j, true, j->wire.ops->lid(o->send[i].to), o->send[i].mad);
		if (j->wire.ops->send(j->wire.port, o->send[i].to, o->send[i].mad))
			out_note(&j->out, NULL, "a message could not be sent; CM will repeat it");
	}
	for (unsigned i = 0; i < o->n_report; i++)
		report(j, &o->report[i]);
}

/* Milliseconds to wait, rounded up so that a timer is due afterwards. */
static int wait_ms(const struct conn_job *j, uint64_t due)
{
	uint64_t now = clock_ns(), at = ddps_cm_deadline(j->cm), ms;

	if (due && due < at)
		at = due;
	if (at <= now)
		return 0;
	ms = (at - now + NS_PER_MS - 1) / NS_PER_MS;
	return ms < SLICE_MS ? (int)ms : SLICE_MS;
}

int conn_turn(struct conn_job *j, uint64_t due, conn_report_fn report)
{
	uint8_t mad[DDPS_CM_MAD_LEN];
	struct ddps_cm_outs o;
	ddps_cm_addr from;
	int res;

	while (ddps_cm_tick(j->cm, clock_ns(), &o))
		conn_do(j, &o, report);
	res = j->wire.ops->recv(j->wire.port, wait_ms(j, due), mad, &from);
	if (res < 0) {
		out_error(&j->out, 0, "see whether the device is still there (dmesg)",
			  "port %s: receiving failed", j->o->port);
		return -1;
	}
	if (res) {
		record_cm_message(j, false, j->wire.ops->lid(from), mad);
		ddps_cm_rx(j->cm, mad, sizeof mad, from, clock_ns(), &o);
		conn_do(j, &o, report);
	}
	return 0;
}

void conn_error_rejected(struct conn_job *j, uint16_t reason)
{
	static const struct {
		uint16_t reason;
		const char *advice;
	} row[] = {
		{ DDPS_CM_REJ_NO_QP, "again in a while: the peer has no queue pair left" },
		{ DDPS_CM_REJ_NO_RESOURCES, "again in a while: the peer has too many connections" },
		{ DDPS_CM_REJ_TIMEOUT, "a --set cm_timeout or lifetime that the way there needs" },
		{ DDPS_CM_REJ_SERVICE_ID, "--linux, or without it: there are two forms; see that "
					  "--peer-qpn is the peer's" },
		{ DDPS_CM_REJ_TRANSPORT, "without --set transport: it does not offer that" },
		{ DDPS_CM_REJ_STALE, "again: the peer still had a connection of that queue pair" },
		{ DDPS_CM_REJ_CONSUMER,
		  "see what its private data says: it does not want this connection" },
	};
	const char *advice = "sessctl ipoib mad shows every field of the REQ; see which it is";

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (row[i].reason == reason)
			advice = row[i].advice;
	out_error(&j->out, 0, advice, "the peer rejects it: reason %u (%s)", reason,
		  ddps_cm_reason_name(reason));
}
