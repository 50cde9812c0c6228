/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls on sockets; what a stream or a datagram does then is in kern_tcp.c and kern_udp.c. */
#include "sim/kern_in.h"
#include <errno.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdarg.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <unistd.h>

int __wrap_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol)
{
	int fd;

	if (family == AF_UNIX) {
		fd = kern_new(KERN_UNIX);
		if (fd >= 0)
			kern_file(fd)->un = kern_unix_new();
		return fd;
	}
	if (family != AF_INET || (type & 0xf) == SOCK_RAW)
		return kern_err(EAFNOSUPPORT);
	if (protocol == IPPROTO_SCTP) {
		fd = kern.sctp ? kern_new(KERN_SCTP) : kern_err(EPROTONOSUPPORT);
		if (fd >= 0)
			kern_file(fd)->sctp = kern_sctp_new();
		return fd;
	}
	return kern_new((type & 0xf) == SOCK_STREAM ? KERN_TCP : KERN_UDP);
}

/* The drop-in does without its mark. */
int __wrap_socketpair(int family, int type, int protocol, int *fds);
int __wrap_socketpair(int family, int type, int protocol, int *fds)
{
	(void)family;
	(void)type;
	(void)protocol;
	(void)fds;
	return kern_err(EAFNOSUPPORT);
}

int __wrap_bind(int fd, const struct sockaddr *sa, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct kern_file *f = kern_file(fd);
	unsigned host;
	uint16_t port;

	if (kern_fails("bind", EADDRINUSE, EACCES, EADDRNOTAVAIL, ENOMEM))
		return -1;
	if (f->kind == KERN_UNIX)
		return kern_unix_bind(f, sa, len);
	f->group = kern_group(sa, &port);
	if (f->group) { /* which others have, too */
		f->port = port;
		return 0;
	}
	if (!kern_parse(sa, &host, &port))
		return -1;
	if (port && kern_bound(f->kind, f->host, port))
		return kern_err(EADDRINUSE);
	f->port = port ? port : kern_free_port();
	if (f->kind == KERN_UDP)
		kern_udp_bound(f);
	return 0;
}

int __wrap_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog)
{
	if (kern_fails("listen", EADDRINUSE))
		return -1;
	kern_file(fd)->listening = true;
	kern_file(fd)->backlog = backlog > 0 ? (unsigned)backlog : 1;
	return 0;
}

int __wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	struct kern_file *f = kern_file(fd);
	struct sockaddr_in peer;
	struct kern_tcp *t;
	int child;

	kern_point(false);
	(void)flags;
	if (!(f->sctp ? kern_sctp_ready(f) & EPOLLIN
	      : f->un ? f->un_queue != NULL
		      : kern_tcp_ready(f) & EPOLLIN))
		return kern_err(f->un && !f->listening ? EINVAL : EAGAIN);
	if (kern_fails("accept4", ECONNABORTED, EAGAIN, EINTR, ENOBUFS, EPROTO))
		return -1;
	child = kern_new(f->kind);
	if (child < 0)
		return -1;
	if (f->un) {
		kern_file(child)->un = kern_unix_take(f, &kern_file(child)->who);
		kern_file(child)->host = f->host;
		return child;
	}
	if (f->sctp) {
		kern_file(child)->sctp = kern_sctp_take(f);
		kern_file(child)->host = f->host;
		kern_file(child)->port = f->port;
		return child;
	}
	t = kern_tcp_take(f, &peer);
	kern_file(child)->who = kern_tcp_who(t);
	kern_file(child)->tcp = t;
	kern_file(child)->host = f->host;
	kern_file(child)->port = f->port;
	memcpy(sa, &peer, sizeof peer);
	*len = sizeof peer;
	return child;
}

int __wrap_connect(int fd, const struct sockaddr *sa, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct kern_file *f = kern_file(fd);

	kern_point(false);
	if (f->kind == KERN_UNIX)
		return kern_fails("connect", ECONNREFUSED, EAGAIN, ENOMEM, EACCES)
			       ? -1
			       : kern_unix_connect(f, sa, len);
	if (sa->sa_family == AF_UNSPEC) {
		if (f->kind == KERN_TCP)
			kern_tcp_disconnect(f);
		return 0;
	}
	if (kern_fails("connect", EADDRNOTAVAIL, ECONNREFUSED, ENETUNREACH, EACCES, EAGAIN) ||
	    !kern_parse(sa, &f->to_host, &f->to_port))
		return -1;
	if (f->kind == KERN_TCP)
		return kern_tcp_connect(f, f->to_host, f->to_port);
	if (f->kind == KERN_SCTP)
		return kern_sctp_connect(f, f->to_host, f->to_port);
	if (!f->port)
		f->port = kern_free_port();
	return 0;
}

int __wrap_getsockname(int fd, struct sockaddr *sa, socklen_t *len);
int __wrap_getsockname(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct kern_file *f = kern_file(fd);
	struct sockaddr_in a = kern_addr(f->host, f->port);

	if (kern_fails("getsockname", ENOBUFS))
		return -1;
	if (f->kind == KERN_UNIX)
		return kern_unix_name(f, sa, len);
	memcpy(sa, &a, sizeof a);
	*len = sizeof a;
	return 0;
}

