/* SPDX-License-Identifier: BSD-2-Clause */
/* One JSON object a line. */
#include "cli/out/out_json.h"
#include "cli/text.h"
#include <jansson.h>
#include <string.h>

const char *out_transport_name(const struct out *o, enum ddps_transport t)
{
	return t == DDPS_TRANSPORT_TCP	  ? o->secured ? "tls" : "tcp"
	       : t == DDPS_TRANSPORT_SCTP ? o->secured ? "sctps" : "sctp"
	       : t == DDPS_TRANSPORT_SHM  ? "shm"
					  : "none";
}

const char *out_rtr_name(unsigned rtr)
{
	return rtr == DDPS_RTR_SEND    ? "send"
	       : rtr == DDPS_RTR_WRITE ? "write"
	       : rtr == DDPS_RTR_READ  ? "read"
				       : "none";
}

static json_t *begin_json_event(const char *event, unsigned session)
{
	json_t *j = json_object();

	json_object_set_new(j, "event", json_string(event));
	if (session)
		json_object_set_new(j, "session", json_integer(session));
	return j;
}

/* jansson escapes all that is not ASCII if it is asked to, but not DEL. */
static int put_ascii(const char *text, size_t len, void *to)
{
	FILE *f = to;

	for (size_t i = 0; i < len; i++)
		if (text[i] == 0x7f ? fputs("\\u007f", f) < 0 : fputc(text[i], f) < 0)
			return -1;
	return 0;
}

int json_out_object(FILE *f, const json_t *j, size_t flags)
{
	return json_dump_callback(j, put_ascii, f, flags | JSON_COMPACT | JSON_ENSURE_ASCII);
}

/* Write the line and drop @j.  jansson gives NULL for what did not fit into memory. */
void json_out_line(struct out *o, json_t *j)
{
	if (!j || json_out_object(o->f, j, JSON_REAL_PRECISION(9)))
		fprintf(o->err, "sessctl %s: an event could not be written as JSON\n", o->cmd);
	else
		fputc('\n', o->f);
	json_decref(j);
	out_flush(o);
}

static void set_text(json_t *j, const char *key, const char *value)
{
	char clean[1600];

	text_clean(clean, sizeof clean, value, strlen(value));
	json_object_set_new(j, key, json_string(clean));
}

static void set_json_int(json_t *j, const char *key, uint64_t v)
{
	json_object_set_new(j, key, json_integer((json_int_t)v));
}

static void set_bool(json_t *j, const char *key, bool v)
{
	json_object_set_new(j, key, json_boolean(v));
}

static void set_hex(json_t *j, const char *key, const uint8_t *data, size_t len)
{
	char hex[2 * DDPS_PD_MAX + 1];

	text_hex(hex, data, len);
	json_object_set_new(j, key, json_string(hex));
}

static void set_where(json_t *j, const struct out *o, const struct ddps_conn_info *i)
{
	set_text(j, "transport", out_transport_name(o, i->transport));
	set_text(j, "role", i->initiator ? "initiator" : "responder");
	set_text(j, "local", i->local);
	set_text(j, "peer", i->peer);
	set_bool(j, "enhanced", i->enhanced);
}

