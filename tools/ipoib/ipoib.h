/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_IPOIB_H
#define SESSCTL_IPOIB_H
/* sessctl ipoib: its commands and their options. */
#include "cli/optrow.h"
#include <stdbool.h>

/* One bit a command; an option says which commands take it. */
enum ipoib_bit {
	I_SERVICE_ID = 1 << 0,
	I_LLADDR = 1 << 1,
	I_PRIVATE_DATA = 1 << 2,
	I_MAD = 1 << 3,
	I_LISTEN = 1 << 4,
	I_CONNECT = 1 << 5,
	I_SIM = 1 << 6,
	I_BRIDGE = 1 << 7,
	I_CONFORM = 1 << 8,
};

#define IPOIB_UNSET UINT64_MAX /* of a number that was not given */

struct ipoib_opts {
	const char *decode;
	uint64_t qpn, mtu;
	bool linux_form;
	const char *flags, *gid;
	bool hex;
	const char *capture;
	/* connections */
	const char *port;
	uint64_t peer_qpn, reject;
	struct optval_list set;
	uint32_t count, hold_ms, timeout_ms;
	/* sim */
	uint64_t seed;
	uint32_t nodes, loss;
	/* bridge */
	const char *tun, *udp, *sa;
	uint32_t link_mtu;
	uint64_t qkey, pkey, lifetime;
	struct optval_list ip, partition;
	/* conform */
	const char *self, *ip6, *cases, *profile, *junit, *pcap, *html;
	bool list, tap, pcap_all, every_bit;
	bool json, metrics;
	char **arg; /* what is left */
	int nargs;
};

struct ipoib_command {
	struct option_user user;
	int (*run)(const struct ipoib_opts *o);
};

/* OPTS_BAD: one sentence in @why. */
enum opts_result ipoib_opts_parse(struct ipoib_opts *o, const struct ipoib_command *cmd, int argc,
				  char **argv, char *why, size_t why_len);

void ipoib_opts_help(FILE *f, const struct ipoib_command *cmd);

/* sessctl ipoib COMMAND ...: it has options of its own. */
int cmd_ipoib(int argc, char **argv);

/* The commands; each returns an enum status. */
int ipoib_service_id(const struct ipoib_opts *o);
int ipoib_lladdr(const struct ipoib_opts *o);
int ipoib_private_data(const struct ipoib_opts *o);
int ipoib_mad(const struct ipoib_opts *o);
int ipoib_listen(const struct ipoib_opts *o);
int ipoib_connect(const struct ipoib_opts *o);
int ipoib_sim(const struct ipoib_opts *o);
int ipoib_bridge(const struct ipoib_opts *o);
int ipoib_conform(const struct ipoib_opts *o);

#endif
