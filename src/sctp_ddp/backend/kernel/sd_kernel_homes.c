/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Associations of the kernel's with several addresses (RFC 9260 1.3), by the calls of RFC 6458 9.1,
 * 9.3, 9.9 and 8.2: which they have, which paths there are, and which one is preferred.
 */
#include "common/own.h"
#include "sctp_ddp/backend/kernel/sd_kernel.h"
#include "sctp_ddp/backend/sd_sock.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* More addresses than that are not looked at. */
#define ANSWER_ADDRS 128u

/* As bindx and connectx want them: one behind the other, each as long as its family has it. */
struct packed {
	uint8_t octets[DDPS_URI_ADDRS_MAX * sizeof(struct sockaddr_in6)];
	socklen_t len;
};

/* What SCTP_GET_PEER_ADDRS and SCTP_GET_LOCAL_ADDRS fill, struct sctp_getaddrs. */
struct answer {
	sctp_assoc_t assoc_id;
	uint32_t n;
	uint8_t addrs[ANSWER_ADDRS * sizeof(struct sockaddr_in6)];
};

static struct packed pack(const struct ddps_uri_addrs *list)
{
	struct packed p = { .len = 0 };

	for (unsigned i = 0; i < list->n; i++) {
		socklen_t len = ddps_addr_len(&list->at[i]);

		memcpy(p.octets + p.len, &list->at[i], len);
		p.len += len;
	}
	return p;
}

static bool any6(const struct ddps_uri_addrs *list)
{
	for (unsigned i = 0; i < list->n; i++)
		if (list->at[i].ss_family == AF_INET6)
			return true;
	return false;
}

int ddps_sk_family(const struct sockaddr *sa, const struct ddps_uri *uri)
{
	return any6(&uri->hosts) || any6(&uri->from) ? AF_INET6 : sa->sa_family;
}

bool ddps_sk_families_fit(const struct sockaddr *sa, const struct ddps_uri *uri)
{
	struct ddps_uri_addrs one = { .n = 1 };

	one.at[0].ss_family = sa->sa_family;
	return ddps_sd_sock_families_fit(&uri->from, uri->hosts.n ? &uri->hosts : &one);
}

int ddps_sk_bind(int fd, const struct ddps_uri_addrs *list)
{
	struct packed p = pack(list);
	uint64_t since = 0;
	int err;

	do
		err = setsockopt(fd, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, p.octets, p.len);
	while (err && ddps_own_retry(&since));
	return err;
}

int ddps_sk_connect(int fd, const struct ddps_uri_addrs *list)
{
	struct packed p = pack(list);

	/* More than 0 is the association's number. */
	return setsockopt(fd, IPPROTO_SCTP, SCTP_SOCKOPT_CONNECTX, p.octets, p.len) < 0 ? -1 : 0;
}

/* ---- which there are ---- */

/* At most DDPS_URI_ADDRS_MAX of them; none if the kernel does not say. */
static struct ddps_uri_addrs addresses(int fd, bool peer)
{
	int opt = peer ? SCTP_GET_PEER_ADDRS : SCTP_GET_LOCAL_ADDRS;
	struct answer a = { .assoc_id = 0 };
	struct ddps_uri_addrs out = { 0 };
	socklen_t len = sizeof a;
	size_t at = 0, left;

	if (fd < 0 || getsockopt(fd, IPPROTO_SCTP, opt, &a, &len) < 0)
		return out;
	for (uint32_t i = 0; i < a.n && out.n < DDPS_URI_ADDRS_MAX; i++) {
		struct sockaddr_storage *ss = &out.at[out.n];
		socklen_t one;
		sa_family_t family;

		left = sizeof a.addrs - at;
		if (left < sizeof(struct sockaddr_in6))
			break;
		memcpy(&family, a.addrs + at, sizeof family);
		ss->ss_family = family;
		one = ddps_addr_len(ss);
		memcpy(ss, a.addrs + at, one);
		at += one;
		out.n++;
	}
	return out;
}

