/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of sessctl ipoib. */
#include "ipoib.h"
#include <ddpsess/ipoib_cm.h>
#include <string.h>

#define I_TEXT (I_SERVICE_ID | I_LLADDR | I_PRIVATE_DATA)
#define I_ALL  (I_TEXT | I_MAD)

#define AT(field) offsetof(struct ipoib_opts, field)

static const struct option_row table[] = {
	{ "qpn", "N", I_TEXT, VAL_UINT, AT(qpn), 0, DDPS_IPOIB_QPN_MAX,
	  "UD queue pair number of the interface, 24 bits" },
	{ "linux", NULL, I_SERVICE_ID, VAL_FLAG, AT(linux_form), 0, 0,
	  "the service ID that Linux uses, not that of RFC 4755" },
	{ "flags", "rc,uc|rc|uc|ud", I_LLADDR, VAL_TEXT, AT(flags), 0, 0,
	  "connections that the interface takes (default ud: none)" },
	{ "gid", "GID", I_LLADDR, VAL_TEXT, AT(gid), 0, 0,
	  "port GID, written like an IPv6 address" },
	{ "mtu", "N", I_PRIVATE_DATA, VAL_UINT, AT(mtu), 0, UINT32_MAX,
	  "Receive MTU, encapsulation header included" },
	{ "decode", "VALUE", I_TEXT, VAL_TEXT, AT(decode), 0, 0,
	  "take VALUE apart instead of making one" },
	{ "hex", NULL, I_MAD, VAL_FLAG, AT(hex), 0, 0,
	  "hexadecimal digits out, a line a message (JSON in: the default)" },
	{ "capture", "FILE", I_MAD, VAL_TEXT, AT(capture), 0, 0,
	  "also write the messages as a capture that packet analysers read" },
	{ "json", NULL, I_ALL, VAL_FLAG, AT(json), 0, 0, "one JSON object a line" },
	{ "help", NULL, I_ALL, VAL_HELP, 0, 0, 0, "this text" },
	{ "version", NULL, I_ALL, VAL_VERSION, 0, 0, 0, "version of sessctl and library" },
};

#define NROWS (sizeof table / sizeof *table)
_Static_assert(NROWS <= OPTROW_MAX, "the parser takes no more");

static const struct option_table options = { table, NROWS };

/* Either --decode or what the value is made of. */
static int check_text(const struct ipoib_opts *o, unsigned bit, char *why, size_t why_len)
{
	bool made = o->qpn != IPOIB_UNSET || o->mtu != IPOIB_UNSET || o->flags || o->gid ||
		    o->linux_form;
	const char *missing = o->qpn == IPOIB_UNSET			       ? "qpn"
			      : bit == I_LLADDR && !o->gid		       ? "gid"
			      : bit == I_PRIVATE_DATA && o->mtu == IPOIB_UNSET ? "mtu"
									       : NULL;

	if (o->decode && made)
		snprintf(why, why_len, "--decode stands alone: it needs nothing but the value");
	else if (!o->decode && missing)
		snprintf(why, why_len, "--%s is missing (or --decode VALUE)", missing);
	else
		return 0;
	return -1;
}

enum opts_result ipoib_opts_parse(struct ipoib_opts *o, const struct ipoib_command *cmd, int argc,
				  char **argv, char *why, size_t why_len)
{
	enum opts_result res;
	int first = 0;

	*o = (struct ipoib_opts){ .qpn = IPOIB_UNSET, .mtu = IPOIB_UNSET };
	res = optrow_parse(&options, &cmd->user, o, argc, argv, &first, why, why_len);
	if (res != OPTS_OK)
		return res;
	o->arg = argv + first;
	o->nargs = argc - first;
	if (cmd->user.bit & I_TEXT && check_text(o, cmd->user.bit, why, why_len))
		return OPTS_BAD;
	if (o->json && o->hex) {
		snprintf(why, why_len, "--json and --hex exclude each other");
		return OPTS_BAD;
	}
	return OPTS_OK;
}

void ipoib_opts_help(FILE *f, const struct ipoib_command *cmd)
{
	optrow_help(f, &options, &cmd->user);
}
