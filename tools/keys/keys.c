/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl keys: a CA, a certificate for a host, a pre-shared key. */
#include "keys/keys.h"
#include "cli/about.h"
#include "cli/complete.h"
#include "cli/out/out_json.h"
#include "cli/sessctl.h"
#include "cli/text.h"
#include <ddpsess/secure.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#define DAY	     86400
#define CA_DAYS	     365
#define HOST_DAYS    90
#define CLOCKS_DIFF  3600 /* seconds that hosts' clocks may be apart */
#define PSK_LEN	     32
#define NAMES_MAX    16
#define IDENTITY_MAX 255

enum { K_CA = 1, K_HOST = 2, K_PSK = 4, K_ALL = 7 };

struct keys_opts {
	const char *dir, *ca, *ca_key;
	uint32_t days; /* 0: not given */
	bool json;
};

#define AT(field) offsetof(struct keys_opts, field)

static const struct option_row table[] = {
	{ "dir", "DIR", K_ALL, VAL_TEXT, AT(dir), 0, 0, "make the files in DIR (default: here)" },
	{ "days", "N", K_CA, VAL_NUMBER, AT(days), 1, 36500, "valid for N days (default 365)" },
	{ "days", "N", K_HOST, VAL_NUMBER, AT(days), 1, 36500,
	  "valid for N days, and not longer than the CA (default 90)" },
	{ "ca", "FILE", K_HOST, VAL_TEXT, AT(ca), 0, 0,
	  "certificate of the CA that signs (default ca.pem in DIR)" },
	{ "ca-key", "FILE", K_HOST, VAL_TEXT, AT(ca_key), 0, 0, "its key (default ca.key in DIR)" },
	{ "json", NULL, K_ALL, VAL_FLAG, AT(json), 0, 0, "print one JSON object per line" },
	{ "help", NULL, K_ALL, VAL_HELP, 0, 0, 0, "this text" },
	{ "version", NULL, K_ALL, VAL_VERSION, 0, 0, 0, "version of sessctl and library" },
};

static const struct option_table options = { table, sizeof table / sizeof *table };

static const struct option_user users[] = {
	{ "keys ca", "[NAME]", "Make a CA: ca.pem, and ca.key, which signs.", K_CA, 0, 1 },
	{ "keys host", "NAME...", "Make a host's certificate and key, signed by the CA.", K_HOST, 1,
	  NAMES_MAX },
	{ "keys psk", "IDENTITY", "Make a pre-shared key: IDENTITY.psk.", K_PSK, 1, 1 },
};

#define NUSERS (sizeof users / sizeof *users)

/* What a command makes. */
struct keys_job {
	const struct option_user *user;
	struct keys_opts o;
	struct out out;
	char **arg;
	int nargs;
	char cert[KEYS_PEM], key[KEYS_PEM], ca[KEYS_PEM], ca_key[KEYS_PEM];
	struct keys_file file[2];
	unsigned nfiles;
};

static void make_dir_path(char *dst, size_t size, const struct keys_job *j, const char *name)
{
	snprintf(dst, size, "%s/%s", j->o.dir, name);
}

/* ---- what was made ---- */

static void print_made_json(struct keys_job *j)
{
	json_t *o = json_object(), *files = json_array(), *names = json_array();
	char path[PATH_MAX];

	for (unsigned i = 0; i < j->nfiles; i++) {
		make_dir_path(path, sizeof path, j, j->file[i].name);
		json_array_append_new(files, json_string(path));
	}
	for (int i = 0; i < j->nargs; i++)
		json_array_append_new(names, json_string(j->arg[i]));
	json_object_set_new(o, "event", json_string("made"));
	json_object_set_new(o, "kind", json_string(j->user->name + strlen("keys ")));
	json_object_set_new(o, "names", names);
	json_object_set_new(o, "files", files);
	json_out_line(&j->out, o);
}

static void print_made(struct keys_job *j, const char *next)
{
	if (j->o.json) {
		print_made_json(j);
		return;
	}
	for (unsigned i = 0; i < j->nfiles; i++)
		fprintf(j->out.f, "%s/%s%s\n", j->o.dir, j->file[i].name,
			j->file[i].secret ? "  (secret: mode 0600)" : "");
	fprintf(j->out.f, "next: %s\n", next);
}

/* ---- certificates ---- */

static bool make_pair(struct keys_job *j, const char *const *names, bool host, uint32_t days)
{
	const int64_t now = time(NULL);
	struct ddps_error why = { .code = 0 };
	struct ddps_secure_make m = { .struct_size = sizeof m,
				      .names = names,
				      .not_before = now - CLOCKS_DIFF,
				      .not_after = now + (int64_t)days * DAY };
	int err;

	if (host) {
		m.ca_cert = j->ca;
		m.ca_key = j->ca_key;
		m.ca_key_len = strlen(j->ca_key);
	}
	err = ddps_secure_make(&m, j->cert, sizeof j->cert, j->key, sizeof j->key, &why);
	if (!err)
		return true;
	j->out.error = err;
	out_error(&j->out, 0,
		  err == DDPS_E_INVAL && host
			  ? "'sessctl keys host NAME...', each a host's name or address, such as "
			    "node-a.example or 192.0.2.1"
			  : NULL,
		  "%s", why.text[0] ? why.text : ddps_strerror(err));
	return false;
}