int __wrap_getsockopt(int fd, int level, int opt, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int opt, void *value, socklen_t *len)
{
	struct kern_file *f = kern_file(fd);
	struct linger l = { .l_onoff = kern_tcp_lingers(f) };
	const struct ucred peer = { getpid(), geteuid(), getegid() };
	int n = 0;

	if (level == SOL_SOCKET &&
	    opt == SO_PEERCRED) { /* it does not fail; all hosts are one process */
		memcpy(value, &peer, sizeof peer);
		*len = sizeof peer;
		return 0;
	}
	if (kern_fails("getsockopt", ENOBUFS))
		return -1;
	if (level == IPPROTO_SCTP)
		return kern_sctp_get(f, opt, value, len);
	if (level == SOL_SOCKET && opt == SO_LINGER) {
		memcpy(value, &l, sizeof l);
		*len = sizeof l;
		return 0;
	}
	if (level == SOL_SOCKET && opt == SO_ERROR)
		n = f->sctp ? kern_sctp_error(f) : kern_tcp_error(f);
	else if (level == SOL_SOCKET && opt == SO_RCVBUF)
		n = (int)(kern.datagrams * kern.mtu);
	else if (level == IPPROTO_TCP && opt == TCP_MAXSEG)
		n = (int)kern.mtu - 40;
	memcpy(value, &n, sizeof n);
	*len = sizeof n;
	return 0;
}

int __wrap_setsockopt(int fd, int level, int opt, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int opt, const void *value, socklen_t len)
{
	struct kern_file *f = kern_file(fd);
	struct ip_mreqn m;
	struct linger l;
	int on;

	if (level == SOL_SOCKET && opt == SO_LINGER) { /* it sets a flag, and does not fail */
		memcpy(&l, value, sizeof l);
		if (f->sctp)
			kern_sctp_linger(f, l.l_onoff);
		else
			kern_tcp_linger(f, l.l_onoff);
		return 0;
	}
	if (kern_fails("setsockopt", ENOMEM, ENOPROTOOPT))
		return -1;
	if (level == IPPROTO_SCTP)
		return kern_sctp_set(f, opt, value, len);
	if (level == IPPROTO_IP && opt == IP_MTU_DISCOVER) {
		memcpy(&on, value, sizeof on);
		f->fragments = on == IP_PMTUDISC_DONT;
	}
	if (level == IPPROTO_IP && opt == IP_RECVERR) {
		memcpy(&on, value, sizeof on);
		f->told = on;
	}
	if (level == IPPROTO_IP && opt == IP_ADD_MEMBERSHIP) {
		memcpy(&m, value, sizeof m);
		f->joined = ntohl(m.imr_multiaddr.s_addr);
	}
	if (level == IPPROTO_UDP && opt == UDP_SEGMENT && !kern.gso)
		return kern_err(ENOPROTOOPT);
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	const bool un = kern_file(fd)->kind == KERN_UNIX;
	int n = request != FIONREAD ? (int)kern_tcp_unacked(kern_file(fd))
		: un		    ? kern_unix_unread(kern_file(fd))
				    : (int)kern_tcp_unread(kern_file(fd));
	va_list ap;

	va_start(ap, request);
	if (n >= 0 && (request == FIONREAD || request == SIOCOUTQ))
		*va_arg(ap, int *) = n;
	va_end(ap);
	return n < 0 ? -1 : 0;
}

int __wrap_shutdown(int fd, int how);
int __wrap_shutdown(int fd, int how)
{
	if (kern_file(fd)->kind == KERN_UNIX)
		return kern_unix_shutdown(kern_file(fd), how);
	if (kern_tcp_fails(kern_file(fd), "shutdown", ENOTCONN))
		return -1;
	return kern_file(fd)->sctp ? kern_sctp_shutdown(kern_file(fd))
				   : kern_tcp_shutdown(kern_file(fd), how);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);

ssize_t __wrap_readv(int fd, const struct iovec *iov, int n);
ssize_t __wrap_readv(int fd, const struct iovec *iov, int n)
{
	kern_point(false);
	if (kern_tcp_fails(kern_file(fd), "read", EINTR, EAGAIN, ECONNRESET, ETIMEDOUT, KERN_BRIEF))
		return -1;
	return kern_tcp_recv(kern_file(fd), iov, n);
}

ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags)
{
	struct iovec iov = { buf, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	kern_point(false);
	return kern_file(fd)->kind == KERN_UNIX ? __wrap_recvmsg(fd, &m, flags)
						: __wrap_readv(fd, &iov, 1);
}

ssize_t __wrap___recv_chk(int fd, void *buf, size_t len, size_t room, int flags);
ssize_t __wrap___recv_chk(int fd, void *buf, size_t len, size_t room, int flags)
{
	if (len > room)
		abort();
	return __wrap_recv(fd, buf, len, flags);
}

ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	const struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	kern_point(false);
	if (kern_file(fd)->kind == KERN_UNIX)
		return __wrap_sendmsg(fd, &m, flags);
	if (kern_tcp_fails(kern_file(fd), "send", KERN_SEND_ERRS))
		return -1;
	return kern_tcp_send(kern_file(fd), &iov, 1);
}
