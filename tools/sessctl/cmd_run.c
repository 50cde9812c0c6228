/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl run: a verbs program over TCP or SCTP, secured or not, by the drop-in in its place. */
#include "sessctl/cmd.h"
#include "cli/optrow.h"
#include "sessctl/run/run_view.h"
#include "cli/sessctl.h"
#include <arpa/inet.h>
#include <ddpsess/secure.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct run_opts {
	const char *transport, *device, *crc, *shm, *recv, *mode, *face, *view, *faults, *trace,
		*capture, *profile, *suppress, *fabric;
	struct ddps_secure_attr tls;
	bool check, strict;
	uint32_t retry_ms, seed;
};

#define RETRY_UNSET UINT32_MAX
#define SEED_UNSET  UINT32_MAX
#define AT(field)   offsetof(struct run_opts, field)

static const struct option_row table[] = {
	{ "transport", "tcp|sctp|tls|sctps", 1, VAL_TEXT, AT(transport), 0, 0,
	  "what carries the program's data (default tcp; tls with an option --tls)" },
	{ "tls", "FILE", 1, VAL_TEXT, AT(tls.settings), 0, 0,
	  "settings of tls and sctps, a line each: cert, key, ca, psk, ..." },
	{ "tls-cert", "FILE", 1, VAL_TEXT, AT(tls.cert), 0, 0, "the program's certificate" },
	{ "tls-key", "FILE", 1, VAL_TEXT, AT(tls.key), 0, 0, "its private key" },
	{ "tls-ca", "FILE", 1, VAL_TEXT, AT(tls.ca), 0, 0, "CAs that vouch for peers" },
	{ "tls-crl", "FILE", 1, VAL_TEXT, AT(tls.crl), 0, 0, "what they have revoked" },
	{ "tls-psk", "FILE", 1, VAL_TEXT, AT(tls.psk), 0, 0, "pre-shared keys" },
	{ "tls-psk-identity", "NAME", 1, VAL_TEXT, AT(tls.psk_identity), 0, 0,
	  "as whom the program connects with one" },
	{ "tls-peers", "FILE", 1, VAL_TEXT, AT(tls.peers), 0, 0, "rules which peers are allowed" },
	{ "tls-hosts", "FILE", 1, VAL_TEXT, AT(tls.hosts), 0, 0,
	  "the name expected at each address" },
	{ "tls-peer", "NAME,...", 1, VAL_TEXT, AT(tls.peer), 0, 0,
	  "who peers have to be, whatever their address" },
	{ "device-name", "NAME", 1, VAL_TEXT, AT(device), 0, 0,
	  "name of the program's device (default ddp0)" },
	{ "crc", "on|off", 1, VAL_TEXT, AT(crc), 0, 0,
	  "MPA CRCs (default on; off only if both sides say so)" },
	{ "shm", "auto|off", 1, VAL_TEXT, AT(shm), 0, 0,
	  "shared memory for a peer on this host that has it too (default off)" },
	{ "no-recv", "stall|strict", 1, VAL_TEXT, AT(recv), 0, 0,
	  "a Send without a receive: let it wait, or end the connection" },
	{ "retry", "SECONDS", 1, VAL_SECONDS, AT(retry_ms), 0, 3600000,
	  "how long a refused connection is tried again (default 1)" },
	{ "face", "iwarp|roce|ib", 1, VAL_TEXT, AT(face), 0, 0,
	  "what the device claims to be (default iwarp)" },
	{ "view", "on|off", 1, VAL_TEXT, AT(view), 0, 0,
	  "show the device below /sys/class/infiniband (default on)" },
	{ "mode", "preload|soname", 1, VAL_TEXT, AT(mode), 0, 0,
	  "preload the drop-in, or give it the names of the libraries" },
	{ "capture", "FILE", 1, VAL_TEXT, AT(capture), 0, 0,
	  "write the program's packets into FILE (pcapng), for packet analysers" },
	{ "profile", "FILE", 1, VAL_TEXT, AT(profile), 0, 0,
	  "which devices the program sees, and their limits" },
	{ "strict", NULL, 1, VAL_FLAG, AT(strict), 0, 0,
	  "refuse what adapters refuse: the table in docs/verbs.md" },
	{ "check", NULL, 1, VAL_FLAG, AT(check), 0, 0,
	  "report the program's own mistakes: rules of docs/check.md" },
	{ "suppress", "FILE", 1, VAL_TEXT, AT(suppress), 0, 0, "which of them not to report" },
	{ "faults", "FILE", 1, VAL_TEXT, AT(faults), 0, 0,
	  "what fails, and when: rules of sessctl-faults(5)" },
	{ "seed", "N", 1, VAL_NUMBER, AT(seed), 0, UINT32_MAX - 1,
	  "seed for what the rules leave to chance (default 1)" },
	{ "trace", "FILE", 1, VAL_TEXT, AT(trace), 0, 0, "write a line for each rule that fired" },
	{ "fabric", "ADDRESS:PORT,SA,GID", 1, VAL_TEXT, AT(fabric), 0, 0,
	  "libibumad on a subnet in UDP, and no verbs: for saquery, ibnetdiscover, ibping" },
	{ "help", NULL, 1, VAL_HELP, 0, 0, 0, "this text" },
	{ "version", NULL, 1, VAL_VERSION, 0, 0, 0, "version of sessctl and library" },
};