static bool write_pair(struct keys_job *j, const char *name)
{
	j->nfiles = 2;
	keys_file_name(j->file[0].name, name, ".key");
	keys_file_name(j->file[1].name, name, ".pem");
	j->file[0].text = j->key;
	j->file[0].secret = true;
	j->file[1].text = j->cert;
	return keys_write(&j->out, j->o.dir, j->file, j->nfiles);
}

static enum status make_ca(struct keys_job *j)
{
	const char *const names[] = { j->nargs ? j->arg[0] : "ddpsess CA", NULL };

	if (!make_pair(j, names, false, j->o.days ? j->o.days : CA_DAYS) || !write_pair(j, "ca"))
		return ST_FAILED;
	print_made(j, "'sessctl keys host NAME' for each host; ca.key stays here, ca.pem goes to "
		      "every host");
	return ST_DONE;
}

static enum status make_host(struct keys_job *j)
{
	char ca[PATH_MAX], ca_key[PATH_MAX];

	make_dir_path(ca, sizeof ca, j, "ca.pem");
	make_dir_path(ca_key, sizeof ca_key, j, "ca.key");
	if (keys_read(&j->out, j->o.ca ? j->o.ca : ca, false, j->ca) < 0 ||
	    keys_read(&j->out, j->o.ca_key ? j->o.ca_key : ca_key, true, j->ca_key) < 0)
		return ST_FAILED;
	if (!make_pair(j, (const char *const *)j->arg, true, j->o.days ? j->o.days : HOST_DAYS) ||
	    !write_pair(j, j->arg[0]))
		return ST_FAILED;
	print_made(j, "take both and ca.pem to the host, and look at them with 'sessctl "
		      "check-keys' there");
	return ST_DONE;
}

/* ---- PSK ---- */

static enum status make_psk(struct keys_job *j)
{
	const char *const identity = j->arg[0];
	const size_t len = strlen(identity);
	uint8_t key[PSK_LEN];

	for (size_t i = 0; i <= len; i++)
		if (len > IDENTITY_MAX || !len || *identity == '#' ||
		    (i < len && (identity[i] <= ' ' || identity[i] > '~' || identity[i] == ':'))) {
			out_error(&j->out, 0, "a name such as node-a",
				  "an identity has 1 to 255 printable characters, no blank, no "
				  "':', and no '#' in front");
			return ST_USAGE;
		}
	if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key) {
		out_error(&j->out, 0, NULL, "no random octets: %s", strerror(errno));
		return ST_FAILED;
	}
	snprintf(j->key, sizeof j->key, "%s:", identity);
	text_hex(j->key + len + 1, key, sizeof key);
	explicit_bzero(key, sizeof key);
	strcat(j->key, "\n");
	j->nfiles = 1;
	keys_file_name(j->file[0].name, identity, ".psk");
	j->file[0].text = j->key;
	j->file[0].secret = true;
	if (!keys_write(&j->out, j->o.dir, j->file, j->nfiles))
		return ST_FAILED;
	print_made(j, "copy it to the other host by a way that nobody reads, and use it there too");
	return ST_DONE;
}

/* ---- the commands ---- */

static int run_keys(const struct option_user *u, int argc, char **argv)
{
	static struct keys_job job; /* of some size, and wiped */
	char why[800];
	int first = 0, status;
	enum opts_result r;

	/* no core file of this process: 1 also stops those that a program takes (core(5)) */
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 1, 1 });
	job = (struct keys_job){ .user = u, .o = { .dir = "." } };
	r = optrow_parse(&options, u, &job.o, argc, argv, &first, why, sizeof why);
	if (r == OPTS_HELP) {
		optrow_help(stdout, &options, u);
		return cmd_finish();
	}
	status = cmd_ready(r, u->name, why);
	if (status != CMD_READY)
		return status;
	out_init(&job.out, u->name, job.o.json);
	job.arg = argv + first;
	job.nargs = argc - first;
	status = (int)(u->bit == K_CA	  ? make_ca(&job)
		       : u->bit == K_HOST ? make_host(&job)
					  : make_psk(&job));
	if (out_finish(&job.out) && !status)
		status = ST_FAILED;
	explicit_bzero(&job, sizeof job);
	return status;
}

static void print_keys_help(FILE *f)
{
	cmd_help_head(f, "sessctl keys COMMAND",
		      "Make what secured wires need. No file is overwritten.");
	for (size_t i = 0; i < NUSERS; i++)
		cmd_help_row(f, users[i].name + strlen("keys "), users[i].synopsis, users[i].about);
	if (complete_wanted())
		return;
	fputc('\n', f);
	text_fold(f, "'sessctl keys COMMAND --help' shows the options, sessctl-keys(1) everything.",
		  0, 0, text_columns(f));
}

int cmd_keys(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "", *near = NULL;

	for (size_t i = 0; i < NUSERS; i++)
		if (!strcmp(word, users[i].name + strlen("keys ")))
			return run_keys(&users[i], argc - 1, argv + 1);
	if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
		print_keys_help(stdout);
		return cmd_finish();
	}
	for (size_t i = 0; i < NUSERS; i++)
		near = text_nearer(word, near, users[i].name + strlen("keys "));
	if (*word)
		fprintf(stderr, "sessctl keys: no command '%s'\n  try: sessctl keys %s\n", word,
			near ? near : "--help");
	else
		print_keys_help(stderr);
	return ST_USAGE;
}
