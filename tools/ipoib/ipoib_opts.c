/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of sessctl ipoib. */
#include "ipoib/ipoib.h"
#include "cli/complete.h"
#include <ddpsess/conform_ipoib.h>
#include <ddpsess/ipoib_cm.h>
#include <string.h>

#define I_TEXT (I_SERVICE_ID | I_LLADDR | I_PRIVATE_DATA)
#define I_CONN (I_LISTEN | I_CONNECT)
#define I_ALL  (I_TEXT | I_MAD | I_CONN | I_SIM | I_BRIDGE | I_CONFORM)
#define I_NODE (I_CONN | I_BRIDGE)

#define AT(field) offsetof(struct ipoib_opts, field)

static const struct option_row table[] = {
	{ "qpn", "N", I_TEXT | I_NODE, VAL_UINT, AT(qpn), 0, DDPS_IPOIB_QPN_MAX,
	  "UD queue pair number of the interface, 24 bits" },
	{ "linux", NULL, I_SERVICE_ID | I_CONN, VAL_FLAG, AT(linux_form), 0, 0,
	  "the service ID that Linux uses, not that of RFC 4755" },
	{ "flags", "rc,uc|rc|uc|ud", I_LLADDR, VAL_TEXT, AT(flags), 0, 0,
	  "connections that the interface takes (default ud: none)" },
	{ "gid", "GID", I_LLADDR | I_NODE | I_CONFORM, VAL_TEXT, AT(gid), 0, 0,
	  "port GID, written like an IPv6 address" },
	{ "mtu", "N", I_PRIVATE_DATA | I_NODE, VAL_UINT, AT(mtu), 0, UINT32_MAX,
	  "Receive MTU, encapsulation header included" },
	{ "decode", "VALUE", I_TEXT, VAL_TEXT, AT(decode), 0, 0,
	  "decode VALUE instead of making one" },
	{ "hex", NULL, I_MAD, VAL_FLAG, AT(hex), 0, 0,
	  "print hexadecimal digits, one line per message (default if the input is JSON)" },
	{ "capture", "FILE", I_MAD | I_NODE, VAL_TEXT, AT(capture), 0, 0,
	  "also write what is sent and received into a capture file, for packet analysers" },
	{ "port", "umad|verbs|ib", I_CONN, VAL_TEXT, AT(port), 0, 0,
	  "where messages go (default umad: first InfiniBand port, or umad:DEVICE:PORT); connect: "
	  "or "
	  "rdmacm" },
	{ "port", "verbs[:DEV[:PORT]]|ib", I_BRIDGE, VAL_TEXT, AT(port), 0, 0,
	  "how packets travel: by an adapter, or in UDP (default ib)" },
	{ "port", "verbs[:DEV[:PORT]]", I_CONFORM, VAL_TEXT, AT(port), 0, 0,
	  "be a node with an adapter (default: with packets in UDP, where more can be made "
	  "wrong)" },
	{ "sa", "ADDRESS", I_NODE, VAL_TEXT, AT(sa), 0, 0,
	  "--port ib: IPv4 address of the subnet administration; if it is this node's own, it runs "
	  "here" },
	{ "sa", "ADDRESS", I_CONFORM, VAL_TEXT, AT(sa), 0, 0,
	  "IPv4 address of the subnet administration (default: it runs here)" },
	{ "link-mtu", "N", I_CONFORM, VAL_NUMBER, AT(link_mtu), 256, 4096,
	  "administration: MTU of datagrams and groups (default 2048)" },
	{ "qkey", "N", I_CONFORM, VAL_UINT, AT(qkey), 0, UINT32_MAX,
	  "administration: Q_Key of the link (default 0x80000b1b)" },
	{ "pkey", "N", I_CONFORM, VAL_UINT, AT(pkey), 1, 0xffff,
	  "P_Key of the link (default 0xffff)" },
	{ "link-mtu", "N", I_NODE, VAL_NUMBER, AT(link_mtu), 256, 4096,
	  "--port ib, administration; RoCE: MTU of datagrams and groups (default 2048; RoCE: the "
	  "port's)" },
	{ "qkey", "N", I_NODE, VAL_UINT, AT(qkey), 0, UINT32_MAX,
	  "--port ib, administration; RoCE: Q_Key of the link (default 0xb1b)" },
	{ "lifetime", "N", I_NODE, VAL_UINT, AT(lifetime), 0, DDPS_CM_TIME_MAX,
	  "--port ib, administration: packet lifetime, 4.096 us * 2^N (default 18, 1.07 s)" },
	{ "pkey", "N", I_NODE, VAL_UINT, AT(pkey), 1, 0xffff,
	  "--port ib and verbs: P_Key of the link (default 0xffff)" },
	{ "partition", "P_KEY", I_NODE, VAL_LIST, AT(partition), 0, 0,
	  "--port ib, where the administration is: one more partition; may be repeated" },
	{ "peer-qpn", "N", I_CONNECT, VAL_UINT, AT(peer_qpn), 0, DDPS_IPOIB_QPN_MAX,
	  "UD queue pair of the peer, if PEER is a GID" },
	{ "set", "FIELD=VALUE", I_CONN, VAL_LIST, AT(set), 0, 0,
	  "a field of the REQ (connect) or of each REP (listen), repeatable" },
	{ "hold", "SECONDS", I_CONNECT, VAL_SECONDS, AT(hold_ms), 0, 86400000,
	  "how long to stay connected (default 0)" },
	{ "reject", "REASON", I_LISTEN, VAL_UINT, AT(reject), 1, 65535,
	  "refuse every request with that reason, such as 28" },
	{ "count", "N", I_LISTEN, VAL_NUMBER, AT(count), 1, UINT32_MAX,
	  "accept N requests, then exit when their connections have ended" },
	{ "seed", "N", I_SIM, VAL_UINT, AT(seed), 0, UINT64_MAX,
	  "seed of the fabric and of a random scenario (default 1)" },
	{ "nodes", "N", I_SIM, VAL_NUMBER, AT(nodes), 2, 200, "number of nodes (default 3)" },
	{ "loss", "PERCENT", I_SIM, VAL_NUMBER, AT(loss), 1, 100,
	  "part of all messages that gets lost (default none)" },
	{ "count", "N", I_SIM, VAL_NUMBER, AT(count), 1, 100000,
	  "packets of a random scenario (default 20)" },
	{ "timeout", "SECONDS", I_CONN, VAL_SECONDS, AT(timeout_ms), 1, 86400000,
	  "end the command after this time" },
	{ "tun", "NAME", I_BRIDGE, VAL_TEXT, AT(tun), 0, 0, "TUN device to make" },
	{ "ip", "ADDRESS/PREFIX", I_BRIDGE, VAL_LIST, AT(ip), 0, 0,
	  "address of the device; repeatable, one IPv4, four IPv6" },
	{ "ip", "ADDRESS", I_CONFORM, VAL_LIST, AT(ip), 0, 0,
	  "first of 64 own IPv4 addresses on the link: each case is another neighbour" },
	{ "ip6", "ADDRESS", I_CONFORM, VAL_TEXT, AT(ip6), 0, 0,
	  "an IPv6 address of the target (default: cases that need one are skipped)" },
	{ "self", "ours|illumos|letter", I_CONFORM, VAL_TEXT, AT(self), 0, 0,
	  "test a node of this build: ours, or one that is made to behave otherwise" },
	{ "case", "PATTERN", I_CONFORM, VAL_TEXT, AT(cases), 0, 0,
	  "only cases whose name matches, as file names do" },
	{ "list", NULL, I_CONFORM, VAL_FLAG, AT(list), 0, 0,
	  "show the cases and what they cover, run none" },
	{ "profile", "linux-ib_ipoib|FILE", I_CONFORM, VAL_TEXT, AT(profile), 0, 0,
	  "known deviations of the target; linux-ib_ipoib is built in" },
	{ "every-bit", NULL, I_CONFORM, VAL_FLAG, AT(every_bit), 0, 0,
	  "flip each bit of each message, not one of each octet" },
	{ "tap", NULL, I_CONFORM, VAL_FLAG, AT(tap), 0, 0, "output as TAP, version 13" },
	{ "junit", "FILE", I_CONFORM, VAL_TEXT, AT(junit), 0, 0, "also write a JUnit report" },
	{ "html", "FILE", I_CONFORM, VAL_TEXT, AT(html), 0, 0, "also write a report for browsers" },
	{ "pcap", "FILE", I_CONFORM, VAL_TEXT, AT(pcap), 0, 0,
	  "write the packets of failed cases as a capture file" },
	{ "pcap-all", NULL, I_CONFORM, VAL_FLAG, AT(pcap_all), 0, 0,
	  "with --pcap: write all cases" },
	{ "timeout", "SECONDS", I_CONFORM, VAL_SECONDS, AT(timeout_ms), 1, 3600000,
	  "the longest wait for the target (default 15)" },
	{ "udp", "HOST:PORT", I_CONFORM, VAL_TEXT, AT(udp), 0, 0,
	  "own IPv4 address on the wire; its last octet is the LID" },
	{ "udp", "HOST:PORT", I_NODE, VAL_TEXT, AT(udp), 0, 0,
	  "--port ib: own IPv4 address, port 4791 unless all nodes have another" },
	{ "mode", "rc,uc|rc|uc|ud", I_BRIDGE, VAL_TEXT, AT(flags), 0, 0,
	  "connections used, ud: none (default rc)" },
	{ "metrics", NULL, I_BRIDGE, VAL_FLAG, AT(metrics), 0, 0,
	  "status: print the counters in the text format of Prometheus" },
	{ "json", NULL, I_ALL, VAL_FLAG, AT(json), 0, 0, "print one JSON object per line" },
	{ "help", NULL, I_ALL, VAL_HELP, 0, 0, 0, "this text" },
	{ "version", NULL, I_ALL, VAL_VERSION, 0, 0, 0, "version of sessctl and library" },
};