static const struct option_table options = { table, sizeof table / sizeof *table };

static const struct option_user user = {
	.name = "run",
	.synopsis = "[--] PROGRAM [ARGUMENT...]",
	.about = "Run a program for RDMA hardware over TCP or SCTP, without the hardware.",
	.bit = 1,
	.min_args = 1,
	.max_args = OPTROW_REST,
};

/* The files among the options --tls-..., and their variables; the other two are names. */
static const struct {
	const char *option, *variable;
	size_t at;
} tls_files[] = {
	{ "tls", "DDPSESS_TLS", AT(tls.settings) },
	{ "tls-cert", "DDPSESS_TLS_CERT", AT(tls.cert) },
	{ "tls-key", "DDPSESS_TLS_KEY", AT(tls.key) },
	{ "tls-ca", "DDPSESS_TLS_CA", AT(tls.ca) },
	{ "tls-crl", "DDPSESS_TLS_CRL", AT(tls.crl) },
	{ "tls-psk", "DDPSESS_TLS_PSK", AT(tls.psk) },
	{ "tls-peers", "DDPSESS_TLS_PEERS", AT(tls.peers) },
	{ "tls-hosts", "DDPSESS_TLS_HOSTS", AT(tls.hosts) },
};
#define TLS_FILES (sizeof tls_files / sizeof *tls_files)

static const char *get_tls_file(const struct run_opts *o, size_t i)
{
	return *(const char *const *)((const char *)o + tls_files[i].at);
}

/* The name of one that is there, or NULL. */
static const char *find_tls_option(const struct run_opts *o)
{
	for (size_t i = 0; i < TLS_FILES; i++)
		if (get_tls_file(o, i))
			return tls_files[i].option;
	return o->tls.peer ? "tls-peer" : o->tls.psk_identity ? "tls-psk-identity" : NULL;
}

static bool is_transport(const struct run_opts *o, char *why, size_t len)
{
	const char *t = o->transport ? o->transport : "tls";
	const bool secured = !strcmp(t, "tls") || !strcmp(t, "sctps");

	if (!secured && strcmp(t, "tcp") != 0 && strcmp(t, "sctp") != 0)
		snprintf(why, len, "--transport takes tcp, sctp, tls or sctps, not '%s'", t);
	else if (!secured && find_tls_option(o))
		snprintf(why, len,
			 "the option --%s is for --transport tls and sctps: %s would be plain",
			 find_tls_option(o), t);
	else
		return true;
	return false;
}

static bool is_face(const char *v, char *why, size_t len)
{
	if (!v || !strcmp(v, "iwarp") || !strcmp(v, "roce") || !strcmp(v, "ib"))
		return true;
	snprintf(why, len, "--face takes iwarp, roce or ib, not '%s'", v);
	return false;
}

/* One of two words, or not given. */
static bool one_of(const char *name, const char *v, const char *a, const char *b, char *why,
		   size_t len)
{
	if (!v || !strcmp(v, a) || !strcmp(v, b))
		return true;
	snprintf(why, len, "--%s takes %s or %s, not '%s'", name, a, b, v);
	return false;
}

/* Two IPv4 addresses of one network of 24 bits, and a GID. */
static bool is_fabric(const char *text)
{
	char udp[INET_ADDRSTRLEN], sa[INET_ADDRSTRLEN], gid[INET6_ADDRSTRLEN];
	struct in_addr here, there;
	struct in6_addr id;
	unsigned port;
	int end = 0;

	return sscanf(text, "%15[0-9.]:%5u,%15[0-9.],%45[0-9a-fA-F:]%n", udp, &port, sa, gid,
		      &end) == 4 &&
	       !text[end] && port && port <= UINT16_MAX && inet_pton(AF_INET, udp, &here) == 1 &&
	       inet_pton(AF_INET, sa, &there) == 1 && inet_pton(AF_INET6, gid, &id) == 1 &&
	       !((ntohl(here.s_addr) ^ ntohl(there.s_addr)) >> 8);
}

