/* SPDX-License-Identifier: BSD-2-Clause */
/* See fake_usrsctp.h. */
#include "fake_usrsctp.h"
#include "fuzz.h"
#include <errno.h>

#define REGISTERED_MAX 512
#define PACKET_MAX     128

enum kind { NOTE, DATA };

struct item {
	enum kind kind;
	size_t len, at, chop; /* chop: octets a read, 0: all */
	uint8_t *data;
	struct item *prev, *next;
};

struct socket {
	uint16_t port, peer_port;
	uintptr_t id;
	bool bound, listening, waiting, up, over, shut;
	int error;
	void (*upcall)(struct socket *, void *, int);
	void *arg;
	struct item *items;
	uint8_t *last;
	size_t last_len;
	struct socket *pending; /* to be accepted */
	struct socket *prev, *next, *pend_prev, *pend_next;
};

static struct fake_usrsctp fake;
static struct socket *sockets;
static uintptr_t ids[REGISTERED_MAX];
static int (*output)(void *addr, void *pkt, size_t len, uint8_t tos, uint8_t set_df);

struct fake_usrsctp *fake_usrsctp_reset(void)
{
	FUZZ_CHECK(!sockets && !fake.registered);
	fake = (struct fake_usrsctp){ 0 };
	return &fake;
}

/* ---- packets ---- */

static void packet(uintptr_t id, uint16_t from, uint16_t to, uint8_t type, size_t len)
{
	uint8_t buf[PACKET_MAX] = { 0 };
	struct ddps_wbuf w = ddps_wbuf_init(buf, sizeof buf);

	ddps_wbuf_u16(&w, from);
	ddps_wbuf_u16(&w, to);
	ddps_wbuf_u32(&w, (uint32_t)id); /* as the tag */
	ddps_wbuf_u32(&w, 0);		 /* the checksum is left to others */
	ddps_wbuf_u32(&w, (uint32_t)type << 24);
	ddps_wbuf_u32(&w, ++fake.packets);
	FUZZ_CHECK(output && !w.failed);
	output((void *)id, buf, FAKE_OUT + (len < sizeof buf - FAKE_OUT ? len : 0), 0, 1);
}

void fake_usrsctp_late(uintptr_t id, uint8_t type)
{
	packet(id, 1, 1, type, 0);
}

static void tell(struct socket *so)
{
	if (so->upcall)
		so->upcall(so, so->arg, 0);
}

static void queue(struct socket *so, enum kind kind, const void *data, size_t len, size_t chop)
{
	struct item *i = calloc(1, sizeof *i);

	FUZZ_CHECK(i);
	*i = (struct item){ .kind = kind, .len = len, .chop = chop, .data = fuzz_exact(data, len) };
	DL_APPEND(so->items, i);
}

static void note_change(struct socket *so, uint16_t state)
{
	struct sctp_assoc_change n = { .sac_type = SCTP_ASSOC_CHANGE,
				       .sac_length = sizeof n,
				       .sac_state = state,
				       .sac_inbound_streams = 4,
				       .sac_outbound_streams = 4 };

	queue(so, NOTE, &n, sizeof n, 0);
}

static void come_up(struct socket *so)
{
	struct sctp_adaptation_event n = { .sai_type = SCTP_ADAPTATION_INDICATION,
					   .sai_length = sizeof n,
					   .sai_adaptation_ind = DDPS_SCTP_ADAPTATION_DDP };

	so->up = true;
	so->waiting = false;
	note_change(so, SCTP_COMM_UP);
	queue(so, NOTE, &n, sizeof n, 0);
	tell(so);
}

static void end(struct socket *so, int error)
{
	so->up = so->waiting = false;
	so->over = true;
	so->error = error;
	note_change(so, error ? SCTP_COMM_LOST : SCTP_SHUTDOWN_COMP);
	tell(so);
}

