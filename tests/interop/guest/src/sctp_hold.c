/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program on the kernel's SCTP that holds associations: the target of sessctl conform --case 'assoc-*'.
 *
 *	sctp_hold -s ADDRESS PORT	takes every association until it is killed
 *	sctp_hold -c ADDRESS PORT	makes one, and ends with it
 *
 * Of DDP (RFC 5043) it knows what those cases need of a user.  An association whose peer does not indicate
 * DDP is aborted.  The initiator asks for a session on stream 0.  An enhanced Initiate without its word
 * (RFC 6581 section 6) is answered by a Terminate, once a stream.  All else is read and thrown away.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sctp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define STREAMS	     256u
#define PPID_CONTROL 17u
#define DDP	     1u
#define BACKLOG	     1024

struct assoc {
	sctp_assoc_t id; /* 0: the place is free */
	bool answered[STREAMS];
};

static struct assoc *assocs;
static size_t nassocs;

static int fail_sctp_hold_guest(const char *what)
{
	fprintf(stderr, "sctp_hold: %s: %s\n", what, strerror(errno));
	return 1;
}

/* ---- associations ---- */

static struct assoc *find_sctp_hold_guest(sctp_assoc_t id)
{
	for (size_t i = 0; i < nassocs; i++)
		if (assocs[i].id == id)
			return assocs + i;
	return NULL;
}

/* It begins, or begins anew. */
static int begin_sctp_hold_guest(sctp_assoc_t id)
{
	struct assoc *a = find_sctp_hold_guest(id), *more;

	a = a ? a : find_sctp_hold_guest(0);
	if (!a) {
		more = realloc(assocs, (nassocs + 1) * sizeof *more);
		if (!more)
			return -1;
		assocs = more;
		a = assocs + nassocs++;
	}
	memset(a, 0, sizeof *a);
	a->id = id;
	return 0;
}

static void end_sctp_hold_guest(sctp_assoc_t id)
{
	struct assoc *a = find_sctp_hold_guest(id);

	if (a)
		a->id = 0;
}

/* ---- messages ---- */

static int say_sctp_hold_guest(int fd, sctp_assoc_t id, uint16_t stream, uint16_t flags,
			       const void *p, size_t len)
{
	struct sctp_sndinfo info = { .snd_sid = stream,
				     .snd_flags = flags,
				     .snd_ppid = htonl(PPID_CONTROL),
				     .snd_assoc_id = id };
	union {
		struct cmsghdr align;
		uint8_t b[CMSG_SPACE(sizeof info)];
	} control = { 0 };
	struct iovec iov = { (void *)p, len };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = len != 0,
			    .msg_control = &control,
			    .msg_controllen = sizeof control };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = IPPROTO_SCTP;
	c->cmsg_type = SCTP_SNDINFO;
	c->cmsg_len = CMSG_LEN(sizeof info);
	memcpy(CMSG_DATA(c), &info, sizeof info);
	return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* The association may be over by now: its end is read later. */
static void answer_sctp_hold_guest(int fd, const struct sctp_rcvinfo *info, const uint8_t *p,
				   size_t len)
{
	static const uint8_t question[] = { 0, 0, 0, 5, 0, 16, 0 }, terminate[] = { 0, 0, 0, 4 };
	struct assoc *a = find_sctp_hold_guest(info->rcv_assoc_id);

	if (!a || info->rcv_sid >= STREAMS || a->answered[info->rcv_sid] ||
	    len != sizeof question || memcmp(p, question, len) != 0)
		return;
	a->answered[info->rcv_sid] = true;
	if (say_sctp_hold_guest(fd, a->id, info->rcv_sid, SCTP_UNORDERED, terminate,
				sizeof terminate))
		fail_sctp_hold_guest("answer");
}

/* ---- what comes ---- */

struct item {
	size_t len;
	bool note, part;
	struct sctp_rcvinfo info;
	union {
		union sctp_notification note;
		uint8_t b[65536];
	} in;
};

static bool next_in_sctp_hold_guest(int fd, int flags, struct item *it)
{
	union {
		struct cmsghdr align;
		uint8_t b[CMSG_SPACE(sizeof it->info)];
	} control;
	struct iovec iov = { &it->in, sizeof it->in };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof control };
	ssize_t n = recvmsg(fd, &m, flags);

	if (n < 0)
		return false;
	it->len = (size_t)n;
	it->note = m.msg_flags & MSG_NOTIFICATION;
	it->part = !(m.msg_flags & MSG_EOR);
	memset(&it->info, 0, sizeof it->info);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == IPPROTO_SCTP && c->cmsg_type == SCTP_RCVINFO)
			memcpy(&it->info, CMSG_DATA(c), sizeof it->info);
	return true;
}

