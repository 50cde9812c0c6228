/* SPDX-License-Identifier: BSD-2-Clause */
/* A watch when things go wrong: clients that leave, a context that is busy, odd texts. */
#include "support/child.h"
#include "support/e2e.h"
#include "session/session.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MANY 400 /* endpoints: more than one batch, and more text than a socket's buffer takes */

static char dir[64], path[96];

static void make_watch_rough_e2e_dir(void)
{
	snprintf(dir, sizeof dir, "/tmp/ddps-watch-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/%d.1", dir, (int)getpid());
}

static void remove_watch_rough_e2e_dir(void)
{
	rmdir(dir);
}

TestSuite(watch_rough, .init = make_watch_rough_e2e_dir, .fini = remove_watch_rough_e2e_dir,
	  .timeout = 60);

static int new_watch_rough_e2e_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void connect_to_watch(int fd)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
	cr_assert_eq(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
}

static int dial_watch_rough_e2e(void)
{
	int fd = new_watch_rough_e2e_socket();

	connect_to_watch(fd);
	return fd;
}

static json_t *answer_of(int fd)
{
	FILE *f = fdopen(fd, "r");
	json_t *o = json_loadf(f, 0, NULL);

	fclose(f);
	return o;
}

static size_t size_of(const json_t *o, const char *array)
{
	return json_array_size(json_object_get(o, array));
}

static const char *get_watch_rough_e2e_text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	cr_assert(s, "%s", key);
	return s;
}

static void endpoints(struct e2e *e, int n)
{
	struct ddps_ep *ep;

	e->attr.sq_depth = e->attr.rq_depth = 1;
	for (int i = 0; i < n; i++)
		cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &ep), 0);
}

static void watch_over_watch_rough_e2e(struct e2e *e, int eps, struct ddps_watch **w)
{
	e2e_open(e, e2e_wires[0]);
	endpoints(e, eps);
	cr_assert_eq(ddps_watch_open(w, e->ctx, NULL, dir), 0);
}

static void end_watch_rough_e2e(struct e2e *e, struct ddps_watch *w)
{
	ddps_watch_close(w);
	ddps_ctx_free(e->ctx);
}

/* ---- texts ---- */

Test(watch_rough, a_programs_name_is_any_octets)
{
	struct ddps_watch *w;
	char name[400];
	struct e2e e;
	json_t *o;

	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = 0;
	memcpy(name, "a\\b\"c\nd\x7f\xc3", 9);
	program_invocation_short_name = name;
	e2e_open(&e, e2e_wires[0]);
	cr_assert_eq(ddps_watch_open(&w, e.ctx, "\\", dir), 0);
	o = answer_of(dial_watch_rough_e2e());
	cr_assert(o);
	cr_expect_eq(strncmp(get_watch_rough_e2e_text(o, "program"), "a\\b\"c?d??xxx", 12), 0, "%s",
		     get_watch_rough_e2e_text(o, "program"));
	cr_expect_lt(strlen(get_watch_rough_e2e_text(o, "program")), 256, "cut");
	cr_expect_str_eq(get_watch_rough_e2e_text(o, "label"), "\\");
	json_decref(o);
	end_watch_rough_e2e(&e, w);
}

static void check_rtr(unsigned rtr, const char *name)
{
	struct ddps_watch *w;
	struct e2e e;
	json_t *o;

	e2e_open(&e, e2e_wires[0]);
	e.connect.p2p = rtr != 0;
	e.connect.rtr = rtr;
	e2e_connect(&e);
	cr_assert(e.b.seen & E2E_SEEN(DDPS_EV_ESTABLISHED));
	cr_assert_eq(ddps_watch_open(&w, e.ctx, NULL, dir), 0);
	o = answer_of(dial_watch_rough_e2e());
	cr_assert_eq(size_of(o, "sessions"), 2);
	for (size_t i = 0; i < 2; i++) {
		const json_t *s = json_array_get(json_object_get(o, "sessions"), i);

		cr_expect_str_eq(get_watch_rough_e2e_text(s, "rtr"), name);
		cr_expect_eq(json_is_true(json_object_get(s, "p2p")), rtr != 0);
	}
	json_decref(o);
	end_watch_rough_e2e(&e, w);
}