static void on_assoc(struct socket *so, const uint8_t *pkt, size_t len)
{
	struct sctp_shutdown_event n = { .sse_type = SCTP_SHUTDOWN_EVENT, .sse_length = sizeof n };

	switch (pkt[12]) {
	case SCTP_COOKIE_ACK:
		if (so->waiting)
			come_up(so);
		break;
	case SCTP_DATA:
		if (so->up && len > FAKE_HDR)
			queue(so, DATA, pkt + FAKE_HDR, len - FAKE_HDR, pkt[13]);
		tell(so);
		break;
	case SCTP_SHUTDOWN:
		if (!so->up)
			break;
		queue(so, NOTE, &n, sizeof n, 0);
		end(so, 0);
		break;
	case SCTP_ABORT_ASSOCIATION:
		if (!so->over)
			end(so, so->up ? ECONNRESET : ECONNREFUSED);
		break;
	default:
		break;
	}
}

static struct socket *made(uint16_t port)
{
	struct socket *so = calloc(1, sizeof *so);

	FUZZ_CHECK(so);
	so->port = port;
	DL_APPEND(sockets, so);
	return so;
}

/* A packet of no association. */
static void on_stray(uintptr_t id, uint16_t from, uint16_t to, uint8_t type)
{
	struct socket *l, *so;

	for (l = sockets; l; l = l->next)
		if (l->listening && l->port == to)
			break;
	if (l && type == SCTP_INITIATION) {
		packet(id, to, from, SCTP_INITIATION_ACK, 0);
	} else if (l && type == SCTP_COOKIE_ECHO) {
		so = made(to);
		so->id = id;
		so->peer_port = from;
		DL_APPEND2(l->pending, so, pend_prev, pend_next);
		come_up(so);
		packet(id, to, from, SCTP_COOKIE_ACK, 0);
	} else if (type != SCTP_ABORT_ASSOCIATION) {
		packet(id, to, from, SCTP_ABORT_ASSOCIATION, 0);
	}
}

void usrsctp_conninput(void *addr, const void *pkt, size_t len, uint8_t ecn)
{
	struct ddps_rbuf r = ddps_rbuf_init(pkt, len);
	uint16_t from = ddps_rbuf_u16(&r), to = ddps_rbuf_u16(&r);
	uint8_t *copy = fuzz_exact(pkt, len);
	uintptr_t id = (uintptr_t)addr;
	struct socket *so;

	FUZZ_CHECK(id && len >= FAKE_HDR && !ecn);
	fake.input(id, copy, len);
	for (so = sockets; so; so = so->next)
		if (so->id == id && so->port == to && so->peer_port == from && !so->over)
			break;
	if (so)
		on_assoc(so, copy, len);
	else
		on_stray(id, from, to, copy[12]);
	free(copy);
}

/* ---- sockets ---- */

static uint16_t port_of(const struct sockaddr *sa, uintptr_t *id)
{
	struct sockaddr_conn c;

	memcpy(&c, sa, sizeof c);
	FUZZ_CHECK(c.sconn_family == AF_CONN);
	*id = (uintptr_t)c.sconn_addr;
	return ntohs(c.sconn_port);
}

struct socket *usrsctp_socket(int domain, int type, int protocol,
			      int (*recv)(struct socket *, union sctp_sockstore, void *, size_t,
					  struct sctp_rcvinfo, int, void *),
			      int (*send)(struct socket *, uint32_t, void *), uint32_t threshold,
			      void *arg)
{
	FUZZ_CHECK(domain == AF_CONN && type == SOCK_STREAM && protocol == IPPROTO_SCTP);
	FUZZ_CHECK(!recv && !send && !threshold && !arg);
	return made(0);
}

int usrsctp_set_non_blocking(struct socket *so, int on)
{
	FUZZ_CHECK(so && on);
	return 0;
}