void ddps_sk_endpoint_text(int fd, char *buf, size_t len)
{
	struct ddps_uri_addrs list = addresses(fd, false);

	ddps_addrs_text(&list, buf, len);
}

static bool is_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	char x[72], y[72]; /* whatever form they have */

	ddps_addr_text((const struct sockaddr *)a, x, sizeof x);
	ddps_addr_text((const struct sockaddr *)b, y, sizeof y);
	return !strcmp(x, y);
}

static int read_assoc_status(const struct ddps_sd_assoc *a, struct sctp_status *st)
{
	socklen_t len = sizeof *st;

	memset(st, 0, sizeof *st);
	if (a->io.fd < 0 || getsockopt(a->io.fd, IPPROTO_SCTP, SCTP_STATUS, st, &len) < 0)
		return DDPS_E_STATE;
	return 0;
}

int ddps_sk_primary(const struct ddps_sd_assoc *a, struct sockaddr_storage *ss)
{
	struct sctp_status s;
	int err = read_assoc_status(a, &s);

	if (!err)
		memcpy(ss, &s.sstat_primary.spinfo_address, sizeof *ss);
	return err;
}

/* ---- stats ---- */

static const char *get_kernel_state_name(int32_t state)
{
	static const char *const names[] = {
		[SCTP_CLOSED] = "CLOSED",
		[SCTP_COOKIE_WAIT] = "COOKIE-WAIT",
		[SCTP_COOKIE_ECHOED] = "COOKIE-ECHOED",
		[SCTP_ESTABLISHED] = "ESTABLISHED",
		[SCTP_SHUTDOWN_PENDING] = "SHUTDOWN-PENDING",
		[SCTP_SHUTDOWN_SENT] = "SHUTDOWN-SENT",
		[SCTP_SHUTDOWN_RECEIVED] = "SHUTDOWN-RECEIVED",
		[SCTP_SHUTDOWN_ACK_SENT] = "SHUTDOWN-ACK-SENT",
	};

	if (state < 0 || (size_t)state >= sizeof names / sizeof names[0] || !names[state])
		return "";
	return names[state];
}

int ddps_sk_assoc_stats(struct ddps_sd_assoc *a, struct ddps_assoc_stats *st)
{
	struct sctp_assoc_stats k = { .sas_assoc_id = SCTP_CURRENT_ASSOC };
	socklen_t len = sizeof k;
	struct sctp_status s;

	if (read_assoc_status(a, &s) ||
	    getsockopt(a->io.fd, IPPROTO_SCTP, SCTP_GET_ASSOC_STATS, &k, &len) < 0)
		return DDPS_E_STATE;
	st->packets_sent = k.sas_opackets;
	st->packets_received = k.sas_ipackets;
	st->chunks_sent = k.sas_ouodchunks + k.sas_oodchunks;
	st->chunks_received = k.sas_iuodchunks + k.sas_iodchunks;
	st->retransmitted = k.sas_rtxchunks;
	st->duplicates = k.sas_idupchunks;
	st->gaps = k.sas_gapcnt;
	st->peer_rwnd = s.sstat_rwnd;
	st->paths = addresses(a->io.fd, true).n;
	snprintf(st->state, sizeof st->state, "%s", get_kernel_state_name(s.sstat_state));
	return 0;
}

static enum ddps_path_state path_state(int32_t state)
{
	switch (state) {
	case SCTP_ACTIVE:
		return DDPS_PATH_ACTIVE;
	case SCTP_PF:
		return DDPS_PATH_DOUBTFUL;
	case SCTP_INACTIVE:
		return DDPS_PATH_INACTIVE;
	default:
		return DDPS_PATH_UNCONFIRMED;
	}
}