Test(watch_rough, each_rtr_type_has_its_name)
{
	check_rtr(0, "none");
	check_rtr(DDPS_RTR_SEND, "send");
	check_rtr(DDPS_RTR_WRITE, "write");
	check_rtr(DDPS_RTR_READ, "read");
}

#define NAMED 64 /* listeners that are named */

Test(watch_rough, more_listeners_than_are_named)
{
	struct ddps_listener *l;
	struct ddps_watch *w;
	struct e2e e;
	json_t *o;

	watch_over_watch_rough_e2e(&e, 0, &w);
	o = answer_of(dial_watch_rough_e2e());
	cr_expect_eq(size_of(o, "listeners"), 1);
	json_decref(o);
	for (int i = 0; i < NAMED; i++)
		cr_assert_eq(ddps_listen(e.ctx, e2e_wires[0], NULL, &l), 0);
	o = answer_of(dial_watch_rough_e2e());
	cr_assert(o);
	cr_expect_eq(size_of(o, "listeners"), NAMED);
	json_decref(o);
	end_watch_rough_e2e(&e, w);
}

/* ---- clients ---- */

Test(watch_rough, a_client_that_leaves_immediately)
{
	struct ddps_watch *w;
	struct e2e e;
	json_t *o;

	watch_over_watch_rough_e2e(&e, MANY, &w);
	close(dial_watch_rough_e2e());
	o = answer_of(dial_watch_rough_e2e());
	cr_expect_eq(size_of(o, "sessions"), MANY, "the next one is answered");
	json_decref(o);
	end_watch_rough_e2e(&e, w);
}

/* Without end, or longer than there is room; @seen: calls. */
struct own {
	atomic_uint seen;
	int len;
};

static int write_own_watch_rough_e2e(void *user, uint32_t n, char *to, size_t size)
{
	struct own *o = user;

	atomic_fetch_add(&o->seen, 1);
	memset(to, ' ', size);
	memcpy(to, "{}", 2);
	return n == 3 && o->len ? o->len : (int)size - 1;
}

Test(watch_rough, a_client_that_leaves_in_the_midst_of_a_programs_own)
{
	struct own own = { 0 };
	struct ddps_watch *w;
	unsigned after;
	struct e2e e;
	json_t *o;
	int fd;
	char c;

	watch_over_watch_rough_e2e(&e, 0, &w);
	cr_assert_eq(ddps_watch_add(w, "own", write_own_watch_rough_e2e, &own), 0);
	fd = dial_watch_rough_e2e();
	cr_assert_eq(recv(fd, &c, 1, 0), 1);
	close(fd);
	until_others_sleep(); /* it has been given up */
	after = atomic_load(&own.seen);
	cr_expect_gt(after, 0);
	own.len = 1024; /* more than there is room for: it is not told, and it is the last */
	o = answer_of(dial_watch_rough_e2e());
	cr_expect_eq(size_of(o, "own"), 3);
	cr_expect(json_is_true(json_object_get(o, "stuck")));
	cr_expect_eq(atomic_load(&own.seen), after + 4);
	json_decref(o);
	end_watch_rough_e2e(&e, w);
}

/* The other one is answered after the 2 s that a client has. */
Test(watch_rough, a_client_that_never_reads_is_given_up)
{
	struct ddps_watch *w;
	struct e2e e;
	json_t *o;
	int fd;

	watch_over_watch_rough_e2e(&e, MANY, &w);
	fd = dial_watch_rough_e2e();
	o = answer_of(dial_watch_rough_e2e());
	cr_expect_eq(size_of(o, "sessions"), MANY);
	json_decref(o);
	o = answer_of(fd);
	cr_expect_null(o, "only its beginning was sent");
	end_watch_rough_e2e(&e, w);
}

/* ---- the context ---- */

