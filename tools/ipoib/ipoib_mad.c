/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl ipoib mad: CM messages from octets to text or JSON, and from JSON to octets. */
#include "ipoib/show/capture.h"
#include "ipoib/ipoib.h"
#include "ipoib/show/madtext.h"
#include "cli/out_json.h"
#include "cli/sessctl.h"
#include "cli/text.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX ((size_t)256 << 20)

enum form { FORM_TEXT, FORM_JSON, FORM_HEX };

struct job {
	struct out out;
	enum form form;
	FILE *capture;
	unsigned seen, bad;
};

/* ---- input ---- */

static int read_error(struct job *j, const char *path, const char *why)
{
	out_error(&j->out, 0,
		  "a file of hexadecimal text, JSON or a capture (pcap, pcapng); - for standard "
		  "input",
		  "%s: %s", path, why);
	return ST_FAILED;
}

/* The whole of @f.  *@buf is the caller's to free.  Return: NULL, or what is wrong. */
static const char *read_whole_file(FILE *f, char **buf, size_t *len)
{
	size_t size = 1 << 16;
	char *grown;

	*len = 0;
	*buf = malloc(size);
	while (*buf) {
		*len += fread(*buf + *len, 1, size - *len, f);
		if (*len < size)
			return ferror(f) ? strerror(errno) : NULL;
		if (size >= INPUT_MAX)
			return "longer than 256 MiB";
		grown = realloc(*buf, size *= 2);
		if (!grown)
			break;
		*buf = grown;
	}
	return "not enough memory";
}

static int load_mad_file(struct job *j, const char *path, char **buf, size_t *len)
{
	bool std = !strcmp(path, "-");
	FILE *f = std ? stdin : fopen(path, "rb");
	const char *why;

	*buf = NULL;
	if (!f)
		return read_error(j, path, strerror(errno));
	why = read_whole_file(f, buf, len);
	if (!std)
		fclose(f);
	return why ? read_error(j, path, why) : ST_DONE;
}

/* ---- one message ---- */

static void report_bad_mad(struct job *j, const char *why)
{
	j->bad++;
	out_error(&j->out, 0, NULL, "message %u: %s", j->seen, why);
}

static void save(struct job *j, struct capture_mad *m, const uint8_t octets[DDPS_CM_MAD_LEN])
{
	m->mad = octets;
	if (!j->capture || !capture_write(j->capture, m))
		return;
	report_bad_mad(j, strerror(errno));
	fclose(j->capture);
	j->capture = NULL;
}

static void show_mad(struct job *j, const struct ddps_cm_mad *mad,
		     const uint8_t octets[DDPS_CM_MAD_LEN])
{
	char hex[2 * DDPS_CM_MAD_LEN + 1];
	json_t *line;

	switch (j->form) {
	case FORM_TEXT:
		madtext_print(j->out.f, mad);
		break;
	case FORM_JSON:
		line = json_pack("{ss}", "event", "mad");
		madtext_to_json(line, mad);
		json_out_line(&j->out, line);
		break;
	case FORM_HEX:
		text_hex(hex, octets, DDPS_CM_MAD_LEN);
		fprintf(j->out.f, "%s\n", hex);
	}
}

/* Octets that should be a message; @m has where they came from. */
static void from_octets(struct job *j, struct capture_mad *m, const uint8_t *octets, size_t len)
{
	struct ddps_cm_mad mad = { .hdr = { .mgmt_class = DDPS_CM_CLASS } };
	char why[200];
	int err = ddps_cm_mad_decode(&mad, octets, len);

	j->seen++;
	if (!err) {
		show_mad(j, &mad, octets);
		save(j, m, octets);
		return;
	}
	if (err == DDPS_E_TRUNCATED || err == DDPS_E_TOO_LONG)
		snprintf(why, sizeof why, "%zu octets, a MAD has %d", len, DDPS_CM_MAD_LEN);
	else if (err == DDPS_E_PROTOCOL)
		snprintf(why, sizeof why, "an information length above %d", DDPS_CM_ARI_LEN);
	else
		snprintf(why, sizeof why,
			 "not a CM message: version %u, class 0x%02x version %u, method 0x%02x, "
			 "attribute 0x%04x (%s)",
			 mad.hdr.base_version, mad.hdr.mgmt_class, mad.hdr.class_version,
			 mad.hdr.method, mad.hdr.attr_id, ddps_cm_attr_name(mad.hdr.attr_id));
	report_bad_mad(j, why);
}

/* ---- the three kinds of input ---- */

