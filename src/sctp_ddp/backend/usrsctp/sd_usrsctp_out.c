/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets on their way out: collected, then sent in runs. */
#include "sctp_ddp/backend/usrsctp/sd_usrsctp_out.h"
#include "sctp_ddp/backend/usrsctp/sd_usrsctp.h"
#include "sctp_ddp/backend/sd_sock.h"
#include <endian.h>
#include <errno.h>
#include <isa-l/crc.h>

#define CHECKSUM_OFF 8u
#define CHUNK_OFF    12u
#define INIT_ACK_MAX 4096u  /* an INIT of 1500 octets, ours and the cookie's fields */
#define MSGS	     16u    /* runs in one system call */
#define COLLECT_MAX  16384u /* larger packets gain less than the copy costs */

uint32_t ddps_us_checksum(const uint8_t *pkt, size_t len)
{
	/* RFC 9260 appendix A: the register's octets go out lowest first. */
	return htole32(~crc32_iscsi((unsigned char *)(uintptr_t)pkt, (int)len, ~0u));
}

/* ---- pure ---- */

unsigned ddps_us_gso_run(const struct ddps_us_out_pkt *p, unsigned n, uint32_t *octets)
{
	unsigned k = 1;

	*octets = p[0].len;
	while (k < n && k < DDPS_US_GSO_MAX && p[k].h == p[0].h && p[k].len <= p[0].len &&
	       *octets + p[k].len <= DDPS_US_GSO_OCTETS) {
		*octets += p[k].len;
		if (p[k++].len < p[0].len)
			break;
	}
	return k;
}

size_t ddps_us_gro_next(size_t total, int seg, size_t *off)
{
	size_t left = total - *off;
	size_t len = seg > 0 && (size_t)seg < left ? (size_t)seg : left;

	*off += len;
	return len;
}

/* ---- sending ---- */

static void address(struct msghdr *m, union ddps_sd_cmsg *ctrl, struct ddps_us_handle *h)
{
	if (h->carrier->connected)
		return;
	m->msg_name = &h->to;
	m->msg_namelen = h->to_len;
	ddps_sd_sock_source(m, ctrl, &h->local);
}

