/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the view answers on a socket of NETLINK_RDMA, in the preload library itself: the files of the view, as
 * the kernel would put them, and a refusal with a sentence for all else.
 */
#include "view/view_counters.h"
#include "view_fixture.h"
#include "view/view.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <criterion/criterion.h>

static char tmp[] = "/tmp/view_nldev_test-XXXXXX";
static int fd;

static const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

static void write_answer_file(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof path, "%s/nldev/%s", tmp, name);
	f = fopen(path, "w");
	cr_assert(f && fputs(text, f) >= 0 && !fclose(f), "%s", path);
}

/* Two devices, the first one with two ports. */
static void setup(void)
{
	char path[PATH_MAX];

	open_view(tmp);
	snprintf(path, sizeof path, "%s/nldev", tmp);
	cr_assert(!mkdir(path, 0700));
	write_answer_file("0", "dev0");
	write_answer_file("0.1", "port");
	write_answer_file("0.2", "rear");
	write_answer_file("1", "dev1");
	write_answer_file("sys", "syst");
	fd = THEIRS(socket)(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	cr_assert_geq(fd, 0);
}

static void fini(void)
{
	close(fd);
	remove_view(tmp);
}

struct question {
	struct nlmsghdr head;
	struct {
		struct nlattr attr;
		uint32_t n;
	} at[2];
};

/* @dev, @port: -1 if the question does not have it. */
static struct question make_question(int cmd, int flags, int dev, int port)
{
	struct question q = { .head = { .nlmsg_type =
						(uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, cmd),
					.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
					.nlmsg_seq = 77 } };
	int n = 0;

	if (port >= 0) {
		q.at[n].attr = (struct nlattr){ 8, RDMA_NLDEV_ATTR_PORT_INDEX };
		q.at[n++].n = (uint32_t)port;
	}
	if (dev >= 0) {
		q.at[n].attr = (struct nlattr){ 8, RDMA_NLDEV_ATTR_DEV_INDEX };
		q.at[n++].n = (uint32_t)dev;
	}
	q.head.nlmsg_len = (uint32_t)(sizeof q.head + (size_t)n * sizeof *q.at);
	return q;
}

static ssize_t ask_kernel(const void *q, size_t len)
{
	return THEIRS(sendto)(fd, q, len, 0, (const struct sockaddr *)&kernel, sizeof kernel);
}

static void ask(int cmd, int flags, int dev, int port)
{
	struct question q = make_question(cmd, flags, dev, port);

	cr_assert_eq(ask_kernel(&q, q.head.nlmsg_len), (ssize_t)q.head.nlmsg_len);
}

/* The next answer: its type and what is in it. */
static void expect_nldev(int cmd, int flags, const char *body)
{
	struct {
		struct nlmsghdr head;
		char body[64];
	} m = { 0 };
	struct sockaddr_nl own;
	socklen_t n = sizeof own;

	cr_assert_eq(recv(fd, &m, sizeof m, MSG_DONTWAIT), NLMSG_LENGTH(4));
	cr_assert(!getsockname(fd, (struct sockaddr *)&own, &n));
	cr_expect_eq(m.head.nlmsg_len, NLMSG_LENGTH(4));
	cr_expect_eq(m.head.nlmsg_type, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, cmd));
	cr_expect_eq(m.head.nlmsg_flags, flags);
	cr_expect_eq(m.head.nlmsg_seq, 77u);
	cr_expect_eq(m.head.nlmsg_pid, own.nl_pid);
	cr_expect_str_eq(m.body, body);
}