/* The first two keys are always there; null for what is not in use. */
static void set_wire(json_t *j, const struct ddps_conn_info *i)
{
	json_t *mpa = json_null(), *sctp = json_null(), *shm;

	if (i->transport == DDPS_TRANSPORT_SHM) {
		shm = json_object();
		set_json_int(shm, "pid", i->shm.pid);
		set_json_int(shm, "uid", i->shm.uid);
		set_json_int(shm, "gid", i->shm.gid);
		json_object_set_new(j, "shm", shm);
	}
	if (i->transport == DDPS_TRANSPORT_TCP || i->transport == DDPS_TRANSPORT_SHM) {
		mpa = json_object();
		set_json_int(mpa, "rev", i->mpa.rev);
		set_bool(mpa, "crc", i->mpa.crc);
		set_bool(mpa, "markers_tx", i->mpa.markers_tx);
		set_bool(mpa, "markers_rx", i->mpa.markers_rx);
		set_json_int(mpa, "mulpdu", i->mulpdu);
	} else if (i->transport == DDPS_TRANSPORT_SCTP) {
		sctp = json_object();
		set_text(sctp, "backend", i->sctp.backend);
		set_json_int(sctp, "stream", i->sctp.stream);
		set_json_int(sctp, "encap", i->sctp.encap);
		set_json_int(sctp, "mulpdu", i->mulpdu);
	}
	json_object_set_new(j, "mpa", mpa);
	json_object_set_new(j, "sctp", sctp);
}

void json_out_listening(struct out *o, const char *uri)
{
	json_t *j = begin_json_event("listening", 0);

	set_text(j, "uri", uri);
	json_out_line(o, j);
}

static json_t *split_lines(const char *text)
{
	json_t *list = json_array();

	while (*text) {
		const size_t len = strcspn(text, "\n");

		json_array_append_new(list, json_stringn(text, len));
		text += len + (text[len] == '\n');
	}
	return list;
}

/* Nothing if the wire is not secured. */
static void set_peer_id(json_t *j, const struct ddps_peer_id *id)
{
	json_t *p;

	if (!id)
		return;
	p = json_object();
	set_text(p, "how", id->how == DDPS_PEER_X509 ? "x509" : "psk");
	set_text(p, "name", id->name);
	json_object_set_new(p, "names", split_lines(id->names));
	set_text(p, "version", id->version);
	set_text(p, "suite", id->suite);
	set_text(p, "group", id->group);
	set_text(p, "alpn", id->alpn);
	if (id->how == DDPS_PEER_X509) {
		set_text(p, "issuer", id->issuer);
		set_text(p, "serial", id->serial);
		set_hex(p, "sha256", id->fingerprint, sizeof id->fingerprint);
		json_object_set_new(p, "not_after", json_integer(id->not_after));
	}
	json_object_set_new(j, "peer_id", p);
}

void json_out_established(struct out *o, unsigned session, const struct ddps_conn_info *i,
			  const struct ddps_peer_id *id, const uint8_t *pd, size_t pd_len)
{
	json_t *j = begin_json_event("established", session);

	set_where(j, o, i);
	set_json_int(j, "ird", i->ird);
	set_json_int(j, "ord", i->ord);
	set_json_int(j, "peer_ird", i->peer_ird);
	set_json_int(j, "peer_ord", i->peer_ord);
	set_bool(j, "p2p", i->p2p);
	set_text(j, "rtr", out_rtr_name(i->rtr));
	set_hex(j, "private_data", pd, pd_len);
	set_wire(j, i);
	set_peer_id(j, id);
	json_out_line(o, j);
}

void json_out_rejected(struct out *o, unsigned session, const struct ddps_event *ev)
{
	json_t *j = begin_json_event("rejected", session);

	set_where(j, o, &ev->info);
	set_text(j, "by", ev->type == DDPS_EV_REJECTED ? "peer" : "local");
	set_json_int(j, "peer_ird", ev->info.peer_ird);
	set_json_int(j, "peer_ord", ev->info.peer_ord);
	set_hex(j, "private_data", ev->private_data, ev->private_data_len);
	json_out_line(o, j);
}

void json_out_terminated(struct out *o, unsigned session, const struct ddps_error *e)
{
	json_t *j = begin_json_event("terminated", session);

	set_json_int(j, "layer", e->triple.layer);
	set_json_int(j, "etype", e->triple.etype);
	set_json_int(j, "code", e->triple.code);
	set_text(j, "by", e->by_peer ? "peer" : "local");
	set_text(j, "name", ddps_triple_name(&e->triple));
	json_out_line(o, j);
}