/* The kernel refuses to show one that has potentially failed, if it is set so. */
static enum ddps_path_state read_path_state(int fd, const struct sockaddr_storage *peer,
					    struct sctp_paddrinfo *p)
{
	socklen_t len = sizeof *p;

	*p = (struct sctp_paddrinfo){ .spinfo_assoc_id = SCTP_CURRENT_ASSOC };
	memcpy(&p->spinfo_address, peer, sizeof p->spinfo_address);
	if (getsockopt(fd, IPPROTO_SCTP, SCTP_GET_PEER_ADDR_INFO, p, &len) < 0)
		return errno == EACCES ? DDPS_PATH_DOUBTFUL : DDPS_PATH_UNCONFIRMED;
	return path_state(p->spinfo_state);
}

/* Where new data goes: the kernel does not tell, but does as RFC 9260 6.4 says. */
static bool find_path_in_use(int fd, const struct ddps_uri_addrs *list,
			     const struct sockaddr_storage *first, uint32_t path)
{
	struct sctp_paddrinfo p;
	uint32_t other = list->n;

	for (uint32_t i = list->n; i-- > 0;) {
		if (read_path_state(fd, &list->at[i], &p) != DDPS_PATH_ACTIVE)
			continue;
		if (is_same_address(&list->at[i], first))
			return i == path;
		other = i;
	}
	return other < list->n ? other == path : is_same_address(&list->at[path], first);
}

int ddps_sk_path_stats(struct ddps_sd_assoc *a, uint32_t path, struct ddps_path_stats *st)
{
	struct ddps_uri_addrs list = addresses(a->io.fd, true);
	struct sockaddr_storage first;
	struct sctp_paddrinfo p;

	if (ddps_sk_primary(a, &first) < 0)
		return DDPS_E_STATE;
	if (path >= list.n)
		return DDPS_E_INVAL;
	st->state = read_path_state(a->io.fd, &list.at[path], &p);
	st->rto_ns = p.spinfo_rto * NSEC_PER_MSEC;
	st->cwnd = p.spinfo_cwnd;
	st->mtu = p.spinfo_mtu;
	st->encap = a->life.info.encap;
	st->primary = is_same_address(&list.at[path], &first);
	st->in_use = find_path_in_use(a->io.fd, &list, &first, path);
	ddps_addr_text((struct sockaddr *)&list.at[path], st->peer, sizeof st->peer);
	return 0;
}

int ddps_sk_set_primary(struct ddps_sd_assoc *a, uint32_t path)
{
	struct ddps_uri_addrs list = addresses(a->io.fd, true);
	struct sctp_prim p = { .ssp_assoc_id = SCTP_CURRENT_ASSOC };

	if (a->io.fd < 0)
		return DDPS_E_STATE;
	if (path >= list.n)
		return DDPS_E_INVAL;
	memcpy(&p.ssp_addr, &list.at[path], sizeof p.ssp_addr);
	return setsockopt(a->io.fd, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &p, sizeof p) < 0
		       ? DDPS_E_STATE
		       : 0;
}

/* ---- what the kernel says of a path ---- */

void ddps_sk_path_note(const struct ddps_sd_assoc *a, const struct sctp_paddr_change *n)
{
	static const char *const names[] = { [SCTP_ADDR_AVAILABLE] = "active",
					     [SCTP_ADDR_UNREACHABLE] = "inactive",
					     [SCTP_ADDR_CONFIRMED] = "active" };
	struct sockaddr_storage ss;
	char addr[72];

	if (n->spc_state < 0 || (size_t)n->spc_state >= sizeof names / sizeof names[0] ||
	    !names[n->spc_state])
		return;
	memcpy(&ss, &n->spc_aaddr, sizeof ss);
	ddps_addr_text((struct sockaddr *)&ss, addr, sizeof addr);
	ddps_log(&a->ke->env->log, DDPS_LOG_INFO, "sctp", "path to %s is %s", addr,
		 names[n->spc_state]);
}