/* The end: NLMSG_DONE, or an error with a sentence, or without one (0). */
static void expect_nldev_end(int type, int error)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr e;
		struct nlattr attr;
		char text[200];
	} m = { 0 };

	cr_assert_geq(recv(fd, &m, sizeof m, MSG_DONTWAIT), NLMSG_LENGTH(4));
	cr_expect_eq(m.head.nlmsg_type, type);
	cr_expect_eq(m.head.nlmsg_seq, 77u);
	cr_expect_eq(m.e.error, -error);
	cr_expect_eq(!error, !strstr(m.text, "ddpsess"), "%s", m.text);
	if (error) {
		cr_expect_eq(m.attr.nla_type, NLMSGERR_ATTR_MSG);
		cr_expect_eq(m.attr.nla_len, sizeof m.attr + strlen(m.text) + 1);
	}
}

static void expect_silence(void)
{
	char b[8];

	cr_expect_eq(recv(fd, b, sizeof b, MSG_DONTWAIT), -1);
	cr_expect_eq(errno, EAGAIN);
}

TestSuite(view_nldev, .init = setup, .fini = fini);

Test(view_nldev, lists_devices_and_the_ports_of_one)
{
	ask(RDMA_NLDEV_CMD_GET, NLM_F_DUMP | NLM_F_ACK, -1, -1);
	expect_nldev(RDMA_NLDEV_CMD_GET, NLM_F_MULTI, "dev0");
	expect_nldev(RDMA_NLDEV_CMD_GET, NLM_F_MULTI, "dev1");
	expect_nldev_end(NLMSG_DONE, 0);
	ask(RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP, 0, -1);
	expect_nldev(RDMA_NLDEV_CMD_PORT_GET, NLM_F_MULTI, "port");
	expect_nldev(RDMA_NLDEV_CMD_PORT_GET, NLM_F_MULTI, "rear");
	expect_nldev_end(NLMSG_DONE, 0);
	expect_silence();
}

Test(view_nldev, shows_one_and_confirms_it_if_asked)
{
	ask(RDMA_NLDEV_CMD_GET, NLM_F_ACK, 1, -1);
	expect_nldev(RDMA_NLDEV_CMD_GET, 0, "dev1");
	expect_nldev_end(NLMSG_ERROR, 0);
	ask(RDMA_NLDEV_CMD_PORT_GET, 0, 0, 2);
	expect_nldev(RDMA_NLDEV_CMD_PORT_GET, 0, "rear");
	ask(RDMA_NLDEV_CMD_SYS_GET, 0, -1, -1);
	expect_nldev(RDMA_NLDEV_CMD_SYS_GET, 0, "syst");
	expect_silence();
}

Test(view_nldev, refuses_the_rest_with_a_sentence)
{
	static const struct {
		int cmd, flags, dev, port, error;
	} all[] = {
		{ RDMA_NLDEV_CMD_GET, 0, 2, -1, EINVAL },
		{ RDMA_NLDEV_CMD_GET, 0, -1, -1, EINVAL },
		{ RDMA_NLDEV_CMD_PORT_GET, 0, 0, 3, EINVAL },
		{ RDMA_NLDEV_CMD_PORT_GET, 0, 0, -1, EINVAL },
		{ RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP, -1, -1, EINVAL },
		{ RDMA_NLDEV_CMD_STAT_GET, 0, 0, 2, EINVAL },
		{ RDMA_NLDEV_CMD_STAT_GET, 0, 1, 1, EINVAL },
		{ RDMA_NLDEV_CMD_STAT_GET, 0, 0, -1, EINVAL },
		{ RDMA_NLDEV_CMD_STAT_GET, 0, 0, 1, EINVAL }, /* a device without a name */
		{ RDMA_NLDEV_CMD_STAT_GET, NLM_F_DUMP, 0, 1, EOPNOTSUPP },
		{ RDMA_NLDEV_CMD_RES_GET, 0, 0, -1, EOPNOTSUPP },
		{ RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP, 0, -1, EOPNOTSUPP },
		{ RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK, -1, -1, EOPNOTSUPP },
		/* another client of RDMA's netlink */
		{ RDMA_NL_GET_TYPE(1, 0), 0, 0, -1, EOPNOTSUPP },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		ask(all[i].cmd, all[i].flags, all[i].dev, all[i].port);
		expect_nldev_end(NLMSG_ERROR, all[i].error);
		expect_silence();
	}
}

