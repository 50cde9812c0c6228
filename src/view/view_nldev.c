/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/view.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define QUESTION_MAX 4096
#define ANSWER_MAX   4096 /* libmnl receives as much where pages are smallest */
/* NLA_ALIGN, which is of type int. */
#define ALIGNED(len) (((size_t)(len) + NLA_ALIGNTO - 1) & ~((size_t)NLA_ALIGNTO - 1))

struct asker {
	const char *root;
	int fd; /* answers go from here */
	struct sockaddr_nl to;
	const struct nlmsghdr *asked;
	bool failed;
	bool busy; /* the counters are another process's now */
};

bool view_nldev_is_asked(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr_nl to;
	int protocol = 0;
	socklen_t n = sizeof protocol;

	if (!addr || len < sizeof to || addr->sa_family != AF_NETLINK)
		return false;
	memcpy(&to, addr, sizeof to);
	return !to.nl_pid && !to.nl_groups &&
	       !getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &n) &&
	       protocol == VIEW_NLDEV_PROTOCOL;
}

static void send_answer(struct asker *a, int type, int flags, const void *body, size_t len)
{
	struct {
		struct nlmsghdr head;
		char body[ANSWER_MAX - sizeof(struct nlmsghdr)];
	} m = { .head = { .nlmsg_len = (uint32_t)NLMSG_LENGTH(len),
			  .nlmsg_type = (uint16_t)type,
			  .nlmsg_flags = (uint16_t)flags,
			  .nlmsg_seq = a->asked->nlmsg_seq,
			  .nlmsg_pid = a->to.nl_pid } };

	memcpy(m.body, body, len);
	/* A program that does not read loses answers, as with the kernel's. */
	if (!a->failed && sendto(a->fd, &m, m.head.nlmsg_len, MSG_DONTWAIT,
				 (const struct sockaddr *)&a->to, sizeof a->to) < 0)
		a->failed = true;
}

/* The end of an answer, or why there is none: errno and a sentence (NLMSGERR_ATTR_MSG). */
static void send_end(struct asker *a, int error, const char *why)
{
	struct {
		struct nlmsgerr e;
		struct nlattr attr;
		char text[160];
	} m = { .e = { .error = -error, .msg = *a->asked } };
	size_t n = strlen(why) + 1;

	m.attr.nla_type = NLMSGERR_ATTR_MSG;
	m.attr.nla_len = (uint16_t)(sizeof m.attr + n);
	memcpy(m.text, why, n);
	if (error)
		send_answer(a, NLMSG_ERROR, NLM_F_CAPPED | NLM_F_ACK_TLVS, &m,
			    sizeof m.e + ALIGNED(m.attr.nla_len));
	else if (a->asked->nlmsg_flags & NLM_F_DUMP)
		send_answer(a, NLMSG_DONE, NLM_F_MULTI, &m.e.error, sizeof m.e.error);
	else if (a->asked->nlmsg_flags & NLM_F_ACK)
		send_answer(a, NLMSG_ERROR, NLM_F_CAPPED, &m.e, sizeof m.e);
}

/* Attributes, behind each other. */
struct attrs {
	size_t len;
	char octets[ANSWER_MAX - sizeof(struct nlmsghdr)];
};

