/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "sessctl ipoib bridge status" and "down" ask a running bridge over a socket whose abstract
 * name is that of the TUN device: it belongs to the network namespace like the device, and
 * nothing of it stays behind.
 */
#include "ipoib/bridge/ipoib_bridge.h"
#include "cli/sessctl.h"
#include "common/system/user.h"
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_MAX   (128u * 1024)
#define SILENCE_NS   NS_PER_S /* so long one who asks may keep others waiting */
#define ANSWER_MS    5000
#define BACKLOG	     8
#define QUESTION_MAX 16

static socklen_t name_of(struct sockaddr_un *a, const char *tun)
{
	int n;

	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "ddpsess-bridge-%.15s", tun);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* An abstract name has no permissions, so the other side must be root or the same user. */
static bool is_ctl_peer_trusted(int fd)
{
	struct ucred c;
	socklen_t len = sizeof c;

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &len) &&
	       (c.uid == 0 || ddps_user_is_own(c.uid));
}

int bridge_ctl_open(struct bridge *b)
{
	struct sockaddr_un a;
	socklen_t len = name_of(&a, b->o->tun);
	int err;

	b->ctl = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (b->ctl < 0)
		return -1;
	if (!bind(b->ctl, (struct sockaddr *)&a, len) && !listen(b->ctl, BACKLOG))
		return 0;
	err = errno;
	close(b->ctl);
	b->ctl = -1;
	errno = err;
	return -1;
}

static void close_ctl_client(struct bridge *b)
{
	close(b->client);
	b->client = -1;
}

static void tell_status(struct bridge *b)
{
	json_t *status = bridge_status(b, "status");
	char *text = status ? json_dumps(status, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	int room = ANSWER_MAX;

	/* what does not fit or is not taken immediately shows to the other side as no answer */
	(void)setsockopt(b->client, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	if (text)
		(void)send(b->client, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
	free(text);
	json_decref(status);
	close_ctl_client(b);
}

static void answer_ctl_client(struct bridge *b)
{
	char question[QUESTION_MAX + 1];
	ssize_t n = recv(b->client, question, QUESTION_MAX, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	question[n > 0 ? n : 0] = '\0';
	if (!strcmp(question, "status"))
		tell_status(b);
	else if (!strcmp(question, "down"))
		b->down = true; /* its answer is the end of the connection */
	else
		close_ctl_client(b);
}

void bridge_ctl_run(struct bridge *b, uint64_t now)
{
	if (b->client >= 0 && !b->down && now > b->client_until)
		close_ctl_client(b);
	if (b->client < 0) {
		b->client = accept4(b->ctl, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		b->client_until = now + SILENCE_NS;
		if (b->client >= 0 && !is_ctl_peer_trusted(b->client))
			close_ctl_client(b);
	}
	if (b->client >= 0 && !b->down)
		answer_ctl_client(b);
}

void bridge_ctl_close(struct bridge *b)
{
	if (b->ctl >= 0)
		close(b->ctl);
	if (b->client >= 0)
		close_ctl_client(b);
}

/* ---- the side that asks ---- */

static int no_bridge(struct out *out, const char *tun, const char *why)
{
	out_error(out, 0, "ip link shows the devices, 'sessctl ipoib bridge up' makes one",
		  "no bridge on %s in this network namespace: %s", tun, why);
	return ST_FAILED;
}

static int no_answer(struct out *out, const char *tun)
{
	bool late = errno == ETIMEDOUT;

	out_error(out, 0, "see what its process does; however it ends, the device goes with it",
		  "the bridge on %s does not answer: %s", tun, strerror(errno));
	return late ? ST_TIMEDOUT : ST_FAILED;
}

/* Asks and waits.  Return: octets of the answer, 0: the bridge hung up, -1 with errno. */
static ssize_t ask_bridge(int fd, const char *what, char *buf, size_t size)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (send(fd, what, strlen(what), MSG_NOSIGNAL) < 0)
		return -1;
	if (poll(&p, 1, ANSWER_MS) != 1) {
		errno = ETIMEDOUT;
		return -1;
	}
	return recv(fd, buf, size, 0);
}

/* @n octets that a trusted bridge has sent; 0 is what "down" ends with. */
static int print_bridge_answer(struct out *out, const struct ipoib_opts *o, const char *what,
			       const char *text, size_t n)
{
	const char *tun = o->tun;
	bool down = !strcmp(what, "down");
	json_t *j = down ? json_pack("{ss ss}", "event", "down", "tun", tun)
			 : json_loadb(text, n, 0, NULL);

	if (!j || down != (n == 0)) {
		json_decref(j);
		out_error(out, 0, NULL, "%s: the bridge gave no answer", tun);
		return ST_FAILED;
	}
	if (out->json) {
		json_out_line(out, j);
		return ST_DONE;
	}
	if (down)
		fprintf(out->f, "%s: down\n", tun);
	else if (o->metrics)
		bridge_out_metrics(out->f, j);
	else
		bridge_out_status(out->f, j);
	json_decref(j);
	return ST_DONE;
}

int bridge_ask(const struct ipoib_opts *o, const char *what)
{
	struct sockaddr_un a;
	socklen_t len = name_of(&a, o->tun);
	char *buf = malloc(ANSWER_MAX);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), res;
	struct out out;
	ssize_t n;

	out_init(&out, "ipoib bridge", o->json);
	if (!buf || fd < 0) {
		out_error(&out, 0, NULL, "asking the bridge: %s", strerror(errno));
		res = ST_FAILED;
	} else if (connect(fd, (struct sockaddr *)&a, len)) {
		res = no_bridge(&out, o->tun, strerror(errno));
	} else if (!is_ctl_peer_trusted(fd)) {
		res = no_bridge(&out, o->tun, "a program of another user has its socket");
	} else {
		n = ask_bridge(fd, what, buf, ANSWER_MAX);
		res = n < 0 ? no_answer(&out, o->tun)
			    : print_bridge_answer(&out, o, what, buf, (size_t)n);
	}
	if (fd >= 0)
		close(fd);
	free(buf);
	return out_finish(&out) ? ST_FAILED : res;
}