/* What the peer indicates is queued together with the beginning: if it is not there, there is none. */
static bool is_ddp(int fd, sctp_assoc_t id)
{
	static struct item it;

	return next_in_sctp_hold_guest(fd, MSG_DONTWAIT | MSG_PEEK, &it) && it.note &&
	       it.in.note.sn_header.sn_type == SCTP_ADAPTATION_INDICATION &&
	       it.in.note.sn_adaptation_event.sai_assoc_id == id &&
	       it.in.note.sn_adaptation_event.sai_adaptation_ind == DDP;
}

static int bring_sctp_hold_guest_up(int fd, sctp_assoc_t id, bool client)
{
	static const uint8_t initiate[] = { 0, 0, 0, 1 };

	if (!is_ddp(fd, id)) {
		fprintf(stderr, "sctp_hold: the peer does not indicate DDP\n");
		return say_sctp_hold_guest(fd, id, 0, SCTP_ABORT, NULL, 0);
	}
	if (begin_sctp_hold_guest(id))
		return -1;
	return client ? say_sctp_hold_guest(fd, id, 0, SCTP_UNORDERED, initiate, sizeof initiate)
		      : 0;
}

/* Return: false: it is over for a client. */
static bool changed(int fd, const struct sctp_assoc_change *c, bool client)
{
	switch (c->sac_state) {
	case SCTP_COMM_UP:
		if (bring_sctp_hold_guest_up(fd, c->sac_assoc_id, client))
			fail_sctp_hold_guest("association");
		return true;
	case SCTP_RESTART:
		if (begin_sctp_hold_guest(c->sac_assoc_id))
			fail_sctp_hold_guest("restart");
		return true;
	default: /* COMM_LOST, SHUTDOWN_COMP, CANT_STR_ASSOC */
		end_sctp_hold_guest(c->sac_assoc_id);
		return !client;
	}
}

static int hold_sctp_hold_guest(int fd, bool client)
{
	static struct item it;
	bool middle = false; /* the rest of a message that is too long for a question */

	while (next_in_sctp_hold_guest(fd, 0, &it)) {
		if (!it.note) {
			if (!middle && !it.part)
				answer_sctp_hold_guest(fd, &it.info, it.in.b, it.len);
			middle = it.part;
		} else if (it.in.note.sn_header.sn_type == SCTP_ASSOC_CHANGE &&
			   !changed(fd, &it.in.note.sn_assoc_change, client)) {
			return 0;
		}
	}
	return fail_sctp_hold_guest("receive");
}

/* ---- set-up ---- */

static int set_sctp_hold_guest(int fd, int option, const void *value, socklen_t len)
{
	return setsockopt(fd, IPPROTO_SCTP, option, value, len);
}

/* Many associations on one socket. */
static int make_sctp_hold_guest(void)
{
	static const uint16_t types[] = { SCTP_ASSOC_CHANGE, SCTP_ADAPTATION_INDICATION };
	struct sctp_initmsg init = { .sinit_num_ostreams = STREAMS,
				     .sinit_max_instreams = STREAMS };
	struct sctp_setadaptation adaptation = { .ssb_adaptation_ind = DDP };
	int on = 1, fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);

	if (fd < 0 || set_sctp_hold_guest(fd, SCTP_INITMSG, &init, sizeof init) ||
	    set_sctp_hold_guest(fd, SCTP_ADAPTATION_LAYER, &adaptation, sizeof adaptation) ||
	    set_sctp_hold_guest(fd, SCTP_NODELAY, &on, sizeof on) ||
	    set_sctp_hold_guest(fd, SCTP_RECVRCVINFO, &on, sizeof on))
		return -1;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct sctp_event ev = { .se_assoc_id = SCTP_FUTURE_ASSOC,
					 .se_type = types[i],
					 .se_on = 1 };

		if (set_sctp_hold_guest(fd, SCTP_EVENT, &ev, sizeof ev))
			return -1;
	}
	return fd;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	bool client = argc == 4 && !strcmp(argv[1], "-c");
	int fd;

	if (!client && (argc != 4 || strcmp(argv[1], "-s") != 0))
		return 2;
	if (inet_pton(AF_INET, argv[2], &at.sin_addr) != 1)
		return 2;
	at.sin_port = htons((uint16_t)atoi(argv[3]));
	fd = make_sctp_hold_guest();
	if (fd < 0)
		return fail_sctp_hold_guest("socket");
	if (client && connect(fd, (struct sockaddr *)&at, sizeof at))
		return fail_sctp_hold_guest("connect");
	if (!client && (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, BACKLOG)))
		return fail_sctp_hold_guest("listen");
	return hold_sctp_hold_guest(fd, client);
}