static bool words_are_good(const struct run_opts *o, char *why, size_t len)
{
	size_t n = o->device ? strlen(o->device) : 1;

	if (o->fabric && !is_fabric(o->fabric)) {
		snprintf(why, len,
			 "--fabric takes an address with a port, the address of the subnet "
			 "administration in the same /24, and a GID, such as "
			 "192.0.2.9:4791,192.0.2.1,fe80::9; not '%s'",
			 o->fabric);
		return false;
	}

	if (n < 1 || n > RUN_DEVICE_MAX || (o->device && strpbrk(o->device, "/ \t\n"))) {
		snprintf(why, len, "--device-name takes 1 to %d characters without blank or slash",
			 RUN_DEVICE_MAX);
		return false;
	}
	return is_transport(o, why, len) && one_of("crc", o->crc, "on", "off", why, len) &&
	       one_of("shm", o->shm, "auto", "off", why, len) &&
	       one_of("no-recv", o->recv, "stall", "strict", why, len) &&
	       is_face(o->face, why, len) && one_of("view", o->view, "on", "off", why, len) &&
	       one_of("mode", o->mode, "preload", "soname", why, len);
}

static int set_env_if_given(const char *name, const char *value)
{
	return value ? setenv(name, value, 1) : 0;
}

/* In front of what the variable has already. */
static int prepend(const char *name, const char *value)
{
	const char *old = getenv(name);
	char *all;
	int err;

	if (!old || !*old)
		return setenv(name, value, 1);
	if (asprintf(&all, "%s:%s", value, old) < 0)
		return -1;
	err = setenv(name, all, 1);
	free(all);
	return err;
}

/* The program may go elsewhere before it reads it. */
static int set_path(const char *name, const char *path)
{
	char here[PATH_MAX], *all;
	int err;

	if (!path || *path == '/')
		return set_env_if_given(name, path);
	if (!getcwd(here, sizeof here) || asprintf(&all, "%s/%s", here, path) < 0)
		return -1;
	err = setenv(name, all, 1);
	free(all);
	return err;
}

static int set_numbers(const struct run_opts *o)
{
	char ms[16], seed[16];

	snprintf(ms, sizeof ms, "%u", o->retry_ms);
	snprintf(seed, sizeof seed, "%u", o->seed);
	return set_env_if_given("DDPSESS_RETRY_MS", o->retry_ms == RETRY_UNSET ? NULL : ms) ||
			       set_env_if_given("DDPSESS_SEED", o->seed == SEED_UNSET ? NULL : seed)
		       ? -1
		       : 0;
}

static int set_tls_env(const struct run_opts *o)
{
	for (size_t i = 0; i < TLS_FILES; i++)
		if (set_path(tls_files[i].variable, get_tls_file(o, i)))
			return -1;
	return set_env_if_given("DDPSESS_TLS_PEER", o->tls.peer) ||
			       set_env_if_given("DDPSESS_TLS_PSK_IDENTITY", o->tls.psk_identity)
		       ? -1
		       : 0;
}

static int set_run_env(const struct run_opts *o)
{
	return set_env_if_given("DDPSESS_TRANSPORT", o->transport) ||
			       set_env_if_given("DDPSESS_DEVICE", o->device) ||
			       set_env_if_given("DDPSESS_CRC", o->crc) ||
			       set_env_if_given("DDPSESS_SHM", o->shm) ||
			       set_env_if_given("DDPSESS_NO_RECV", o->recv) ||
			       set_env_if_given("DDPSESS_FACE", o->face) ||
			       set_path("DDPSESS_FAULTS", o->faults) ||
			       set_path("DDPSESS_TRACE", o->trace) ||
			       set_path("DDPSESS_CAPTURE", o->capture) ||
			       set_path("DDPSESS_PROFILE", o->profile) ||
			       set_env_if_given("DDPSESS_CHECK", o->check ? "on" : NULL) ||
			       set_env_if_given("DDPSESS_STRICT", o->strict ? "on" : NULL) ||
			       set_path("DDPSESS_SUPPRESS", o->suppress) || set_numbers(o) ||
			       set_tls_env(o)
		       ? -1
		       : 0;
}

