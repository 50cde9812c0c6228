/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection falls silent: what its peer sends is dropped before its socket, by a filter that any
 * process may put on a socket of its own.  So the peer's requests are not even acknowledged, as when
 * a cable is cut.  The socket is looked for by its addresses, since the library does not show it.
 * Over SCTP several connections share it, and the peer's port and address choose among them: all of
 * one association fall silent together.
 */
#include "edge/ed.h"
#include <arpa/inet.h>
#include <linux/filter.h>
#include <sys/resource.h>

#define FDS_MAX 65536

static bool is_at(int fd, int (*name)(int, struct sockaddr *, socklen_t *),
		  const struct ddps_addr *want)
{
	struct sockaddr_storage ss = { 0 };
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)&ss;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)&ss;
	socklen_t len = sizeof ss;

	if (name(fd, (struct sockaddr *)&ss, &len))
		return false;
	if (ss.ss_family == AF_INET)
		return want->family == 4 && ntohs(a4->sin_port) == want->port &&
		       !memcmp(&a4->sin_addr, want->ip, 4);
	if (ss.ss_family != AF_INET6 || ntohs(a6->sin6_port) != want->port)
		return false;
	if (IN6_IS_ADDR_V4MAPPED(&a6->sin6_addr)) /* of a listener of both families */
		return want->family == 4 && !memcmp(a6->sin6_addr.s6_addr + 12, want->ip, 4);
	return want->family == 6 && !memcmp(&a6->sin6_addr, want->ip, sizeof want->ip) &&
	       (!want->scope || want->scope == a6->sin6_scope_id);
}

static int local_name(int fd, struct sockaddr *sa, socklen_t *len)
{
	return getsockname(fd, sa, len);
}

static int peer_name(int fd, struct sockaddr *sa, socklen_t *len)
{
	return getpeername(fd, sa, len);
}

static void filter(int fd, struct sock_filter *code, unsigned short n)
{
	struct sock_fprog prog = { n, code };

	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog);
}

static void attach_drop_filter(int fd)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, 0) };

	filter(fd, code, 1);
}

/* The UDP header is where the data begins; the port is enough where it has but one host behind. */
static void drop_port(int fd, uint16_t port)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};

	filter(fd, code, sizeof code / sizeof *code);
}

void ed_silence(struct ed_qp *q)
{
	struct vd_qp *qp = vd_of(q->qp, struct vd_qp, qp.qp_base);
	struct ddps_conn_info info = { 0 };
	struct rlimit lim = { FDS_MAX, FDS_MAX };

	if (!qp->ep || ddps_ep_info(qp->ep, &info))
		return;
	getrlimit(RLIMIT_NOFILE, &lim);
	for (int fd = 0; fd < FDS_MAX && (rlim_t)fd < lim.rlim_cur; fd++) {
		int type = 0;
		socklen_t len = sizeof type;

		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len))
			continue;
		if (info.transport == DDPS_TRANSPORT_TCP && type == SOCK_STREAM &&
		    is_at(fd, peer_name, &info.peer_addr) &&
		    is_at(fd, local_name, &info.local_addr))
			attach_drop_filter(fd);
		else if (info.transport != DDPS_TRANSPORT_TCP && type == SOCK_DGRAM)
			drop_port(fd, info.sctp.encap);
	}
}