void json_out_transfer(struct out *o, unsigned session, const struct out_transfer *t)
{
	json_t *j = begin_json_event("transfer", session);

	set_text(j, "op", t->op);
	set_text(j, "name", t->name);
	set_json_int(j, "bytes", t->bytes);
	json_object_set_new(j, "seconds", json_real(t->seconds));
	set_hex(j, t->digest_name, t->digest, t->digest_len);
	json_out_line(o, j);
}

void json_out_pong(struct out *o, uint32_t seq, uint32_t size, double us)
{
	json_t *j = begin_json_event("pong", 0);

	set_json_int(j, "seq", seq);
	set_json_int(j, "size", size);
	json_object_set_new(j, "us", json_real(us));
	json_out_line(o, j);
}

void json_out_ping(struct out *o, const struct out_ping *p)
{
	json_t *j = begin_json_event("ping", 0);

	set_text(j, "op", p->op);
	set_json_int(j, "size", p->size);
	set_json_int(j, "count", p->count);
	json_object_set_new(j, "min_us", json_real(p->min));
	json_object_set_new(j, "avg_us", json_real(p->avg));
	json_object_set_new(j, "p50_us", json_real(p->p50));
	json_object_set_new(j, "p99_us", json_real(p->p99));
	json_object_set_new(j, "max_us", json_real(p->max));
	json_out_line(o, j);
}

static void set_real(json_t *j, const char *key, double v)
{
	json_object_set_new(j, key, json_real(v));
}

void json_out_perf(struct out *o, const struct out_perf *p)
{
	json_t *j = begin_json_event("perf", 0), *lat = json_object(), *cpu = json_object();

	set_text(j, "transport", p->transport);
	set_text(j, "op", p->op);
	set_json_int(j, "size", p->size);
	set_json_int(j, "depth", p->depth);
	set_json_int(j, "sessions", p->sessions);
	set_real(j, "seconds", p->seconds);
	set_json_int(j, "ops", p->ops);
	set_real(j, "ops_per_second", (double)p->ops / p->seconds);
	set_real(j, "bytes_per_second", (double)(p->ops * p->size) / p->seconds);
	set_real(lat, "min", p->min);
	set_real(lat, "p50", p->p50);
	set_real(lat, "p99", p->p99);
	set_real(lat, "p99_9", p->p99_9);
	set_real(lat, "p99_99", p->p99_99);
	set_real(lat, "max", p->max);
	json_object_set_new(j, "lat_us", lat);
	set_real(cpu, "local", p->cpu);
	json_object_set_new(j, "cpu_seconds", cpu);
	json_out_line(o, j);
}

void json_out_perf_interval(struct out *o, const struct out_perf *p)
{
	json_t *j = begin_json_event("interval", 0);

	set_text(j, "op", p->op);
	set_json_int(j, "size", p->size);
	set_real(j, "from", p->from);
	set_real(j, "to", p->from + p->seconds);
	set_json_int(j, "ops", p->ops);
	set_real(j, "ops_per_second", (double)p->ops / p->seconds);
	set_real(j, "bytes_per_second", (double)(p->ops * p->size) / p->seconds);
	json_out_line(o, j);
}

void json_out_closed(struct out *o, unsigned session)
{
	json_out_line(o, begin_json_event("closed", session));
}

const char *out_error_name(int code)
{
	static const struct {
		int code;
		const char *name;
	} names[] = {
#define NAME(name, value, text) { DDPS_E_##name, "DDPS_E_" #name },
		DDPS_ERRORS(NAME)
#undef NAME
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].code == code)
			return names[i].name;
	return "failed";
}

void json_out_error(struct out *o, unsigned session, const char *text, const char *advice)
{
	json_t *j = begin_json_event("error", session);

	set_text(j, "code", out_error_name(o->error));
	set_text(j, "message", text);
	if (advice)
		set_text(j, "try", advice);
	json_out_line(o, j);
}