/* The loader separates names by colons, and folders by semicolons too. */
static int find_library(const char *name, char real[PATH_MAX], struct run_fault *f)
{
	char path[PATH_MAX];

	if (run_find_library(name, path, sizeof path, f))
		return -1;
	if (!realpath(path, real) || strpbrk(real, ":;")) {
		snprintf(f->why, sizeof f->why, "'%.400s' has a name that the loader cannot take",
			 path);
		snprintf(f->try, sizeof f->try, "install ddpsess where no colon or semicolon is");
		return -1;
	}
	return 0;
}

/* Of names to preload a blank is the end: such a library is found in its folder by its own name. */
static int preload_library(const char *real)
{
	const char *name = strrchr(real, '/') + 1;
	char folder[PATH_MAX];

	if (!strchr(real, ' '))
		return prepend("LD_PRELOAD", real);
	snprintf(folder, sizeof folder, "%.*s", (int)(name - 1 - real), real);
	return prepend("LD_LIBRARY_PATH", folder) || prepend("LD_PRELOAD", name) ? -1 : 0;
}

/* The device's folders, as the drop-in @library describes it. */
static int set_view(const char *library, struct run_fault *f)
{
	char root[PATH_MAX], real[PATH_MAX];

	switch (run_view_write(library, root, f)) {
	case -2: /* the drop-in refuses a setting, and informs the program */
		return 0;
	case 0:
		return find_library(RUN_VIEW, real, f) || set_env_if_given("DDPSESS_VIEW", root) ||
				       preload_library(real)
			       ? -1
			       : 0;
	default:
		return -1;
	}
}

static int set_loader(const struct run_opts *o, struct run_fault *f)
{
	bool soname = o->mode && !strcmp(o->mode, "soname");
	char real[PATH_MAX];

	if (o->fabric)
		return find_library(RUN_UMAD, real, f) ||
				       set_env_if_given("DDPSESS_FABRIC", o->fabric) ||
				       preload_library(real)
			       ? -1
			       : 0;
	if (find_library(soname ? RUN_SONAME : "libddpsess-verbs.so", real, f))
		return -1;
	if ((!o->view || !strcmp(o->view, "on")) && set_view(real, f))
		return -1;
	if (!soname)
		return preload_library(real);
	*strrchr(real, '/') = 0;
	return prepend("LD_LIBRARY_PATH", real);
}

/* The drop-in reads it; that it is there can be reported before the program starts. */
static int check_file(const char *option, const char *path, struct run_fault *f)
{
	if (!path || !access(path, R_OK))
		return 0;
	snprintf(f->why, sizeof f->why, "--%s '%.400s': %s", option, path, strerror(errno));
	snprintf(f->try, sizeof f->try, "name a file that you may read");
	return -1;
}

static int check_tls_files(const struct run_opts *o, struct run_fault *f)
{
	for (size_t i = 0; i < TLS_FILES; i++)
		if (check_file(tls_files[i].option, get_tls_file(o, i), f))
			return -1;
	return 0;
}

static int print_run_fault(const struct run_fault *f, int status)
{
	fprintf(stderr, "sessctl run: %s\n  try: %s\n", f->why, f->try);
	return status;
}

static int take_place(const struct run_opts *o, char **argv)
{
	struct run_fault f = { .why = "the environment cannot be set", .try = "free some memory" };
	char path[PATH_MAX];
	int err = run_find_program(argv[0], path, sizeof path, &f);

	if (err)
		return print_run_fault(&f, err);
	if (check_file("faults", o->faults, &f) || check_file("profile", o->profile, &f) ||
	    check_file("suppress", o->suppress, &f) || check_tls_files(o, &f) || set_run_env(o) ||
	    set_loader(o, &f))
		return print_run_fault(&f, RUN_CANNOT);
	execvp(path, argv);
	snprintf(f.why, sizeof f.why, "'%.400s' does not start: %s", path, strerror(errno));
	snprintf(f.try, sizeof f.try, "run it without sessctl first");
	return print_run_fault(&f, errno == ENOENT ? RUN_NOT_FOUND : RUN_CANNOT);
}

int cmd_run(int argc, char **argv)
{
	struct run_opts o = { .retry_ms = RETRY_UNSET, .seed = SEED_UNSET };
	char why[800];
	int first = 0;

	switch (optrow_parse(&options, &user, &o, argc, argv, &first, why, sizeof why)) {
	case OPTS_HELP:
		optrow_help(stdout, &options, &user);
		return cmd_finish();
	case OPTS_VERSION:
		return cmd_version();
	case OPTS_OK:
		if (words_are_good(&o, why, sizeof why))
			return take_place(&o, argv + first);
		break;
	case OPTS_BAD:
		break;
	}
	fprintf(stderr, "sessctl run: %s\n  try: sessctl run --help\n", why);
	return ST_USAGE;
}
