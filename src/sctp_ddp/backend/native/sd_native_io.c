/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets and ICMP errors in. */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "sctp_ddp/backend/sd_sock.h"
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/epoll.h>

/* A turn takes so many datagrams, and so much work, as messages and packets are counted: all sockets
 * together, each at most and at least; then others have theirs. */
#define DATAGRAMS   32u
#define WORK_ALL    8192u
#define WORK_MOST   4096u
#define WORK_LEAST  256u
#define HDR_MIN	    16u
#define QUOTE_MAX   128u
#define ERRORS	    64 /* per turn */
#define PUT_OFF_MAX 8  /* turns */

/* ---- addresses ---- */

struct ddps_sctp_addr ddps_sn_addr(const struct sockaddr_storage *ss)
{
	struct ddps_sctp_addr a = { 0 };
	struct sockaddr_in6 a6;
	struct sockaddr_in a4;

	if (ss->ss_family == AF_INET) {
		memcpy(&a4, ss, sizeof a4);
		a.family = 4;
		memcpy(a.ip, &a4.sin_addr, 4);
	} else if (ss->ss_family == AF_INET6) {
		memcpy(&a6, ss, sizeof a6);
		a.family = IN6_IS_ADDR_V4MAPPED(&a6.sin6_addr) ? 4 : 6;
		if (a.family == 4) {
			memcpy(a.ip, a6.sin6_addr.s6_addr + 12, 4);
		} else {
			memcpy(a.ip, &a6.sin6_addr, 16);
			if (IN6_IS_ADDR_LINKLOCAL(&a6.sin6_addr))
				a.scope = a6.sin6_scope_id;
		}
	}
	return a;
}

bool ddps_sn_same_addr(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct ddps_sctp_addr x = ddps_sn_addr(a), y = ddps_sn_addr(b);

	return ddps_sc_addr_eq(&x, &y);
}

socklen_t ddps_sn_sockaddr(const struct ddps_sctp_addr *a, uint16_t port, int family,
			   struct sockaddr_storage *ss)
{
	struct sockaddr_in6 a6;

	memset(ss, 0, sizeof *ss);
	if (family == AF_INET) {
		struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(port) };

		memcpy(&a4.sin_addr, a->ip, 4);
		memcpy(ss, &a4, sizeof a4);
		return sizeof a4;
	}
	a6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
	if (a->family == 4) {
		memset(a6.sin6_addr.s6_addr + 10, 0xff, 2);
		memcpy(a6.sin6_addr.s6_addr + 12, a->ip, 4);
	} else {
		memcpy(&a6.sin6_addr, a->ip, 16);
		a6.sin6_scope_id = a->scope;
	}
	memcpy(ss, &a6, sizeof a6);
	return sizeof a6;
}

static struct ddps_sctp_route make_route(const struct ddps_sn_sock *s,
					 const struct sockaddr_storage *peer)
{
	return (struct ddps_sctp_route){
		.peer = ddps_sn_addr(peer),
		.encap = s->raw ? 0 : ddps_sd_port_number(peer),
		.via = s->via,
	};
}

/* ---- packets ---- */

/* Datagrams come in runs: it is as long from the same place, to the same address, as no octet of what the
 * system says is another one. */
static inline bool is_from_source(const struct ddps_sn_source *o, const struct ddps_sn_sock *s,
				  const struct msghdr *m)
{
	return o->sock == s && m->msg_namelen == o->from_len && m->msg_controllen == o->ctrl_len &&
	       !(m->msg_flags & MSG_TRUNC) && !memcmp(m->msg_name, &o->from, o->from_len) &&
	       !memcmp(m->msg_control, &o->ctrl, o->ctrl_len);
}

static void note_source(struct ddps_sn_source *o, const struct ddps_sn_sock *s,
			const struct msghdr *m, const struct ddps_sctp_in *in)
{
	o->sock = s;
	o->from_len = m->msg_namelen;
	o->ctrl_len = m->msg_controllen;
	memcpy(&o->from, m->msg_name, o->from_len);
	memcpy(&o->ctrl, m->msg_control, o->ctrl_len);
	o->route = in->from;
	o->seg_size = in->seg_size;
}

/* What the system says of it.  false: nothing for the engine in it. */
static bool prepare_native_in(const struct ddps_sn_sock *s, struct mmsghdr *m,
			      const struct sockaddr_storage *from, struct ddps_sctp_in *in)
{
	struct sockaddr_storage local;
	int seg = ddps_sd_sock_dest(&m->msg_hdr, &local);

	in->data = m->msg_hdr.msg_iov->iov_base;
	in->len = m->msg_len;
	in->seg_size = seg > 0 ? (size_t)seg : 0;
	if ((m->msg_hdr.msg_flags & MSG_TRUNC) ||
	    (s->raw && !ddps_sd_sock_strip_ip(s->family, &in->data, &in->len)))
		return false;
	if (in->len < HDR_MIN || (s->raw && !s->ours[in->data[2] << 8 | in->data[3]]))
		return false;
	in->from = make_route(s, from);
	in->from.local = ddps_sn_addr(&local);
	/* nobody can answer port 0 */
	return (in->from.encap || s->raw) && ddps_sn_homes_take(s, &in->from.local);
}

