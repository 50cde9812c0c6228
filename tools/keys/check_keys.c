/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl check-keys: what is right and wrong with the files of secured wires. */
#include "keys/keys.h"
#include "cli/about.h"
#include "cli/out/out_json.h"
#include "cli/sessctl.h"
#include "cli/text.h"
#include <ddpsess/secure.h>
#include <string.h>
#include <time.h>

#define DAY 86400

enum { K_CHECK = 1 };

struct check_opts {
	struct ddps_secure_attr attr;
	uint32_t days;
	bool json;
};

#define AT(field) offsetof(struct check_opts, field)

static const struct option_row table[] = {
	{ "tls", "FILE", K_CHECK, VAL_TEXT, AT(attr.settings), 0, 0, "the same as SETTINGS" },
	{ "tls-cert", "FILE", K_CHECK, VAL_TEXT, AT(attr.cert), 0, 0, "this side's certificate" },
	{ "tls-key", "FILE", K_CHECK, VAL_TEXT, AT(attr.key), 0, 0, "its private key" },
	{ "tls-ca", "FILE", K_CHECK, VAL_TEXT, AT(attr.ca), 0, 0, "CAs that vouch for peers" },
	{ "tls-crl", "FILE", K_CHECK, VAL_TEXT, AT(attr.crl), 0, 0, "what they have revoked" },
	{ "tls-psk", "FILE", K_CHECK, VAL_TEXT, AT(attr.psk), 0, 0, "pre-shared keys" },
	{ "tls-psk-identity", "NAME", K_CHECK, VAL_TEXT, AT(attr.psk_identity), 0, 0,
	  "as whom this side connects with one" },
	{ "tls-peers", "FILE", K_CHECK, VAL_TEXT, AT(attr.peers), 0, 0,
	  "rules which peers are allowed" },
	{ "tls-hosts", "FILE", K_CHECK, VAL_TEXT, AT(attr.hosts), 0, 0,
	  "the name expected at each address" },
	{ "tls-peer", "NAME,...", K_CHECK, VAL_TEXT, AT(attr.peer), 0, 0,
	  "who the peer has to be" },
	{ "days", "N", K_CHECK, VAL_NUMBER, AT(days), 0, 36500,
	  "judge for a time N days from now (default 0)" },
	{ "json", NULL, K_CHECK, VAL_FLAG, AT(json), 0, 0, "print one JSON object per line" },
	{ "help", NULL, K_CHECK, VAL_HELP, 0, 0, 0, "this text" },
	{ "version", NULL, K_CHECK, VAL_VERSION, 0, 0, 0, "version of sessctl and library" },
};

static const struct option_table options = { table, sizeof table / sizeof *table };

static const struct option_user user = { "check-keys",
					 "[SETTINGS]",
					 "Say what is wrong with the files of secured wires.",
					 K_CHECK,
					 0,
					 1 };

static const char *rate_finding(const struct ddps_secure_finding *f)
{
	return !f->code ? "ok" : f->warning ? "warning" : "fault";
}

static void print_finding(void *arg, const struct ddps_secure_finding *f)
{
	struct out *o = arg;
	char text[1200], clean[1200];
	json_t *j;

	snprintf(text, sizeof text, "%s%s%s", f->file, *f->file ? " " : "", f->text);
	text_clean(clean, sizeof clean, text, strlen(text));
	if (!o->json) {
		fprintf(o->f, "%-8s %-12s %s\n", rate_finding(f), f->what, clean);
		return;
	}
	j = json_object();
	json_object_set_new(j, "event", json_string("finding"));
	json_object_set_new(j, "result", json_string(rate_finding(f)));
	json_object_set_new(j, "what", json_string(f->what));
	json_object_set_new(j, "message", json_string(clean));
	if (f->code)
		json_object_set_new(j, "code", json_string(out_error_name(f->code)));
	json_out_line(o, j);
}

static enum status check_files(struct check_opts *c, struct out *o)
{
	const int64_t now = time(NULL) + (int64_t)c->days * DAY;
	const int faults = ddps_secure_check(&c->attr, now, print_finding, o);

	if (faults < 0) {
		o->error = faults;
		out_error(o, 0, NULL, "%s", ddps_strerror(faults));
	}
	return faults ? ST_FAILED : ST_DONE;
}

int cmd_check_keys(int argc, char **argv)
{
	struct check_opts c = { .days = 0 };
	struct out out;
	char why[800];
	int first = 0, status;
	enum opts_result r;

	ddps_secure_attr_init(&c.attr);
	r = optrow_parse(&options, &user, &c, argc, argv, &first, why, sizeof why);
	if (r == OPTS_HELP) {
		optrow_help(stdout, &options, &user);
		return cmd_finish();
	}
	status = cmd_ready(r, user.name, why);
	if (status != CMD_READY)
		return status;
	if (c.attr.settings && argv[first])
		return cmd_ready(OPTS_BAD, user.name, "SETTINGS and --tls are one thing: give one");
	if (argv[first])
		c.attr.settings = argv[first];
	if (!c.attr.settings && !c.attr.cert && !c.attr.key && !c.attr.ca && !c.attr.crl &&
	    !c.attr.psk)
		return cmd_ready(OPTS_BAD, user.name,
				 "no file is named: it is SETTINGS, or --tls-cert, --tls-key and "
				 "--tls-ca, or --tls-psk");
	out_init(&out, user.name, c.json);
	status = (int)check_files(&c, &out);
	return out_finish(&out) && !status ? ST_FAILED : status;
}
