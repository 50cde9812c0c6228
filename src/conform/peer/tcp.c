/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer's TCP: octets, and FPDUs with CRC and markers (RFC 5044). */
#include "conform/peer/inside.h"
#include "conform/peer/secured.h"
#include "conform/peer/shared.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SOMETHING "the target to send or close"

/* ---- connections ---- */

static void wait_fd(struct cf *cf, int fd, short events, uint64_t since, const char *what)
{
	struct pollfd p = { .fd = fd, .events = events };
	int ready = 0;

	while (ready <= 0) {
		ready = poll(&p, 1, cf_nap(cf, since, cf_left(cf, since, what)));
		cf_woke(cf);
	}
}

static void set_peer_nodelay(int fd)
{
	int on = 1;

	/* Octets leave as the case writes them; failing that, it only takes longer. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* What drops every packet would keep connect() for minutes.  Return: 0 or an errno. */
static int connect_in_time(struct cf *cf, int fd, const struct cf_at *at)
{
	int flags = fcntl(fd, F_GETFL), err = 0;
	socklen_t len = sizeof err;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return errno;
	if (connect(fd, (const struct sockaddr *)&at->ss, at->len)) {
		if (errno != EINPROGRESS)
			return errno;
		wait_fd(cf, fd, POLLOUT, cf_now(), "a TCP connection to the target");
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
			return errno;
	}
	return !err && fcntl(fd, F_SETFL, flags) ? errno : err;
}

static void dial_tcp(struct cf *cf, struct cf_conn *c)
{
	struct cf_at at;
	char uri[200];
	int err;

	cf_address(cf, cf->self ? cf_app_uri(cf, uri, sizeof uri) : cf->run->uri, &at);
	c->fd = socket(at.ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CF_CHECK(cf, c->fd >= 0, "socket: %s", strerror(errno));
	err = connect_in_time(cf, c->fd, &at);
	CF_CHECK(cf, !err, "connecting to the target: %s", strerror(err));
	cf->dialling = false;
}

static int get_tcp_listener(struct cf *cf)
{
	struct cf_at at;
	int fd, on = 1;

	if (cf->res->listen_fd >= 0)
		return cf->res->listen_fd;
	cf_address(cf, cf->self ? cf_self_uri(cf) : cf->run->uri, &at);
	fd = socket(at.ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CF_CHECK(cf, fd >= 0, "socket: %s", strerror(errno));
	cf->res->listen_fd = fd;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	CF_CHECK(cf, !bind(fd, (struct sockaddr *)&at.ss, at.len) && !listen(fd, 16),
		 "listening: %s", strerror(errno));
	return fd;
}

static void take_call(struct cf *cf, struct cf_conn *c)
{
	int fd = cf->res->listen_fd;

	wait_fd(cf, fd, POLLIN, cf_now(), "the target to connect");
	c->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	CF_CHECK(cf, c->fd >= 0, "accept: %s", strerror(errno));
	cf->res->awaited = false;
}

static void answer_call(struct cf *cf, struct cf_conn *c)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	char at[120], uri[130];
	int fd = get_tcp_listener(cf);

	CF_CHECK(cf, !getsockname(fd, (struct sockaddr *)&ss, &len), "getsockname");
	if (cf->run->shared)
		cf_shared_text(&ss, len, at, sizeof at);
	else
		cf_addr_text(&ss, at, sizeof at);
	snprintf(uri, sizeof uri, "%s://%s",
		 cf->run->shared    ? "shm"
		 : cf->run->secured ? "tls"
				    : "tcp",
		 at);
	cf_provoke(cf, uri);
	take_call(cf, c);
}

void cf_tcp_again(struct cf *cf)
{
	struct cf_conn *c = cf_conn_new(cf);

	take_call(cf, c);
	set_peer_nodelay(c->fd);
	cf_secured_open(cf);
	cf_shared_open(cf);
}

void cf_tcp_open_plain(struct cf *cf)
{
	struct cf_conn *c = cf_conn_new(cf);

	if (cf->c->target == CF_RESPONDER)
		dial_tcp(cf, c);
	else
		answer_call(cf, c);
	set_peer_nodelay(c->fd);
}

void cf_tcp_open(struct cf *cf)
{
	cf_tcp_open_plain(cf);
	cf_secured_open(cf);
	cf_shared_open(cf);
}

void cf_tcp_close(struct cf_conn *c, const struct cf_run *run)
{
	cf_secured_close(c, run);
	cf_shared_close(c);
	if (c->fd >= 0)
		close(c->fd);
}

void cf_tcp_unlisten(struct cf *cf)
{
	if (cf->res->listen_fd >= 0) {
		cf_shared_unlisten(cf->res->listen_fd);
		close(cf->res->listen_fd);
	}
}

/* ---- octets ---- */

void cf_tcp_write(struct cf *cf, const void *p, size_t len)
{
	const uint8_t *b = p;
	uint64_t since = cf_now();

	cf_trace_tcp(cf->trace, false, cf->conn->number, p, len);
	while (len) {
		ssize_t n = cf_octets_send(cf, b, len);

		if (n >= 0) {
			b += n;
			len -= (size_t)n;
		} else if (n == -EAGAIN) {
			wait_fd(cf, cf->conn->fd, POLLOUT, since, "the target to read");
		} else if (n != -EINTR) {
			return; /* the target is gone: what comes next in the case says */
		}
	}
}

/* Return: octets, which may be anything, 0 for FIN, -1 for RST. */
static ssize_t take_octets(struct cf *cf, void *p, size_t len, uint64_t since, const char *what)
{
	for (;;) {
		ssize_t n = cf_octets_recv(cf, p, len);

		if (n > 0)
			cf_trace_tcp(cf->trace, true, cf->conn->number, p, (size_t)n);
		if (n >= 0)
			return n;
		if (n == -EAGAIN)
			wait_fd(cf, cf->conn->fd, POLLIN, since, what);
		else if (n != -EINTR)
			return -1;
	}
}

void cf_tcp_read(struct cf *cf, void *p, size_t len)
{
	uint8_t *b = p;
	uint64_t since = cf_now();

	for (size_t have = 0; have < len;) {
		char what[80] = SOMETHING;
		ssize_t n;

		if (have)
			snprintf(what, sizeof what, "the rest: %zu of %zu octets came", have, len);
		n = take_octets(cf, b + have, len - have, since, what);
		cf->ended = n <= 0;
		if (n <= 0) {
			cf_closed(cf);
			if (!have)
				cf_fail(cf, "the target %s where octets of it were due",
					n ? "reset the connection" : "closed");
			cf_fail(cf, "the target %s after %zu of %zu octets: %s",
				n ? "reset the connection" : "closed", have, len, cf_hex(b, have));
		}
		have += (size_t)n;
	}
}

bool cf_tcp_ended(struct cf *cf)
{
	uint64_t since = cf_now();
	ssize_t n;

	while ((n = cf_octets_recv(cf, NULL, 1)) == -EAGAIN || n == -EINTR)
		wait_fd(cf, cf->conn->fd, POLLIN, since, SOMETHING);
	return n <= 0;
}

bool cf_tcp_quiet(struct cf *cf)
{
	return cf_octets_recv(cf, NULL, 1) == -EAGAIN;
}

void cf_tcp_fin(struct cf *cf)
{
	cf_octets_end(cf);
}

void cf_tcp_reset(struct cf *cf)
{
	struct linger now = { .l_onoff = 1 };

	if (cf->conn->shared)
		cf_shared_end(cf->conn, true);
	setsockopt(cf->conn->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(cf->conn->fd);
	cf->conn->fd = -1;
}

void cf_tcp_expect_end(struct cf *cf, bool in_order)
{
	bool mine = cf_want(cf, "the target closes the connection");
	uint8_t b[64];
	ssize_t n = take_octets(cf, b, sizeof b, cf_now(), SOMETHING);

	cf->ended = n <= 0;
	if (n > 0)
		cf->stop = DDPS_CONFORM_STOP_WENT_ON;
	CF_CHECK(cf, n <= 0, "expected the end, but the target sent %s", cf_hex(b, (size_t)n));
	CF_CHECK(cf, !n || !in_order, "expected a FIN, but the target reset the connection");
	cf_wanted(cf, mine);
}

/* ---- FPDUs ---- */

/* An FPDU as it lies in the stream; markers go wherever the offset says. */
struct fpdu {
	bool markers;
	uint64_t off;	 /* of the next octet in the stream */
	uint64_t header; /* of ULPDU_Length */
	uint32_t marker_xor;
	bool begun;
	size_t len;
	uint8_t b[CF_MAX];
};

/* true: a marker was due. */
static bool push_marker(struct fpdu *f)
{
	if (!f->markers || f->off % 512)
		return false;
	cf_put32(f->b + f->len, (f->begun ? (uint32_t)(f->off - f->header) : 0) ^ f->marker_xor);
	f->len += 4;
	f->off += 4;
	return true;
}

static void push_fpdu_octets(struct fpdu *f, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		push_marker(f);
		if (!f->begun)
			f->header = f->off;
		f->begun = true;
		f->b[f->len++] = p[i];
		f->off++;
	}
}

size_t cf_fpdu_build(struct cf *cf, const struct cf_fault *w, uint8_t *b)
{
	static const struct cf_fault none;
	struct cf_conn *c = cf->conn;
	struct fpdu f = { .markers = c->tx_markers, .off = c->tx_off };
	bool leading = f.markers && f.off % 512 == 0, trailing;
	size_t n = -(cf->out.len + 2) & 3, from, to;
	uint8_t word[4], pad[3];
	uint32_t crc;

	w = w ? w : &none;
	f.marker_xor = w->marker_xor;
	cf_put16(word, (uint16_t)cf->out.len);
	push_fpdu_octets(&f, word, 2);
	push_fpdu_octets(&f, cf->out.b, cf->out.len);
	memset(pad, w->pad, sizeof pad);
	push_fpdu_octets(&f, pad, n);
	trailing = push_marker(&f); /* between pad and CRC: this FPDU's */
	from = leading && w->leading_uncovered ? 4 : 0;
	to = f.len - (trailing && w->trailing_uncovered ? 4 : 0);
	crc = (c->crc ? cf_crc32c(f.b + from, to - from) : 0) ^ w->crc_xor;
	if (n && w->pad_late)
		f.b[f.len - (trailing ? 5 : 1)] ^= 1;
	for (unsigned i = 0; i < 4; i++)
		f.b[f.len++] = (uint8_t)(crc >> (8 * i));
	c->tx_off = f.off + 4;
	memcpy(b, f.b, f.len);
	return f.len;
}

void cf_fpdu_write(struct cf *cf, const struct cf_fault *w)
{
	uint8_t b[CF_MAX];

	cf_tcp_write(cf, b, cf_fpdu_build(cf, w, b));
}

void cf_fpdu_send(struct cf *cf)
{
	cf_fpdu_write(cf, NULL);
}

static void pull_marker(struct cf *cf, struct fpdu *f, uint32_t want)
{
	cf_tcp_read(cf, f->b + f->len, 4);
	CF_CHECK(cf, cf_get32(f->b + f->len) == want,
		 "marker %s at stream offset %llu instead of %08x", cf_hex(f->b + f->len, 4),
		 (unsigned long long)f->off, want);
	f->len += 4;
	f->off += 4;
}

/* The next @len octets of the FPDU without its markers, which are checked. */
static void pull_fpdu_octets(struct cf *cf, struct fpdu *f, uint8_t *p, size_t len, bool header)
{
	while (len) {
		size_t n = f->markers ? 512 - f->off % 512 : len;

		if (f->markers && f->off % 512 == 0) {
			pull_marker(cf, f, header ? 0 : (uint32_t)(f->off - f->header));
			continue;
		}
		n = n < len ? n : len;
		cf_tcp_read(cf, f->b + f->len, n);
		memcpy(p, f->b + f->len, n);
		if (header)
			f->header = f->off;
		f->len += n;
		f->off += n;
		p += n;
		len -= n;
	}
}

static void check_crc(struct cf *cf, struct fpdu *f)
{
	uint8_t b[4];
	uint32_t got = 0, want;

	if (f->markers && f->off % 512 == 0) /* between pad and CRC */
		pull_marker(cf, f, (uint32_t)(f->off - f->header));
	want = cf_crc32c(f->b, f->len);
	cf_tcp_read(cf, b, 4);
	f->off += 4;
	for (unsigned i = 0; i < 4; i++)
		got |= (uint32_t)b[i] << (8 * i);
	CF_CHECK(cf, !cf->conn->crc || got == want, "CRC %08x instead of %08x", got, want);
}

void cf_fpdu_recv(struct cf *cf)
{
	struct cf_conn *c = cf->conn;
	struct fpdu f;
	uint8_t word[4], pad[3];
	size_t n;

	f.markers = c->rx_markers;
	f.off = c->rx_off;
	f.len = 0;
	pull_fpdu_octets(cf, &f, word, 2, true);
	cf->in.len = cf_get16(word);
	CF_CHECK(cf, cf->in.len <= 64768, "ULPDU length %zu", cf->in.len);
	pull_fpdu_octets(cf, &f, cf->in.b, cf->in.len, false);
	n = -(cf->in.len + 2) & 3;
	pull_fpdu_octets(cf, &f, pad, n, false);
	for (size_t i = 0; i < n; i++)
		CF_CHECK(cf, !pad[i], "pad octet %02x", pad[i]);
	check_crc(cf, &f);
	c->rx_off = f.off;
}
