/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl ipoib mad: CM messages from octets to text or JSON, and from JSON to octets. */
#include "ipoib/show/capture.h"
#include "ipoib/ipoib.h"
#include "ipoib/show/madtext.h"
#include "cli/out/out_json.h"
#include "cli/sessctl.h"
#include "cli/text.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PART_FIRST ((size_t)1 << 16)
#define PART_MAX   ((size_t)256 << 20) /* text, or one record of a capture */

enum form { FORM_TEXT, FORM_JSON, FORM_HEX };

/* What is in memory of a file; of a capture only the records that are not done. */
struct input {
	FILE *f;
	const char *path;
	char *buf;
	size_t len, size;
};

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

/* More of the file behind what is there.  Return: NULL, or what is wrong. */
static const char *read_input_part(struct input *in)
{
	size_t size = in->size ? 2 * in->size : PART_FIRST;
	char *grown;

	if (in->len == in->size) {
		if (in->size >= PART_MAX)
			return "longer than 256 MiB in one piece; captures may be longer, but not "
			       "their records, nor text";
		grown = realloc(in->buf, size);
		if (!grown)
			return "not enough memory";
		in->buf = grown;
		in->size = size;
	}
	in->len += fread(in->buf + in->len, 1, in->size - in->len, in->f);
	return ferror(in->f) ? strerror(errno) : NULL;
}

/* A capture's beginning, or the whole of any other file. */
static int open_mad_input(struct job *j, struct input *in)
{
	const char *why;

	in->f = !strcmp(in->path, "-") ? stdin : fopen(in->path, "rb");
	if (!in->f)
		return read_error(j, in->path, strerror(errno));
	do
		why = read_input_part(in);
	while (!why && in->len == in->size && !capture_is(in->buf, in->len));
	return why ? read_error(j, in->path, why) : ST_DONE;
}

/* Of which the rest would be lost. */
static bool is_same_file(const struct input *in, const char *path)
{
	struct stat a, b;

	return !feof(in->f) && !fstat(fileno(in->f), &a) && !stat(path, &b) && S_ISREG(a.st_mode) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void close_mad_input(struct input *in)
{
	if (in->f && in->f != stdin)
		fclose(in->f);
	free(in->buf);
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

/* Behind the records that are done.  Return: whether there is more. */
static bool read_more_records(struct job *j, struct input *in, struct capture_reader *r)
{
	size_t rest = (size_t)(r->end - r->p);
	const char *why;

	memmove(in->buf, r->p, rest);
	in->len = rest;
	why = feof(in->f) ? NULL : read_input_part(in);
	r->p = (const uint8_t *)in->buf;
	r->end = r->p + in->len;
	if (why) {
		j->bad++;
		read_error(j, in->path, why);
		r->p = r->end;
		return false;
	}
	return in->len > rest;
}

static void from_capture(struct job *j, struct input *in)
{
	struct capture_reader r;
	struct capture_mad m;
	char why[200];

	if (capture_open(&r, in->buf, in->len, why, sizeof why)) {
		j->bad++;
		out_error(&j->out, 0, "a pcap or pcapng file of InfiniBand, Ethernet or IP packets",
			  "%s", why);
		return;
	}
	do
		while (capture_next(&r, &m) == 1)
			from_octets(j, &m, m.mad, DDPS_CM_MAD_LEN);
	while (read_more_records(j, in, &r));
	if (r.skipped)
		out_note(&j->out, NULL, "%llu packets of the capture hold no CM message",
			 (unsigned long long)r.skipped);
	if (r.p != r.end) {
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

static void convert(struct job *j, const struct ipoib_opts *o, struct input *in)
{
	const char *buf = in->buf;
	size_t len = in->len;
	size_t blank = 0;
	bool json;

	while (blank < len && isspace((unsigned char)buf[blank]))
		blank++;
	json = blank < len && buf[blank] == '{';
	j->form = o->json ? FORM_JSON : o->hex || json ? FORM_HEX : FORM_TEXT;
	if (capture_is(buf, len))
		from_capture(j, in);
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
	struct input in = { .path = o->nargs ? o->arg[0] : "-" };
	int res;

	out_init(&j.out, "ipoib mad", o->json);
	res = open_mad_input(&j, &in);
	if (res == ST_DONE && o->capture && is_same_file(&in, o->capture))
		res = read_error(&j, in.path, "cannot be read and be the --capture");
	if (res == ST_DONE && o->capture) {
		j.capture = capture_create(o->capture);
		if (!j.capture) {
			out_error(&j.out, 0, text_file_advice(errno), "capture '%s': %s",
				  o->capture, strerror(errno));
			res = ST_FAILED;
		}
	}
	if (res == ST_DONE)
		convert(&j, o, &in);
	if (j.capture && fclose(j.capture)) {
		out_error(&j.out, 0, text_file_advice(errno), "capture '%s': %s", o->capture,
			  strerror(errno));
		res = ST_FAILED;
	}
	close_mad_input(&in);
	return out_finish(&j.out) || j.bad ? ST_FAILED : res;
}
