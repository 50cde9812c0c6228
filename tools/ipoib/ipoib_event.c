/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl ipoib connect and listen: what happens, as text or JSON. */
#include "ipoib/ipoib_conn.h"
#include "ipoib/show/madtext.h"
#include "cli/out/out_json.h"
#include "cli/sessctl.h"
#include "cli/text.h"

static double elapsed(const struct conn_job *j)
{
	return (double)(clock_ns() - j->start) / 1e9;
}

/* The beginning of a line; the time of every event comes first. */
static void stamp(struct conn_job *j)
{
	fprintf(j->out.f, "%10.6f  ", elapsed(j));
}

static void end_event_line(struct conn_job *j)
{
	fputc('\n', j->out.f);
	out_flush(&j->out);
}

static json_t *begin_json(const struct conn_job *j, const char *event)
{
	return json_pack("{ss sf}", "event", event, "time", elapsed(j));
}

static void set_id(json_t *line, const char *name, uint32_t id)
{
	json_object_set_new(line, name, json_integer((json_int_t)id));
}

void conn_out_port(struct conn_job *j, const char *event, uint64_t service_id)
{
	const struct ddps_umad_info *i = &j->wire.info;
	char lladdr[DDPS_IPOIB_LLADDR_TEXT], sid[DDPS_IPOIB_SERVICE_ID_TEXT];
	json_t *line;

	ddps_ipoib_lladdr_print(lladdr, &j->self);
	ddps_ipoib_service_id_print(sid, service_id);
	if (j->out.json) {
		line = begin_json(j, event);
		json_object_update_new(line, json_pack("{ss si si ss ss}", "device", i->device,
						       "port", i->port, "lid", (int)i->lid,
						       "lladdr", lladdr, "service_id", sid));
		json_out_line(&j->out, line);
		return;
	}
	stamp(j);
	fprintf(j->out.f, "%s: %s:%s:%d, LID %u, %s, service ID %s", event, j->wire.ops->name,
		i->device, i->port, i->lid, lladdr, sid);
	end_event_line(j);
}

void conn_out_path(struct conn_job *j, const struct ddps_sa_path *p)
{
	json_t *line;

	if (j->out.json) {
		line = begin_json(j, "path");
		json_object_update_new(
			line, json_pack("{si si si si si si}", "local_lid", p->path.local_lid,
					"remote_lid", p->path.remote_lid, "sl", p->path.sl, "mtu",
					p->mtu, "rate", p->path.rate, "life", p->life));
		json_out_line(&j->out, line);
		return;
	}
	stamp(j);
	fprintf(j->out.f, "path: LID %u to %u, SL %u, MTU %u, rate %u, packet lifetime %u",
		p->path.local_lid, p->path.remote_lid, p->path.sl, 128u << p->mtu, p->path.rate,
		p->life);
	end_event_line(j);
}

/* @octets may be anything that a peer sends. */
void conn_out_mad(struct conn_job *j, bool sent, uint16_t lid,
		  const uint8_t octets[DDPS_CM_MAD_LEN])
{
	struct ddps_cm_mad mad;
	char text[400], hex[2 * DDPS_CM_MAD_LEN + 1];
	bool bad = ddps_cm_mad_decode(&mad, octets, DDPS_CM_MAD_LEN) != 0;
	json_t *line;

	text_hex(hex, octets, DDPS_CM_MAD_LEN);
	if (j->out.json) {
		line = begin_json(j, bad ? "bad-mad" : "mad");
		json_object_set_new(line, "dir", json_string(sent ? "sent" : "received"));
		json_object_set_new(line, "lid", json_integer(lid));
		if (bad)
			json_object_set_new(line, "octets", json_string(hex));
		else
			madtext_to_json(line, &mad);
		json_out_line(&j->out, line);
		return;
	}
	stamp(j);
	if (bad)
		snprintf(text, sizeof text, "no CM message: %.64s...", hex);
	else
		madtext_brief(text, sizeof text, &mad);
	fprintf(j->out.f, "%s LID %-5u  %s", sent ? "->" : "<-", lid, text);
	end_event_line(j);
}

void conn_out_state(struct conn_job *j, const char *event, uint32_t id)
{
	json_t *line;

	if (j->out.json) {
		line = begin_json(j, event);
		set_id(line, "id", id);
		json_out_line(&j->out, line);
		return;
	}
	stamp(j);
	fprintf(j->out.f, "%s: connection 0x%08x", event, (unsigned)id);
	end_event_line(j);
}

void conn_out_rejected(struct conn_job *j, uint32_t id, const struct ddps_cm_rej *rej)
{
	char hex[2 * DDPS_IPOIB_PRIV_LEN + 1];
	json_t *line;

	text_hex(hex, rej->private_data, DDPS_IPOIB_PRIV_LEN);
	if (j->out.json) {
		line = begin_json(j, "rejected");
		set_id(line, "id", id);
		json_object_update_new(line, json_pack("{si ss ss}", "reason", (int)rej->reason,
						       "text", ddps_cm_reason_name(rej->reason),
						       "private_data", hex));
		json_out_line(&j->out, line);
		return;
	}
	stamp(j);
	fprintf(j->out.f, "rejected: connection 0x%08x, reason %u (%s), private data %s",
		(unsigned)id, rej->reason, ddps_cm_reason_name(rej->reason), hex);
	end_event_line(j);
}