Test(view_nldev, says_that_somebody_keeps_the_counters_locked)
{
	static const struct {
		struct nlattr attr;
		char name[8];
	} named = { { sizeof named, RDMA_NLDEV_ATTR_DEV_NAME }, "ddp0" };
	char path[PATH_MAX], answer[4096];
	int file, ended;

	snprintf(path, sizeof path, "%s/nldev/0", tmp);
	file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	cr_assert(file >= 0 && write(file, &named, sizeof named) == sizeof named);
	close(file);
	snprintf(path, sizeof path, "%s/" VIEW_LIVE, tmp);
	cr_assert(!mkdir(path, 0700));
	snprintf(path, sizeof path, "%s/" VIEW_LIVE "/" VIEW_ENDED, tmp);
	ended = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert(ended >= 0 && !flock(ended, LOCK_EX));
	ask(RDMA_NLDEV_CMD_STAT_GET, 0, 0, 1);
	expect_nldev_end(NLMSG_ERROR, EBUSY);
	close(ended);
	ask(RDMA_NLDEV_CMD_STAT_GET, 0, 0, 1);
	cr_expect_gt(recv(fd, answer, sizeof answer, MSG_DONTWAIT), 100);
	expect_silence();
}

Test(view_nldev, takes_a_question_in_pieces_and_none_that_is_cut)
{
	struct question q = make_question(RDMA_NLDEV_CMD_GET, 0, 1, -1);
	struct iovec parts[] = { { &q, 10 }, { (char *)&q + 10, q.head.nlmsg_len - 10 } };
	struct msghdr m = { .msg_name = (void *)&kernel,
			    .msg_namelen = sizeof kernel,
			    .msg_iov = parts,
			    .msg_iovlen = 2 };

	cr_assert_eq(THEIRS(sendmsg)(fd, &m, 0), (ssize_t)q.head.nlmsg_len);
	expect_nldev(RDMA_NLDEV_CMD_GET, 0, "dev1");
	for (size_t len = 0; len < q.head.nlmsg_len; len++)
		ask_kernel(&q, len);
	expect_silence();
	/* attributes with lengths that cannot be */
	for (unsigned len = 0; len < 24; len++) {
		q.at[0].attr.nla_len = (uint16_t)len;
		ask_kernel(&q, q.head.nlmsg_len);
		if (len == 8)
			expect_nldev(RDMA_NLDEV_CMD_GET, 0, "dev1");
		else
			expect_nldev_end(NLMSG_ERROR, EINVAL);
	}
}

Test(view_nldev, says_that_nobody_read_the_answers)
{
	struct question q = make_question(RDMA_NLDEV_CMD_GET, NLM_F_DUMP, -1, -1);
	int n = 0;

	while (ask_kernel(&q, q.head.nlmsg_len) > 0 && n < 100000)
		n++;
	cr_expect_eq(errno, ENOBUFS);
	cr_expect_gt(n, 0);
}

/* Sockets of other families and protocols, and what is not for the kernel, go where they went. */
Test(view_nldev, leaves_other_sockets_alone)
{
	struct {
		struct nlmsghdr head;
		struct rtgenmsg gen;
	} q = { .head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtgenmsg)),
			  .nlmsg_type = RTM_GETLINK,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };
	struct sockaddr_nl own;
	socklen_t n = sizeof own;
	char b[8192];
	int route = THEIRS(socket)(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), pair[2];

	cr_assert_geq(route, 0);
	cr_assert_eq(THEIRS(sendto)(route, &q, sizeof q, 0, (const struct sockaddr *)&kernel,
				    sizeof kernel),
		     (ssize_t)sizeof q);
	cr_expect_gt(recv(route, b, sizeof b, 0), 0);
	close(route);
	cr_assert(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	cr_expect_eq(THEIRS(sendto)(pair[0], "abc", 3, 0, NULL, 0), 3);
	cr_expect_eq(recv(pair[1], b, sizeof b, 0), 3);
	cr_expect_eq(THEIRS(sendmsg)(pair[0], &(struct msghdr){ 0 }, 0), 0);
	close(pair[0]);
	close(pair[1]);
	/* to itself: no question */
	cr_assert(!bind(fd, (const struct sockaddr *)&kernel, sizeof kernel));
	cr_assert(!getsockname(fd, (struct sockaddr *)&own, &n));
	cr_expect_eq(THEIRS(sendto)(fd, "abc", 3, 0, (const struct sockaddr *)&own, n), 3);
	cr_expect_eq(recv(fd, b, sizeof b, MSG_DONTWAIT), 3);
}