#define NROWS (sizeof table / sizeof *table)
_Static_assert(NROWS <= OPTROW_MAX, "the parser takes no more");

static const struct option_table options = { table, NROWS };

/* Either --decode or what the value is made of. */
static int check_text_options(const struct ipoib_opts *o, unsigned bit, char *why, size_t why_len)
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

static void set_ipoib_defaults(struct ipoib_opts *o, unsigned bit)
{
	*o = (struct ipoib_opts){ .qpn = IPOIB_UNSET,
				  .mtu = IPOIB_UNSET,
				  .peer_qpn = IPOIB_UNSET,
				  .qkey = IPOIB_UNSET,
				  .lifetime = IPOIB_UNSET,
				  .pkey = IPOIB_UNSET };
	o->seed = 1;
	o->nodes = 3;
	if (bit & I_CONN) {
		o->port = "umad";
		o->qpn = 0x48;
	}
	if (bit & I_NODE)
		o->mtu = DDPS_IPOIB_MTU_CM_MAX + DDPS_IPOIB_ENCAP_LEN;
	if (bit == I_BRIDGE) {
		o->flags = "rc";
		o->port = "ib";
	}
}

/* What only a port without hardware needs. */
static bool of_ib(const struct ipoib_opts *o)
{
	return o->gid || o->udp || o->sa || o->link_mtu || o->partition.n ||
	       o->qkey != IPOIB_UNSET || o->pkey != IPOIB_UNSET || o->lifetime != IPOIB_UNSET;
}

