/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors of datagrams, as Linux reports them: the next call fails with the one that came last, once, even
 * if there is something to be read; all are in a queue, which is read apart.
 */
#include "sim/kern_in.h"
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/ip_icmp.h>
#include <ifaddrs.h>
#include <net/if.h>

#define QUOTE 128u /* octets of a datagram that an error quotes */
#define HOPS  64u  /* errors that a socket keeps */

struct kern_icmp {
	struct kern_icmp *next;
	uint64_t at;
	bool here; /* it has arrived, and the next call was to report it */
	struct sock_extended_err e;
	unsigned host; /* and where it went */
	uint16_t port;
	size_t len;
	uint8_t quote[QUOTE];
};

bool kern_icmp_waits(const struct kern_file *f)
{
	return f->errors && f->errors->at <= kern.now;
}

int kern_icmp_told(struct kern_file *f)
{
	int err;

	for (struct kern_icmp *e = f->errors; e && e->at <= kern.now; e = e->next) {
		if (!e->here)
			f->error = (int)e->e.ee_errno;
		e->here = true;
	}
	err = f->error;
	f->error = 0;
	return err;
}

ssize_t kern_icmp_read(struct kern_file *f, struct msghdr *m)
{
	struct kern_icmp *e = f->errors;
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	struct sockaddr_in to;
	size_t len;

	if (!kern_icmp_waits(f))
		return kern_err(EAGAIN);
	to = kern_addr(e->host, e->port);
	len = e->len < m->msg_iov->iov_len ? e->len : m->msg_iov->iov_len;
	memcpy(m->msg_iov->iov_base, e->quote, len);
	memcpy(m->msg_name, &to, sizeof to);
	m->msg_namelen = sizeof to;
	m->msg_flags = MSG_ERRQUEUE;
	*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof e->e),
			       .cmsg_level = IPPROTO_IP,
			       .cmsg_type = IP_RECVERR };
	memcpy(CMSG_DATA(c), &e->e, sizeof e->e);
	m->msg_controllen = CMSG_SPACE(sizeof e->e);
	f->errors = e->next;
	f->error = kern_icmp_waits(f) ? (int)f->errors->e.ee_errno : 0;
	free(e);
	return (ssize_t)len;
}

void kern_icmp_close(struct kern_file *f)
{
	struct kern_icmp *e;

	while ((e = f->errors)) {
		f->errors = e->next;
		free(e);
	}
}

/* It arrives at @at, behind those before it. */
static void put_kern_icmp(struct kern_file *f, unsigned host, uint16_t port,
			  struct sock_extended_err what, const struct kern_quote *q, uint64_t at)
{
	struct kern_icmp *e, **last;
	unsigned n = 0;

	if (!f->told)
		return;
	for (last = &f->errors; *last; last = &(*last)->next)
		n++;
	if (n >= HOPS)
		return;
	e = kern_alloc(sizeof *e);
	*e = (struct kern_icmp){ .at = at, .e = what, .host = host };
	e->e.ee_origin = SO_EE_ORIGIN_ICMP;
	e->port = port;
	e->len = q->len < QUOTE ? q->len : QUOTE;
	memcpy(e->quote, q->p, e->len);
	*last = e;
	kern_wake(at);
}

static struct sock_extended_err unreachable(uint8_t code)
{
	return (struct sock_extended_err){ .ee_errno = code == ICMP_PORT_UNREACH ? ECONNREFUSED
										 : EHOSTUNREACH,
					   .ee_type = ICMP_DEST_UNREACH,
					   .ee_code = code };
}

static struct sock_extended_err too_long(unsigned mtu)
{
	return (struct sock_extended_err){ .ee_errno = EMSGSIZE,
					   .ee_type = ICMP_DEST_UNREACH,
					   .ee_code = ICMP_FRAG_NEEDED,
					   .ee_info = mtu };
}

void kern_icmp_nobody(struct kern_file *f, unsigned host, uint16_t port, struct kern_quote q,
		      uint64_t at)
{
	put_kern_icmp(f, host, port, unreachable(ICMP_PORT_UNREACH), &q, at);
}

void kern_icmp_too_long(struct kern_file *f, unsigned host, uint16_t port, struct kern_quote q)
{
	put_kern_icmp(f, host, port, too_long(kern.mtu), &q, kern_arrival() + kern.delay);
}

void kern_icmp_lie(struct kern_file *f, unsigned host, uint16_t port, struct kern_quote q)
{
	struct sock_extended_err what;
	uint8_t quote[QUOTE];

	if (q.len > sizeof quote)
		q.len = sizeof quote;
	memcpy(quote, q.p, q.len);
	q.p = quote;
	if (sim_like(2))
		quote[sim_like(q.len)] ^= (uint8_t)(1u << sim_like(8));
	what = sim_like(2) ? unreachable((uint8_t)sim_like(16))
			   : too_long((unsigned)sim_like(2000));
	put_kern_icmp(f, host, port, what, &q, kern_arrival() + kern.delay);
}

/* ---- what a program asks of its host that is no descriptor: interfaces ---- */

static struct sockaddr_in own_addr;
static char eth0[] = "eth0";
static struct ifaddrs own_interface;

int __wrap_getifaddrs(struct ifaddrs **all);
int __wrap_getifaddrs(struct ifaddrs **all)
{
	own_addr = kern_addr(kern.host, 0);
	own_interface = (struct ifaddrs){ .ifa_name = eth0,
					  .ifa_flags = IFF_UP,
					  .ifa_addr = (struct sockaddr *)&own_addr };
	*all = &own_interface;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *all);
void __wrap_freeifaddrs(struct ifaddrs *all)
{
	(void)all;
}

unsigned __wrap_if_nametoindex(const char *name);
unsigned __wrap_if_nametoindex(const char *name)
{
	return strcmp(name, eth0) ? 0 : KERN_INTERFACE;
}
