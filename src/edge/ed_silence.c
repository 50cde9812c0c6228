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

static bool is_at(int fd, int (*name)(int, struct sockaddr *, socklen_t *), const char *want)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof ss;
	char text[80];

	if (name(fd, (struct sockaddr *)&ss, &len) ||
	    (ss.ss_family != AF_INET && ss.ss_family != AF_INET6))
		return false;
	vd_addr_text((struct sockaddr *)&ss, text, sizeof text);
	return !strcmp(text, want);
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
		    is_at(fd, peer_name, info.peer) && is_at(fd, local_name, info.local))
			attach_drop_filter(fd);
		else if (info.transport != DDPS_TRANSPORT_TCP && type == SOCK_DGRAM)
			drop_port(fd, info.sctp.encap);
	}
}