/* Records, for those who open them. */
static void take_secured(struct ddps_sn_sock *s, struct mmsghdr *m,
			 const struct sockaddr_storage *from)
{
	struct sockaddr_storage to;
	int seg = ddps_sd_sock_dest(&m->msg_hdr, &to);
	const struct ddps_sctp_addr local = ddps_sn_addr(&to);

	s->ne->work++;
	if (!(m->msg_hdr.msg_flags & MSG_TRUNC))
		ddps_sn_dtls_input(s, from, &local, m->msg_hdr.msg_iov->iov_base, m->msg_len,
				   seg > 0 ? (size_t)seg : 0);
}

void ddps_sn_inbox_init(struct ddps_sn_inbox *b, uint8_t *scratch)
{
	for (unsigned i = 0; i < DDPS_SN_BATCH; i++) {
		b->iov[i] = (struct iovec){ scratch + i * DDPS_SN_SLOT_LEN, DDPS_SN_SLOT_LEN };
		b->m[i] = (struct mmsghdr){ .msg_hdr = { .msg_name = &b->from[i],
							 .msg_namelen = sizeof b->from[i],
							 .msg_iov = &b->iov[i],
							 .msg_iovlen = 1,
							 .msg_control = &b->ctrl[i],
							 .msg_controllen = sizeof b->ctrl[i] } };
	}
}

/* The first @n for the next call: the last one has left lengths in them. */
static void empty_inbox(struct ddps_sn_inbox *b, int n)
{
	for (int i = 0; i < n; i++) {
		b->m[i].msg_hdr.msg_namelen = sizeof b->from[i];
		b->m[i].msg_hdr.msg_controllen = sizeof b->ctrl[i];
	}
}

/* Of @max datagrams, at most DDPS_SN_BATCH. */
static int read_batch(struct ddps_sn_sock *s, unsigned max)
{
	struct sockaddr_storage *from = s->ne->inbox.from;
	struct ddps_sn_source *o = &s->ne->source[s->via % DDPS_SN_SOURCES];
	struct mmsghdr *m = s->ne->inbox.m;
	struct ddps_sctp_in in[DDPS_SN_BATCH];
	unsigned k = 0;
	int n;

	n = ddps_loop_owns(s->ne->env->loop) ? recvmmsg(s->io.fd, m, max, MSG_DONTWAIT, NULL) : -1;
	s->errors |= n < 0 && errno != EAGAIN && errno != EINTR;
	for (int i = 0; i < n; i++) {
		if (s->secured) {
			take_secured(s, &m[i], &from[i]);
			continue;
		}
		if (!s->raw && ddps_sn_dtls_is_hello(m[i].msg_hdr.msg_iov->iov_base, m[i].msg_len))
			ddps_sn_dtls_misspoken(s->ne, &from[i], false);
		if (is_from_source(o, s, &m[i].msg_hdr) && m[i].msg_len >= HDR_MIN) {
			in[k] = (struct ddps_sctp_in){ .from = o->route,
						       .data = m[i].msg_hdr.msg_iov->iov_base,
						       .len = m[i].msg_len,
						       .seg_size = o->seg_size,
						       .again = k > 0 };
		} else {
			if (!prepare_native_in(s, &m[i], &from[i], &in[k]))
				continue;
			in[k].again = false;
			if (!s->raw) /* of those each is looked into */
				note_source(o, s, &m[i].msg_hdr, &in[k]);
		}
		s->ne->work += in[k].seg_size ? (unsigned)(in[k].len / in[k].seg_size) + 1 : 1;
		k++;
	}
	empty_inbox(&s->ne->inbox, n);
	if (k)
		ddps_sctp_input(s->ne->e, in, k, ddps_sn_now(s->ne));
	return n;
}

/* ---- ICMP ---- */

static bool kind(const struct sock_extended_err *e, enum ddps_sctp_icmp *what)
{
	bool v4 = e->ee_origin == SO_EE_ORIGIN_ICMP, v6 = e->ee_origin == SO_EE_ORIGIN_ICMP6;

	if ((v4 && e->ee_type == ICMP_DEST_UNREACH && e->ee_code == ICMP_FRAG_NEEDED) ||
	    (v6 && e->ee_type == ICMP6_PACKET_TOO_BIG))
		*what = DDPS_SCTP_ICMP_TOO_BIG;
	else if ((v4 && e->ee_type == ICMP_DEST_UNREACH && e->ee_code == ICMP_PORT_UNREACH) ||
		 (v6 && e->ee_type == ICMP6_DST_UNREACH && e->ee_code == ICMP6_DST_UNREACH_NOPORT))
		*what = DDPS_SCTP_ICMP_UNREACH_PORT;
	else if ((v4 && e->ee_type == ICMP_DEST_UNREACH && e->ee_code == ICMP_PROT_UNREACH) ||
		 (v6 && e->ee_type == ICMP6_PARAM_PROB && e->ee_code == ICMP6_PARAMPROB_NEXTHEADER))
		*what = DDPS_SCTP_ICMP_UNREACH_PROTO;
	else if ((v4 && e->ee_type == ICMP_DEST_UNREACH) || (v6 && e->ee_type == ICMP6_DST_UNREACH))
		*what = DDPS_SCTP_ICMP_UNREACH;
	else
		return false;
	return true;
}