/* Somebody holds its lock for longer than the watch waits for it. */
Test(watch_rough, a_context_that_is_stuck)
{
	struct ddps_watch *w;
	struct e2e e;
	json_t *o;
	int fd;
	char c;

	watch_over_watch_rough_e2e(&e, MANY, &w);
	fd = dial_watch_rough_e2e();
	cr_assert_eq(recv(fd, &c, 1, MSG_PEEK), 1);
	until_others_sleep(); /* for the client has not read on: a part of the sessions was reported */
	ddps_lock(&e.ctx->lock);
	cr_expect_eq(ddps_ctx_settle(e.ctx, -1), DDPS_E_TIMEDOUT);
	cr_expect_eq(ddps_ctx_flush(e.ctx, -1), DDPS_E_TIMEDOUT);
	o = answer_of(fd);
	cr_assert(o);
	cr_expect(json_is_true(json_object_get(o, "stuck")));
	cr_expect(size_of(o, "sessions") > 0 && size_of(o, "sessions") < MANY);
	cr_expect_null(json_object_get(o, "context"));
	json_decref(o);
	o = answer_of(dial_watch_rough_e2e());
	cr_assert(o);
	cr_expect(json_is_true(json_object_get(o, "stuck")));
	cr_expect_null(json_object_get(o, "sessions"));
	json_decref(o);
	ddps_unlock(&e.ctx->lock);
	o = answer_of(dial_watch_rough_e2e());
	cr_expect_null(json_object_get(o, "stuck"));
	cr_expect_eq(size_of(o, "sessions"), MANY);
	json_decref(o);
	end_watch_rough_e2e(&e, w);
}

/* ---- descriptors ---- */

static rlim_t limit_watch_rough_e2e_fds(rlim_t n)
{
	struct rlimit lim;
	rlim_t was;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	was = lim.rlim_cur;
	lim.rlim_cur = n;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	return was;
}

/* The state of the one thread that is not this one, to be read without another descriptor. */
static int state_of_other(void)
{
	const int self = gettid();
	char name[300] = "";
	struct dirent *d;
	DIR *tasks = opendir("/proc/self/task");

	cr_assert_not_null(tasks);
	while ((d = readdir(tasks)))
		if (d->d_name[0] != '.' && atoi(d->d_name) != self)
			snprintf(name, sizeof name, "/proc/self/task/%s/stat", d->d_name);
	closedir(tasks);
	return open(name, O_RDONLY);
}

static void until_it_sleeps(int state)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	char line[300] = "";

	for (int ms = 0; !strstr(line, ") S"); ms++) {
		cr_assert_lt(ms, 10000, "it never rests");
		nanosleep(&moment, NULL);
		cr_assert_gt(pread(state, line, sizeof line - 1, 0), 0);
	}
}

/* A client that cannot be accepted yet is, later; one that cannot be holds no close up. */
Test(watch_rough, no_descriptor_for_a_client)
{
	const int fd = new_watch_rough_e2e_socket(), other = new_watch_rough_e2e_socket();
	struct ddps_watch *w;
	struct e2e e;
	rlim_t was;
	json_t *o;
	int state;

	watch_over_watch_rough_e2e(&e, 1, &w);
	state = state_of_other();
	until_it_sleeps(state); /* the directory was swept */
	was = limit_watch_rough_e2e_fds(3);
	connect_to_watch(fd);
	until_it_sleeps(state);
	limit_watch_rough_e2e_fds(was);
	o = answer_of(fd);
	cr_expect_eq(size_of(o, "sessions"), 1);
	json_decref(o);
	until_it_sleeps(state);
	limit_watch_rough_e2e_fds(3);
	connect_to_watch(other);
	until_it_sleeps(state);
	ddps_watch_close(w);
	limit_watch_rough_e2e_fds(was);
	cr_expect(access(path, F_OK), "the socket is gone");
	close(other);
	close(state);
	ddps_ctx_free(e.ctx);
}

/* Its number is another file's by now: neither that nor the context is touched. */
Test(watch_rough, a_socket_that_the_program_has_closed)
{
	struct ddps_watch *w;
	struct e2e e;
	int fd, own;

	e2e_open(&e, e2e_wires[0]);
	cr_assert_geq(fd = dup(0), 0);
	close(fd);
	cr_assert_eq(ddps_watch_open(&w, e.ctx, NULL, dir), 0);
	until_others_sleep();
	cr_assert_geq(own = new_watch_rough_e2e_socket(), 0);
	cr_assert_eq(dup2(own, fd), fd);
	ddps_watch_close(w);
	cr_expect_eq(access(path, F_OK), 0, "nobody knows whose it is");
	cr_expect_eq(close(fd), 0, "the program's is still open");
	close(own);
	cr_expect_eq(ddps_watch_open(&w, NULL, NULL, dir), DDPS_E_INVAL);
	unlink(path);
	ddps_ctx_free(e.ctx);
}