/* Digits and white space; each 512 digits are a message. */
static void read_hex_mads(struct job *j, const char *text, size_t len)
{
	char digits[2 * DDPS_CM_MAD_LEN + 1];
	uint8_t octets[DDPS_CM_MAD_LEN];
	struct capture_mad m = { .pkey = 0xffff };
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (isspace((unsigned char)text[i]))
			continue;
		if (!isxdigit((unsigned char)text[i])) {
			j->seen++;
			report_bad_mad(j, "neither hexadecimal text nor JSON nor a capture");
			return;
		}
		digits[n++] = text[i];
		if (n < sizeof digits - 1)
			continue;
		digits[n] = 0;
		text_unhex(octets, sizeof octets, digits);
		from_octets(j, &m, octets, sizeof octets);
		n = 0;
	}
	digits[n] = 0;
	if (n % 2) {
		j->seen++;
		report_bad_mad(j, "an odd number of hexadecimal digits");
	} else if (n) {
		from_octets(j, &m, octets, (size_t)text_unhex(octets, sizeof octets, digits));
	}
}

static void from_capture(struct job *j, const char *buf, size_t len)
{
	struct capture_reader r;
	struct capture_mad m;
	char why[200];
	int res;

	if (capture_open(&r, buf, len, why, sizeof why)) {
		j->bad++;
		out_error(&j->out, 0, "a pcap or pcapng file of InfiniBand, Ethernet or IP packets",
			  "%s", why);
		return;
	}
	while ((res = capture_next(&r, &m)) == 1)
		from_octets(j, &m, m.mad, DDPS_CM_MAD_LEN);
	if (r.skipped)
		out_note(&j->out, "%llu packets of the capture hold no CM message",
			 (unsigned long long)r.skipped);
	if (res < 0) {
		j->seen++;
		report_bad_mad(j, "the capture ends in the middle of a record");
	}
}

static void from_json(struct job *j, const json_t *value)
{
	struct capture_mad m = { .pkey = 0xffff };
	uint8_t octets[DDPS_CM_MAD_LEN];
	struct ddps_cm_mad mad;
	char why[300];

	j->seen++;
	if (madtext_from_json(&mad, value, why, sizeof why)) {
		report_bad_mad(j, why);
	} else if (ddps_cm_mad_encode(octets, &mad)) {
		snprintf(why, sizeof why, "an information length above %d", DDPS_CM_ARI_LEN);
		report_bad_mad(j, why);
	} else {
		if (mad.hdr.attr_id == DDPS_CM_REQ) {
			m.slid = mad.u.req.primary.local_lid;
			m.dlid = mad.u.req.primary.remote_lid;
		}
		show_mad(j, &mad, octets);
		save(j, &m, octets);
	}
}

/* Objects one after the other, with white space between. */
static void from_json_text(struct job *j, const char *text, size_t len)
{
	json_error_t err;
	char why[300];

	for (;;) {
		json_t *value;

		while (len && isspace((unsigned char)*text)) {
			text++;
			len--;
		}
		if (!len)
			return;
		value = json_loadb(text, len, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES,
				   &err);
		if (!value) {
			j->seen++;
			snprintf(why, sizeof why, "line %d of it: %s", err.line, err.text);
			report_bad_mad(j, why);
			return;
		}
		from_json(j, value);
		json_decref(value);
		text += err.position;
		len -= (size_t)err.position;
	}
}

static void convert(struct job *j, const struct ipoib_opts *o, const char *buf, size_t len)
{
	size_t blank = 0;
	bool json;

	while (blank < len && isspace((unsigned char)buf[blank]))
		blank++;
	json = blank < len && buf[blank] == '{';
	j->form = o->json ? FORM_JSON : o->hex || json ? FORM_HEX : FORM_TEXT;
	if (capture_is(buf, len))
		from_capture(j, buf, len);
	else if (json)
		from_json_text(j, buf, len);
	else
		read_hex_mads(j, buf, len);
	if (!j->seen && !j->bad) {
		j->bad++;
		out_error(&j->out, 0, "512 hexadecimal digits, or a JSON object",
			  "the input holds no message");
	}
}

int ipoib_mad(const struct ipoib_opts *o)
{
	struct job j = { 0 };
	size_t len = 0;
	char *buf;
	int res;

	out_init(&j.out, "ipoib mad", o->json);
	res = load_mad_file(&j, o->nargs ? o->arg[0] : "-", &buf, &len);
	if (res == ST_DONE && o->capture) {
		j.capture = capture_create(o->capture);
		if (!j.capture) {
			out_error(&j.out, 0, text_file_advice(errno), "capture '%s': %s",
				  o->capture, strerror(errno));
			res = ST_FAILED;
		}
	}
	if (res == ST_DONE)
		convert(&j, o, buf, len);
	if (j.capture && fclose(j.capture)) {
		out_error(&j.out, 0, text_file_advice(errno), "capture '%s': %s", o->capture,
			  strerror(errno));
		res = ST_FAILED;
	}
	free(buf);
	return out_finish(&j.out) || j.bad ? ST_FAILED : res;
}
