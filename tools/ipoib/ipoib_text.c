/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl ipoib service-id, lladdr, private-data: values as text and back. */
#include "ipoib/ipoib.h"
#include "cli/out/out_json.h"
#include "cli/sessctl.h"
#include <ddpsess/ipoib_cm.h>

/* A value that cannot be: what was wanted and what to try. */
static int refuse_text_value(struct out *out, const char *what, const char *value,
			     const char *example)
{
	out_error(out, 0, example, "'%s' is no %s", value, what);
	return ST_USAGE;
}

static int finish_text(struct out *out)
{
	return out_finish(out) ? ST_FAILED : ST_DONE;
}

/* One line of the text form of --decode. */
static void print_text_row(struct out *out, const char *label, const char *value)
{
	fprintf(out->f, "%-12s %s\n", label, value);
}

static void row_qpn(struct out *out, uint32_t qpn)
{
	char text[24];

	snprintf(text, sizeof text, "0x%06x", (unsigned)qpn);
	print_text_row(out, "UD QPN", text);
}

/* The members follow in the order of @fmt, which json_pack() explains. */
#define JSON_LINE(out, ...) json_out_line(out, json_pack(__VA_ARGS__))

int ipoib_service_id(const struct ipoib_opts *o)
{
	enum ddps_ipoib_sid_form form = o->linux_form ? DDPS_IPOIB_SID_LINUX : DDPS_IPOIB_SID_RFC;
	char text[DDPS_IPOIB_SERVICE_ID_TEXT];
	uint32_t qpn = (uint32_t)o->qpn;
	struct out out;
	uint64_t sid;

	out_init(&out, "ipoib service-id", o->json);
	if (!o->decode)
		ddps_ipoib_service_id(&sid, form, qpn);
	else if (ddps_ipoib_service_id_parse(&sid, o->decode) ||
		 ddps_ipoib_service_id_split(sid, &form, &qpn))
		return refuse_text_value(&out, "service ID of IPoIB", o->decode,
					 "16 digits, such as 0x0100000000000048");
	ddps_ipoib_service_id_print(text, sid);
	if (o->json) {
		JSON_LINE(&out, "{ss ss ss si}", "event", "service-id", "service_id", text, "form",
			  form == DDPS_IPOIB_SID_RFC ? "rfc" : "linux", "qpn", (int)qpn);
	} else if (o->decode) {
		print_text_row(&out, "service ID", text);
		print_text_row(&out, "form", form == DDPS_IPOIB_SID_RFC ? "RFC 4755" : "Linux");
		row_qpn(&out, qpn);
	} else {
		fprintf(out.f, "%s\n", text);
	}
	return finish_text(&out);
}

int ipoib_lladdr(const struct ipoib_opts *o)
{
	char text[DDPS_IPOIB_LLADDR_TEXT], flags[DDPS_IPOIB_FLAGS_TEXT], gid[DDPS_IPOIB_GID_TEXT];
	struct ddps_ipoib_lladdr a = { .qpn = (uint32_t)o->qpn };
	struct out out;

	out_init(&out, "ipoib lladdr", o->json);
	if (o->flags && ddps_ipoib_flags_parse(&a.flags, o->flags))
		return refuse_text_value(&out, "list of flags", o->flags, "rc,uc, rc, uc or ud");
	if (o->gid && ddps_ipoib_gid_parse(a.gid, o->gid))
		return refuse_text_value(&out, "GID", o->gid,
					 "an IPv6 form, such as fe80::2:c903:1:2");
	if (o->decode && ddps_ipoib_lladdr_parse(&a, o->decode))
		return refuse_text_value(&out, "link-layer address", o->decode,
					 "20 octets, two hexadecimal digits each, colons between");
	ddps_ipoib_lladdr_print(text, &a);
	ddps_ipoib_flags_print(flags, a.flags);
	ddps_ipoib_gid_print(gid, a.gid);
	if (o->json) {
		JSON_LINE(&out, "{ss ss ss si ss}", "event", "lladdr", "lladdr", text, "flags",
			  flags, "qpn", (int)a.qpn, "gid", gid);
	} else if (o->decode) {
		print_text_row(&out, "address", text);
		print_text_row(&out, "flags", flags);
		row_qpn(&out, a.qpn);
		print_text_row(&out, "GID", gid);
	} else {
		fprintf(out.f, "%s\n", text);
	}
	return finish_text(&out);
}

int ipoib_private_data(const struct ipoib_opts *o)
{
	struct ddps_ipoib_priv p = { .qpn = (uint32_t)o->qpn, .rx_mtu = (uint32_t)o->mtu };
	char text[DDPS_IPOIB_PRIV_TEXT], mtu[16];
	struct out out;

	out_init(&out, "ipoib private-data", o->json);
	if (o->decode && ddps_ipoib_priv_parse(&p, o->decode))
		return refuse_text_value(&out, "private data of IPoIB", o->decode,
					 "16 hexadecimal digits, such as 000000480000fff4");
	ddps_ipoib_priv_print(text, &p);
	snprintf(mtu, sizeof mtu, "%u", (unsigned)p.rx_mtu);
	if (o->json) {
		JSON_LINE(&out, "{ss ss si sI}", "event", "private-data", "private_data", text,
			  "qpn", (int)p.qpn, "rx_mtu", (json_int_t)p.rx_mtu);
	} else if (o->decode) {
		print_text_row(&out, "private data", text);
		row_qpn(&out, p.qpn);
		print_text_row(&out, "Receive MTU", mtu);
	} else {
		fprintf(out.f, "%s\n", text);
	}
	return finish_text(&out);
}