/* Those of the file @name.  Return: false if there is none. */
static bool read_nldev_file(const struct asker *a, const char *name, struct attrs *to)
{
	char path[PATH_MAX + 64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "%s/nldev/%s", a->root, name);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = pread(fd, to->octets, sizeof to->octets, 0);
	close(fd);
	to->len = n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* Return: false if there is no such file. */
static bool answer_file(struct asker *a, const char *name)
{
	bool all = a->asked->nlmsg_flags & NLM_F_DUMP;
	struct attrs body;

	if (!read_nldev_file(a, name, &body))
		return false;
	send_answer(a, a->asked->nlmsg_type, all ? NLM_F_MULTI : 0, body.octets, body.len);
	return true;
}

/* The value of the first one of @type among @left octets at @at; NULL: there is none. */
static const char *find_attr(const char *at, size_t left, unsigned type, size_t *len)
{
	struct nlattr attr;

	while (left >= sizeof attr) {
		memcpy(&attr, at, sizeof attr);
		if (attr.nla_len < sizeof attr || attr.nla_len > left)
			return NULL;
		*len = attr.nla_len - sizeof attr;
		if ((attr.nla_type & NLA_TYPE_MASK) == type)
			return at + sizeof attr;
		if (ALIGNED(attr.nla_len) > left)
			return NULL;
		at += ALIGNED(attr.nla_len);
		left -= ALIGNED(attr.nla_len);
	}
	return NULL;
}

/* A number among the attributes of the question.  Return: false if it is not there. */
static bool find_number(const struct nlmsghdr *asked, unsigned type, uint32_t *to)
{
	size_t len;
	const char *at = find_attr(NLMSG_DATA(asked), asked->nlmsg_len - NLMSG_HDRLEN, type, &len);

	if (!at || len < sizeof *to)
		return false;
	memcpy(to, at, sizeof *to);
	return true;
}

static bool send_device(struct asker *a, uint32_t dev)
{
	char name[16];

	snprintf(name, sizeof name, "%u", dev);
	return answer_file(a, name);
}

static bool send_port(struct asker *a, uint32_t dev, uint32_t port)
{
	char name[32];

	snprintf(name, sizeof name, "%u.%u", dev, port);
	return answer_file(a, name);
}

/* Return: false if what is asked for is not there. */
static bool send_devices(struct asker *a)
{
	uint32_t dev = 0;

	if (!(a->asked->nlmsg_flags & NLM_F_DUMP))
		return find_number(a->asked, RDMA_NLDEV_ATTR_DEV_INDEX, &dev) &&
		       send_device(a, dev);
	while (send_device(a, dev))
		dev++;
	return true;
}

static bool send_ports(struct asker *a)
{
	uint32_t dev, port = 1;

	if (!find_number(a->asked, RDMA_NLDEV_ATTR_DEV_INDEX, &dev))
		return false;
	if (!(a->asked->nlmsg_flags & NLM_F_DUMP))
		return find_number(a->asked, RDMA_NLDEV_ATTR_PORT_INDEX, &port) &&
		       send_port(a, dev, port);
	while (send_port(a, dev, port))
		port++;
	return true;
}

/* ---- counters ---- */

/* There is room for all counters. */
static size_t append_attr(struct attrs *to, unsigned type, const void *value, size_t len)
{
	const struct nlattr attr = { .nla_len = (uint16_t)(sizeof attr + len),
				     .nla_type = (uint16_t)type };
	const size_t at = to->len;

	memset(to->octets + at, 0, ALIGNED(attr.nla_len));
	memcpy(to->octets + at, &attr, sizeof attr);
	if (len)
		memcpy(to->octets + at + sizeof attr, value, len);
	to->len += ALIGNED(attr.nla_len);
	return at;
}

/* What has been put since @at, is in that one. */
static void end_nest(struct attrs *to, size_t at)
{
	const uint16_t len = (uint16_t)(to->len - at);

	memcpy(to->octets + at, &len, sizeof len);
}

/* As rdma-statistic(8) wants them: of the port that has counters, the first of the first device. */
static bool send_counters(struct asker *a)
{
	uint32_t dev, port;
	uint64_t sum[VIEW_NCOUNTERS];
	struct attrs to = { 0 }, device;
	size_t all, one, len;
	const char *dev_name;

	if (!find_number(a->asked, RDMA_NLDEV_ATTR_DEV_INDEX, &dev) ||
	    !find_number(a->asked, RDMA_NLDEV_ATTR_PORT_INDEX, &port) || dev || port != 1 ||
	    !read_nldev_file(a, "0", &device))
		return false;
	dev_name = find_attr(device.octets, device.len, RDMA_NLDEV_ATTR_DEV_NAME, &len);
	if (!dev_name || len > NAME_MAX)
		return false;
	a->busy = !view_count_sum(a->root, sum);
	if (a->busy)
		return false;
	append_attr(&to, RDMA_NLDEV_ATTR_DEV_INDEX, &dev, sizeof dev);
	append_attr(&to, RDMA_NLDEV_ATTR_DEV_NAME, dev_name, len);
	append_attr(&to, RDMA_NLDEV_ATTR_PORT_INDEX, &port, sizeof port);
	all = append_attr(&to, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS | NLA_F_NESTED, NULL, 0);
	for (unsigned i = 0; i < VIEW_NCOUNTERS; i++) {
		const char *name = view_count_name(i);

		one = append_attr(&to, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY | NLA_F_NESTED, NULL,
				  0);
		append_attr(&to, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name, strlen(name) + 1);
		append_attr(&to, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, &sum[i],
			    sizeof sum[i]);
		end_nest(&to, one);
	}
	end_nest(&to, all);
	send_answer(a, a->asked->nlmsg_type, 0, to.octets, to.len);
	return true;
}

static void answer_question(struct asker *a)
{
	bool ours = RDMA_NL_GET_CLIENT(a->asked->nlmsg_type) == RDMA_NL_NLDEV, there;
	int op = ours ? RDMA_NL_GET_OP(a->asked->nlmsg_type) : RDMA_NLDEV_CMD_UNSPEC;
	uint32_t of;

	/* Of a port alone: of queue pairs there are none. */
	if (op == RDMA_NLDEV_CMD_STAT_GET && (a->asked->nlmsg_flags & NLM_F_DUMP ||
					      find_number(a->asked, RDMA_NLDEV_ATTR_STAT_RES, &of)))
		op = RDMA_NLDEV_CMD_UNSPEC;
	switch (op) {
	case RDMA_NLDEV_CMD_GET:
		there = send_devices(a);
		break;
	case RDMA_NLDEV_CMD_PORT_GET:
		there = send_ports(a);
		break;
	case RDMA_NLDEV_CMD_SYS_GET:
		there = answer_file(a, "sys");
		break;
	case RDMA_NLDEV_CMD_STAT_GET:
		there = send_counters(a);
		break;
	default:
		send_end(a, EOPNOTSUPP,
			 "ddpsess shows devices, ports and counters only, and does not change them "
			 "(see sessctl stat, and the options of sessctl run)");
		return;
	}
	if (there)
		send_end(a, 0, "");
	else if (a->busy)
		send_end(a, EBUSY, VIEW_COUNT_BUSY_WHY);
	else
		send_end(a, EINVAL, "ddpsess has no such device or port");
}

/* The question in one piece, at most @max octets.  Return: its length, or 0. */
static size_t gather_question(const struct msghdr *msg, char *to, size_t max)
{
	size_t len = 0;

	for (size_t i = 0; i < (size_t)msg->msg_iovlen; i++) {
		if (msg->msg_iov[i].iov_len > max - len)
			return 0;
		memcpy(to + len, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
		len += msg->msg_iov[i].iov_len;
	}
	return len;
}

ssize_t view_nldev_answer(const char *root, int fd, const struct msghdr *msg)
{
	union {
		struct nlmsghdr head;
		char octets[QUESTION_MAX];
	} q;
	struct asker a = { .root = root, .to.nl_family = AF_NETLINK, .asked = &q.head };
	size_t len = gather_question(msg, q.octets, sizeof q);
	socklen_t n = sizeof a.to;

	/* The kernel gives a socket its address when it first sends. */
	if (getsockname(fd, (struct sockaddr *)&a.to, &n) ||
	    (!a.to.nl_pid && (bind(fd, (const struct sockaddr *)&a.to, sizeof a.to) ||
			      getsockname(fd, (struct sockaddr *)&a.to, &n))))
		return -1;
	a.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, VIEW_NLDEV_PROTOCOL);
	if (a.fd < 0)
		return -1;
	if (len >= NLMSG_HDRLEN && q.head.nlmsg_len >= NLMSG_HDRLEN && q.head.nlmsg_len <= len)
		answer_question(&a);
	close(a.fd);
	if (!a.failed)
		return (ssize_t)len;
	errno = ENOBUFS;
	return -1;
}
