/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of the usrsctp peer, and usrsctp's own sockets with their options. */
#include "peer/usrsctp_in.h"
#include <sys/epoll.h>

#define BUFFER (1 << 20)

struct peer_usrsctp_knobs peer_usrsctp_knobs;

/* ---- packets ---- */

static bool note_usrsctp_net_lost(void)
{
	static uint32_t s = 1;

	s = s * 1664525u + 1013904223u;
	return (s >> 8) % 1000 < peer_usrsctp_knobs.lose;
}

int us_output(void *addr, void *pkt, size_t len, uint8_t tos, uint8_t df)
{
	struct way *w = addr;

	(void)tos;
	(void)df;
	if (w->l->refs && !peer_usrsctp_knobs.mute && !note_usrsctp_net_lost())
		(void)!sendto(w->l->io.fd, pkt, len, MSG_NOSIGNAL, (struct sockaddr *)&w->to,
			      w->len);
	return 0;
}

struct way *us_way_to(struct link *l, const struct sockaddr_storage *to, socklen_t len)
{
	struct way *w;

	LL_FOREACH(l->ways, w)
	if (w->len == len && !memcmp(&w->to, to, len))
		return w;
	w = calloc(1, sizeof *w);
	if (!w)
		abort();
	w->l = l;
	memcpy(&w->to, to, len);
	w->len = len;
	LL_PREPEND(l->ways, w);
	usrsctp_register_address(w);
	return w;
}

static void is_usrsctp_net_readable(void *user, uint32_t events)
{
	static uint8_t buf[65536];
	struct link *l = user;
	struct sockaddr_storage from;
	socklen_t len;
	ssize_t n;

	(void)events;
	for (int i = 0; i < TURN; i++) {
		memset(&from, 0, sizeof from);
		len = sizeof from;
		n = recvfrom(l->io.fd, buf, sizeof buf, MSG_DONTWAIT, (struct sockaddr *)&from,
			     &len);
		if (n < 0 && errno == ECONNREFUSED)
			us_refused(l);
		if (n < 0)
			break;
		if (!note_usrsctp_net_lost())
			usrsctp_conninput(us_way_to(l, &from, len), buf, (size_t)n, 0);
	}
	ddps_task_post(l->p->env->loop, &l->p->look);
}

int us_link_new(struct peer *p, const struct sockaddr_storage *at, socklen_t len, struct link **out)
{
	struct link *l = calloc(1, sizeof *l);
	struct sockaddr_storage ss = { 0 };
	socklen_t ss_len = sizeof ss;

	if (!l)
		return DDPS_E_NOMEM;
	*l = (struct link){ .p = p, .refs = 1 };
	l->io = (struct ddps_io){ .fn = is_usrsctp_net_readable, .user = l };
	l->io.fd = socket(at->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (l->io.fd < 0 || bind(l->io.fd, (const struct sockaddr *)at, len) < 0 ||
	    getsockname(l->io.fd, (struct sockaddr *)&ss, &ss_len) < 0 ||
	    ddps_io_set(p->env->loop, &l->io, EPOLLIN) < 0) {
		if (l->io.fd >= 0)
			close(l->io.fd);
		free(l);
		return DDPS_E_SYSTEM;
	}
	l->port = ddps_sd_port_number(&ss);
	DL_APPEND(p->links, l);
	*out = l;
	return 0;
}

void us_link_free(struct link *l)
{
	struct way *w, *next;

	LL_FOREACH_SAFE(l->ways, w, next)
	free(w);
	DL_DELETE(l->p->links, l);
	free(l);
}

void us_link_put(struct link *l)
{
	if (--l->refs)
		return;
	ddps_io_del(l->p->env->loop, &l->io);
	close(l->io.fd);
	l->io.fd = -1;
}

struct ddps_addr us_link_name(const struct link *l, uint16_t port, char *buf, size_t len)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t ss_len = sizeof ss;

	getsockname(l->io.fd, (struct sockaddr *)&ss, &ss_len);
	ddps_sd_set_port(&ss, port);
	ddps_addr_text((struct sockaddr *)&ss, buf, len);
	return ddps_addr_of((struct sockaddr *)&ss);
}

/* ---- usrsctp's sockets ---- */

static int set_events(struct socket *so)
{
	static const uint16_t types[] = { SCTP_ASSOC_CHANGE, SCTP_ADAPTATION_INDICATION,
					  SCTP_SHUTDOWN_EVENT };
	int bad = 0;

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		struct sctp_event ev = { .se_assoc_id = SCTP_FUTURE_ASSOC,
					 .se_type = types[i],
					 .se_on = 1 };

		bad |= usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_EVENT, &ev, sizeof ev);
	}
	return bad;
}

static int set_options(struct socket *so)
{
	struct sctp_initmsg init = { .sinit_num_ostreams = DDPS_SCTP_STREAMS,
				     .sinit_max_instreams = DDPS_SCTP_STREAMS };
	struct sctp_setadaptation ad = { .ssb_adaptation_ind = DDPS_SCTP_ADAPTATION_DDP };
	struct sockaddr_conn all = { .sconn_family = AF_CONN };
	struct sctp_paddrparams path = { .spp_flags = SPP_PMTUD_DISABLE | SPP_HB_ENABLE,
					 .spp_hbinterval = 5000,
					 .spp_pathmtu = PATH - 12u };
	struct linger abort_on_close = { .l_onoff = 1 };
	int on = 1, size = BUFFER, bad;

	memcpy(&path.spp_address, &all, sizeof all);
	bad = usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init);
	bad |= usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_ADAPTATION_LAYER, &ad, sizeof ad);
	bad |= usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path, sizeof path);
	bad |= usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_REUSE_PORT, &on, sizeof on);
	bad |= usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on);
	bad |= usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on);
	bad |= usrsctp_setsockopt(so, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	bad |= usrsctp_setsockopt(so, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	bad |= usrsctp_setsockopt(so, SOL_SOCKET, SO_LINGER, &abort_on_close,
				  sizeof abort_on_close);
	return bad | set_events(so) | usrsctp_set_non_blocking(so, 1);
}

struct socket *us_socket_new(uint16_t port)
{
	struct sockaddr_conn at = { .sconn_family = AF_CONN, .sconn_port = htons(port) };
	struct socket *so = usrsctp_socket(AF_CONN, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);

	if (so && set_options(so) == 0 && usrsctp_bind(so, (struct sockaddr *)&at, sizeof at) == 0)
		return so;
	if (so)
		usrsctp_close(so);
	return NULL;
}