static void read_errors(struct ddps_sn_sock *s)
{
	struct sock_extended_err e;
	struct sockaddr_storage to;
	struct ddps_sctp_route r;
	uint8_t quote[QUOTE_MAX];
	union ddps_sd_cmsg ctrl;
	enum ddps_sctp_icmp what;
	ssize_t n;

	s->errors = false;
	for (int i = 0; i < ERRORS && ddps_loop_owns(s->ne->env->loop); i++) {
		struct iovec iov = { quote, sizeof quote };
		struct msghdr m = { .msg_name = &to,
				    .msg_namelen = sizeof to,
				    .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = &ctrl,
				    .msg_controllen = sizeof ctrl };

		memset(&to, 0, sizeof to);
		n = recvmsg(s->io.fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);
		if (n < 0)
			return;
		if (!ddps_sd_sock_error(&m, &e) || !kind(&e, &what))
			continue;
		if (s->secured) { /* nothing in the quote proves that it is of ours [8261-6.1-7] */
			if (what == DDPS_SCTP_ICMP_UNREACH_PORT)
				ddps_sn_dtls_hint(s, &to);
			continue;
		}
		r = make_route(s, &to);
		ddps_sctp_icmp(s->ne->e, &r, what, e.ee_info, quote, (size_t)n, ddps_sn_now(s->ne));
	}
	s->errors = true; /* perhaps there are more */
}

/* ---- a turn ---- */

/* A datagram of a flood has a thousand small messages, so the next batch is of as many as are available for what is left, going by the ones before. */
static unsigned batch_for(const struct ddps_sn_sock *s, unsigned left)
{
	unsigned n = left / (s->heavy + 1);

	return n < 1 ? 1 : n > DDPS_SN_BATCH ? DDPS_SN_BATCH : n;
}

static void weigh(struct ddps_sn_sock *s, unsigned each)
{
	s->heavy = each > s->heavy ? each : s->heavy - (s->heavy - each) / 8;
}

/*
 * Who tried in vain before waits for one datagram, and is to have it soon, without another look at
 * the socket: an answer may be all that the peer waits for.  After that there may be more.  An error
 * is reported once, in the place of what is there to be read.  Return: whether anything was read.
 */
static bool read_share(struct ddps_sn_sock *s, bool errors)
{
	struct ddps_sn_env *ne = s->ne;
	unsigned left = ddps_loop_share(ne->env->loop, WORK_ALL, WORK_LEAST, WORK_MOST);
	bool lone = s->waited && !errors;
	unsigned want, all = 0;
	int n;

	do {
		want = lone ? 1 : batch_for(s, left);
		ne->work = 0;
		n = read_batch(s, want);
		if (n < 0 && s->errors)
			n = read_batch(s, want);
		if (n > 0) {
			s->io.moved = true;
			weigh(s, ne->work / (unsigned)n);
			all += (unsigned)n;
		}
		s->waited = n <= 0;
		left -= ne->work < left ? ne->work : left;
		if (n > 0)
			ddps_sn_flush(ne); /* acknowledgements, and what those let go */
	} while (n == (int)want && !lone && left && all < DATAGRAMS);
	s->empty = n < (int)want;
	return all;
}

/*
 * What came before an error is read before it: a peer that rejects, or sends its last words, and ends
 * is not to be one that was never there.  Who sends without a pause puts that off a few times only.
 */
static void look_at_errors(struct ddps_sn_sock *s)
{
	if (!s->empty && s->put_off++ < PUT_OFF_MAX)
		return;
	s->put_off = 0;
	read_errors(s);
}

void ddps_sn_readable(void *user, uint32_t events)
{
	struct ddps_sn_sock *s = user, *used = s->of ? s->of : s;
	struct ddps_sn_env *ne = s->ne;
	bool found, more;

	ne->left = false;
	s->errors |= (events & EPOLLERR) != 0;
	used->refs++; /* an upcall may end all that uses it */
	found = read_share(s, s->errors);
	more = (events & ~(uint32_t)EPOLLIN) || s->errors;
	if (s->errors)
		look_at_errors(s);
	if (s->full && (events & EPOLLOUT)) {
		s->full = false;
		s->ne->nfull--;
		ddps_io_set(ne->env->loop, &s->io, EPOLLIN);
	}
	ddps_sn_sock_put(used);
	if (found && !more && !ne->unused) /* it was flushed when it was read */
		ddps_sn_serve_due(ne);
	else if (found || more || !ddps_sn_is_idle(ne)) /* tries in vain are many */
		ddps_sn_turn(ne);
}