enum opts_result ipoib_opts_parse(struct ipoib_opts *o, const struct ipoib_command *cmd, int argc,
				  char **argv, char *why, size_t why_len)
{
	enum opts_result res;
	int first = 0;

	set_ipoib_defaults(o, cmd->user.bit);
	res = optrow_parse(&options, &cmd->user, o, argc, argv, &first, why, why_len);
	if (res != OPTS_OK)
		return res;
	o->arg = argv + first;
	o->nargs = argc - first;
	if (cmd->user.bit & I_TEXT && check_text_options(o, cmd->user.bit, why, why_len))
		return OPTS_BAD;
	if (cmd->user.bit & I_CONN && strcmp(o->port, "ib") != 0 &&
	    strncmp(o->port, "verbs", 5) != 0 && of_ib(o)) {
		snprintf(why, why_len,
			 "--gid, --udp, --sa, --link-mtu, --qkey, --lifetime, --pkey and "
			 "--partition go with --port ib");
		return OPTS_BAD;
	}
	if (o->json && o->hex) {
		snprintf(why, why_len, "--json and --hex exclude each other");
		return OPTS_BAD;
	}
	return OPTS_OK;
}

static const char *name_ipoib_case(size_t i, const char **about)
{
	struct ddps_conform_case c;

	if (ddps_conform_ipoib_case(i, &c))
		return NULL;
	*about = c.rule;
	return c.name;
}

void ipoib_opts_help(FILE *f, const struct ipoib_command *cmd)
{
	complete_patterns(name_ipoib_case);
	optrow_help(f, &options, &cmd->user);
}