int usrsctp_bind(struct socket *so, struct sockaddr *sa, socklen_t len)
{
	uintptr_t id;

	(void)len;
	so->port = port_of(sa, &id);
	FUZZ_CHECK(!so->bound && so->port && !id);
	so->bound = true;
	return 0;
}

int usrsctp_listen(struct socket *so, int backlog)
{
	FUZZ_CHECK(so->bound && !so->listening && backlog > 0);
	so->listening = true;
	return 0;
}

int usrsctp_connect(struct socket *so, struct sockaddr *sa, socklen_t len)
{
	(void)len;
	FUZZ_CHECK(so->bound && !so->listening && !so->id);
	so->peer_port = port_of(sa, &so->id);
	FUZZ_CHECK(so->id && so->peer_port);
	so->waiting = true;
	packet(so->id, so->port, so->peer_port, SCTP_INITIATION, 0);
	errno = EINPROGRESS;
	return -1;
}

struct socket *usrsctp_accept(struct socket *so, struct sockaddr *sa, socklen_t *len)
{
	struct socket *got = so->pending;
	struct sockaddr_conn c = { .sconn_family = AF_CONN };

	FUZZ_CHECK(so->listening && *len >= sizeof c);
	if (!got) {
		errno = EWOULDBLOCK;
		return NULL;
	}
	DL_DELETE2(so->pending, got, pend_prev, pend_next);
	c.sconn_port = htons(got->peer_port);
	c.sconn_addr = (void *)got->id;
	memcpy(sa, &c, sizeof c);
	*len = sizeof c;
	return got;
}

void usrsctp_close(struct socket *so)
{
	struct item *i, *next;

	while (so->pending) {
		struct socket *p = so->pending;

		DL_DELETE2(so->pending, p, pend_prev, pend_next);
		usrsctp_close(p);
	}
	if (so->up || so->waiting)
		packet(so->id, so->port, so->peer_port, SCTP_ABORT_ASSOCIATION, 0);
	DL_FOREACH_SAFE(so->items, i, next)
	{
		free(i->data);
		free(i);
	}
	DL_DELETE(sockets, so);
	free(so->last);
	free(so);
}

int usrsctp_shutdown(struct socket *so, int how)
{
	FUZZ_CHECK(how == SHUT_WR && !so->shut);
	so->shut = true;
	if (so->up)
		packet(so->id, so->port, so->peer_port, SCTP_SHUTDOWN, 0);
	return 0;
}

int usrsctp_set_upcall(struct socket *so, void (*upcall)(struct socket *, void *, int), void *arg)
{
	so->upcall = upcall;
	so->arg = arg;
	return 0;
}

int usrsctp_get_events(struct socket *so)
{
	return (so->items || so->over ? SCTP_EVENT_READ : 0) |
	       (so->up && !fake.full ? SCTP_EVENT_WRITE : 0) | (so->error ? SCTP_EVENT_ERROR : 0);
}

ssize_t usrsctp_recvv(struct socket *so, void *buf, size_t cap, struct sockaddr *from,
		      socklen_t *from_len, void *info, socklen_t *info_len, unsigned *info_type,
		      int *flags)
{
	struct sctp_rcvinfo rcv = { .rcv_sid = 1, .rcv_flags = SCTP_UNORDERED };
	struct item *i = so->items;
	size_t n;

	FUZZ_CHECK(!from && !from_len && *info_len >= sizeof rcv && cap);
	if (!i && !so->over) {
		errno = EWOULDBLOCK;
		return -1;
	}
	if (!i)
		return 0;
	memcpy(info, &rcv, sizeof rcv);
	*info_len = sizeof rcv;
	*info_type = SCTP_RECVV_RCVINFO;
	n = i->len - i->at;
	n = i->chop && i->chop < n ? i->chop : n;
	FUZZ_CHECK(n <= cap);
	memcpy(buf, i->data + i->at, n);
	i->at += n;
	*flags = i->kind == NOTE ? MSG_NOTIFICATION : 0;
	if (i->at < i->len)
		return (ssize_t)n;
	*flags |= MSG_EOR;
	DL_DELETE(so->items, i);
	free(so->last);
	so->last = i->data;
	so->last_len = i->len;
	free(i);
	return (ssize_t)n;
}