/* ---- which paths the view of the device's folders takes, and which it leaves alone ---- */

static const struct {
	const char *path, *to; /* NULL: left alone */
} rows[] = {
	{ "/sys/class/infiniband", "/v/sys/class/infiniband" },
	{ "/sys/class/infiniband/", "/v/sys/class/infiniband" },
	{ "//sys///class/./infiniband/ddp0/.", "/v/sys/class/infiniband/ddp0" },
	{ "/sys/class/infiniband_verbs/uverbs0/ibdev",
	  "/v/sys/class/infiniband_verbs/uverbs0/ibdev" },
	{ "/dev/infiniband/uverbs0", "/v/dev/infiniband/uverbs0" },
	{ "/sys/class/infiniband/ddp0/../ddp1", "/v/sys/class/infiniband/ddp1" },
	{ "/sys/class/net/../infiniband", "/v/sys/class/infiniband" },
	{ "/sys/class/infiniband/../net/lo", "/sys/class/net/lo" },
	{ "/dev/infiniband/../../../etc/infiniband", "/etc/infiniband" },
	{ "/sys/class/.x/../infiniband/.y", "/v/sys/class/infiniband/.y" },
	{ "/sys/class/infiniband2", NULL },
	{ "/sys/class/infiniband_mad", NULL },
	{ "/opt/infiniband/../x", NULL }, /* it may be a link */
	{ "sys/class/infiniband", NULL },
	{ "/etc/passwd", NULL },
	{ "", NULL },
};

Test(view_path, leads_into_the_view_and_nowhere_else)
{
	char buf[64];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *got = view_into("/v", rows[i].path, buf, sizeof buf);

		cr_expect_str_eq(got, rows[i].to ? rows[i].to : rows[i].path);
		cr_expect(rows[i].to || got == rows[i].path, "%s", rows[i].path);
	}
	cr_expect_null(view_into("/v", NULL, buf, sizeof buf));
}

/* What does not fit is left alone, whatever it is too long for. */
Test(view_path, long_paths)
{
	static const char path[] = "/sys/class/infiniband/ddp0";
	char buf[64];

	for (size_t len = 0; len < sizeof buf; len++) {
		const char *got;

		memset(buf, 'x', sizeof buf);
		got = view_into("/v", path, buf, len);
		cr_expect_str_eq(got, len < sizeof path + 2 ? path : "/v/sys/class/infiniband/ddp0",
				 "%zu", len);
		for (size_t i = len; i < sizeof buf; i++)
			cr_expect_eq(buf[i], 'x', "%zu of %zu", i, len);
	}
}

Test(view_path, and_out_of_it)
{
	char in[] = "/v/sys/class/infiniband", at[] = "/v", like[] = "/v2/x", other[] = "/dev/null";

	view_out_of("/v", in);
	view_out_of("/v", at);
	view_out_of("/v", like);
	view_out_of("/v", other);
	view_out_of("", other);
	cr_expect_str_eq(in, "/sys/class/infiniband");
	cr_expect_str_eq(at, "/v");
	cr_expect_str_eq(like, "/v2/x");
	cr_expect_str_eq(other, "/dev/null");
}