/* One packet by itself; false: it, and others for now, did not leave. */
static bool send_one(struct ddps_us_handle *h, uint8_t *pkt, size_t len)
{
	struct iovec iov = { pkt, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	union ddps_sd_cmsg ctrl;

	address(&m, &ctrl, h);
	for (int tries = 0; sendmsg(h->carrier->io.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0;
	     tries++) {
		if (errno == EMSGSIZE)
			h->mtu_stale = true;
		/* Else it may be an ICMP error of an earlier packet: this one was not sent. */
		if (errno == EAGAIN || tries == 1) {
			h->carrier->ue->drops++;
			return false;
		}
	}
	return true;
}

/* The kernel did not take this run as one. */
static void send_singly(struct ddps_us_handle *h, uint8_t *buf, const struct ddps_us_out_pkt *p,
			unsigned n)
{
	bool gso_refused = n > 1 && (errno == EIO || errno == EINVAL || errno == ENOPROTOOPT ||
				     errno == EOPNOTSUPP);

	for (unsigned i = 0; i < n; i++) {
		if (!send_one(h, buf, p[i].len)) {
			if (errno == EAGAIN) {
				h->carrier->ue->drops += n - i - 1;
				return;
			}
			gso_refused = false;
		}
		buf += p[i].len;
	}
	/* One by one they left: the device or the socket cannot do it, or not any more. */
	if (gso_refused)
		h->carrier->gso = false;
}

struct run {
	unsigned n;
	uint32_t octets;
	struct iovec iov;
	union ddps_sd_cmsg ctrl;
};

/* Runs through one socket, in one system call; returns how many packets are done with. */
static unsigned send_some(struct ddps_us_env *ue, const struct ddps_us_out_pkt *p, unsigned n,
			  uint8_t *buf)
{
	struct ddps_us_carrier *c = p[0].h->carrier;
	struct mmsghdr m[MSGS];
	struct run r[MSGS];
	unsigned k = 0, done = 0;
	uint8_t *at = buf;
	int sent;

	for (unsigned i = 0; k < MSGS && i < n && p[i].h->carrier == c; k++) {
		r[k].n = ddps_us_gso_run(p + i, c->gso ? n - i : 1, &r[k].octets);
		r[k].iov = (struct iovec){ at, r[k].octets };
		m[k].msg_hdr = (struct msghdr){ .msg_iov = &r[k].iov, .msg_iovlen = 1 };
		address(&m[k].msg_hdr, &r[k].ctrl, p[i].h);
		if (r[k].n > 1)
			ddps_sd_sock_segment(&m[k].msg_hdr, &r[k].ctrl, (uint16_t)p[i].len);
		at += r[k].octets;
		i += r[k].n;
	}
	sent = sendmmsg(c->io.fd, m, k, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN) /* perhaps for an ICMP error, as above */
		sent = sendmmsg(c->io.fd, m, k, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent <= 0) {
		send_singly(p[0].h, buf, p, r[0].n);
		return r[0].n;
	}
	for (int i = 0; i < sent; i++) {
		done += r[i].n;
		ue->runs += r[i].n > 1;
	}
	return done;
}

void ddps_us_flush(struct ddps_us_env *ue)
{
	struct ddps_us_out *o = &ue->out;
	uint8_t *at = o->buf;

	for (unsigned i = 0, k; i < o->n; i += k) {
		k = send_some(ue, o->pkt + i, o->n - i, at);
		for (unsigned j = i; j < i + k; j++)
			at += o->pkt[j].len;
	}
	o->n = 0;
	o->used = 0;
}

/* ---- from usrsctp ---- */

static void send_now(struct ddps_us_handle *h, uint8_t *pkt, size_t len, bool cut)
{
	struct ddps_us_carrier *c = h->carrier;

	ddps_us_flush(c->ue);
	if (cut) /* IP may cut it up */
		ddps_sd_sock_set_df(c->io.fd, c->family, false);
	send_one(h, pkt, len);
	if (cut)
		ddps_sd_sock_set_df(c->io.fd, c->family, true);
}

/* The field is 0 so far. */
static void put_checksum(uint8_t *pkt, size_t len)
{
	uint32_t sum = ddps_us_checksum(pkt, len);

	memcpy(pkt + CHECKSUM_OFF, &sum, sizeof sum);
}

/* Whether the path takes a packet of this length in parts only: it was made before the path shrank,
 * or the path is narrower than usrsctp or a set-up can be.  Nothing is known of a stray's path. */
static bool too_long(const struct ddps_us_handle *h, size_t len)
{
	return len > (h->refs && h->payload ? h->payload : DDPS_US_PAYLOAD_MIN);
}

void ddps_us_reply(struct ddps_us_handle *h, uint8_t *pkt, size_t len)
{
	put_checksum(pkt, len);
	send_now(h, pkt, len, too_long(h, len));
}

static void send_init_ack(struct ddps_us_handle *h, const uint8_t *pkt, size_t len)
{
	uint8_t sealed[INIT_ACK_MAX];

	len = ddps_us_seal(h, pkt, len, sealed, sizeof sealed);
	if (len)
		ddps_us_reply(h, sealed, len);
}

void ddps_us_transmit(struct ddps_us_handle *h, uint8_t *pkt, size_t len, bool collect)
{
	struct ddps_us_env *ue = h->carrier->ue;
	struct ddps_us_out *o = &ue->out;
	bool cut = too_long(h, len);

	if (len > CHUNK_OFF && pkt[CHUNK_OFF] == SCTP_INITIATION_ACK) {
		send_init_ack(h, pkt, len);
		return;
	}
	put_checksum(pkt, len);
	ddps_us_note_tags(h, pkt, len);
	ue->busy = ddps_now();
	/* A handle without association may be another peer's by the time of a flush. */
	if (!collect || cut || len > COLLECT_MAX || !h->refs) {
		send_now(h, pkt, len, cut);
		return;
	}
	if (o->n == DDPS_US_OUT_MAX || DDPS_US_OUT_LEN - o->used < len)
		ddps_us_flush(ue);
	memcpy(o->buf + o->used, pkt, len);
	o->used += (uint32_t)len;
	o->pkt[o->n++] = (struct ddps_us_out_pkt){ h, (uint32_t)len };
}