const uint8_t *fake_usrsctp_message(const struct socket *so, size_t *len)
{
	*len = so->last_len;
	return so->last;
}

ssize_t usrsctp_sendv(struct socket *so, const void *data, size_t len, struct sockaddr *to, int n,
		      void *info, socklen_t info_len, unsigned type, int flags)
{
	(void)info;
	FUZZ_CHECK(data && len && !to && !n && info_len && type == SCTP_SENDV_SNDINFO && !flags);
	if (fake.full || !so->up) {
		errno = so->up ? EWOULDBLOCK : ECONNRESET;
		return -1;
	}
	packet(so->id, so->port, so->peer_port, SCTP_DATA, len);
	return (ssize_t)len;
}

void fake_usrsctp_room(void)
{
	fake.full = false;
	for (struct socket *so = sockets; so; so = so->next)
		tell(so);
}

/* ---- options ---- */

int usrsctp_setsockopt(struct socket *so, int level, int opt, const void *value, socklen_t len)
{
	struct sctp_sender_dry_event n = { .sender_dry_type = SCTP_SENDER_DRY_EVENT,
					   .sender_dry_length = sizeof n };
	struct sctp_event ev = { 0 };

	FUZZ_CHECK(so && value && len);
	if (level != IPPROTO_SCTP || opt != SCTP_EVENT)
		return 0;
	memcpy(&ev, value, sizeof ev);
	if (ev.se_type == SCTP_SENDER_DRY_EVENT && ev.se_on) {
		queue(so, NOTE, &n, sizeof n, 0);
		tell(so);
	}
	return 0;
}

int usrsctp_getsockopt(struct socket *so, int level, int opt, void *value, socklen_t *len)
{
	memset(value, 0, *len);
	if (level == SOL_SOCKET && opt == SO_ERROR) {
		memcpy(value, &so->error, sizeof so->error);
		so->error = 0;
	}
	return 0;
}

/* ---- the library ---- */

void usrsctp_register_address(void *addr)
{
	for (unsigned i = 0; i < fake.registered; i++)
		FUZZ_CHECK(ids[i] != (uintptr_t)addr);
	FUZZ_CHECK(addr && fake.registered < REGISTERED_MAX);
	ids[fake.registered++] = (uintptr_t)addr;
}

void usrsctp_deregister_address(void *addr)
{
	unsigned i = 0;

	while (i < fake.registered && ids[i] != (uintptr_t)addr)
		i++;
	FUZZ_CHECK(i < fake.registered);
	ids[i] = ids[--fake.registered];
}

void usrsctp_init_nothreads(uint16_t port, int (*out)(void *, void *, size_t, uint8_t, uint8_t),
			    void (*print)(const char *, ...))
{
	FUZZ_CHECK(!port && !print && !output);
	output = out;
}

int usrsctp_finish(void)
{
	FUZZ_CHECK(!sockets && !fake.registered);
	output = NULL;
	return 0;
}

void usrsctp_handle_timers(uint32_t ms)
{
	(void)ms;
}

void usrsctp_enable_crc32c_offload(void)
{
}

#define SYSCTL(name)                                                                               \
	int usrsctp_sysctl_set_sctp_##name(uint32_t value)                                         \
	{                                                                                          \
		(void)value;                                                                       \
		return 0;                                                                          \
	}

SYSCTL(ecn_enable)
SYSCTL(pr_enable)
SYSCTL(asconf_enable)
SYSCTL(auth_enable)
SYSCTL(reconfig_enable)
SYSCTL(nrsack_enable)
SYSCTL(pktdrop_enable)
SYSCTL(max_chunks_on_queue)
