/* SPDX-License-Identifier: BSD-2-Clause */
/* What a context shows to its owner, and to nobody else. */
#include "support/e2e.h"
#include "support/child.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 400 /* endpoints: more than one batch, and more text than a socket's buffer takes */

static char dir[64], path[96];

static void make_watch_e2e_dir(void)
{
	snprintf(dir, sizeof dir, "/tmp/ddps-watch-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/%d.1", dir, (int)getpid());
}

static void remove_watch_e2e_dir(void)
{
	rmdir(dir);
}

TestSuite(watch, .init = make_watch_e2e_dir, .fini = remove_watch_e2e_dir, .timeout = 60);

static struct ddps_ctx *new_watch_e2e_ctx(void)
{
	struct ddps_ctx *ctx;

	cr_assert_eq(ddps_ctx_new(&ctx, NULL), 0);
	return ctx;
}

static int dial_watch_e2e(const char *at)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof sa.sun_path, "%s", at);
	if (!connect(fd, (struct sockaddr *)&sa, sizeof sa))
		return fd;
	close(fd);
	return -1;
}

/* The answer, NULL: none, or not JSON. */
static json_t *ask_watch_e2e(const char *at)
{
	int fd = dial_watch_e2e(at);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	json_t *o = f ? json_loadf(f, 0, NULL) : NULL;

	if (f)
		fclose(f);
	return o;
}

static json_int_t get_watch_e2e_number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	cr_assert(json_is_integer(v), "%s", key);
	return json_integer_value(v);
}

static const char *get_watch_e2e_text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	cr_assert(s, "%s", key);
	return s;
}

/* The wire has the name of the URI's scheme, but for TCP that has moved to shared memory. */
static void check_session(const json_t *s, const struct e2e_end *end, const char *uri)
{
	struct ddps_conn_info i;

	cr_assert_eq(ddps_ep_info(end->ep, &i), 0);
	if (i.transport == DDPS_TRANSPORT_SHM)
		uri = "shm:";
	cr_expect_str_eq(get_watch_e2e_text(s, "state"), "OPEN");
	cr_expect_eq(strncmp(get_watch_e2e_text(s, "transport"), uri, strcspn(uri, ":")), 0);
	cr_expect_eq(strlen(get_watch_e2e_text(s, "transport")), strcspn(uri, ":"));
	cr_expect_str_eq(get_watch_e2e_text(s, "local"), i.local);
	cr_expect_str_eq(get_watch_e2e_text(s, "peer"), i.peer);
	cr_expect_eq(json_is_true(json_object_get(s, "initiator")), i.initiator);
	cr_expect_eq(json_is_true(json_object_get(s, "enhanced")), i.enhanced);
	cr_expect_eq(get_watch_e2e_number(s, "ird"), i.ird);
	cr_expect_eq(get_watch_e2e_number(s, "ord"), i.ord);
	cr_expect_eq(get_watch_e2e_number(s, "mulpdu"), i.mulpdu);
	if (i.transport == DDPS_TRANSPORT_SHM) {
		cr_expect_eq(get_watch_e2e_number(s, "peer_pid"), getpid());
		cr_expect_eq(get_watch_e2e_number(s, "peer_uid"), geteuid());
		cr_expect_eq(get_watch_e2e_number(s, "peer_gid"), getegid());
		cr_expect_eq(json_is_true(json_object_get(s, "crc")), i.mpa.crc);
	} else if (i.transport == DDPS_TRANSPORT_TCP) {
		cr_expect_eq(json_is_true(json_object_get(s, "crc")), i.mpa.crc);
		cr_expect_eq(json_is_true(json_object_get(s, "markers_tx")), i.mpa.markers_tx);
		cr_expect_gt(get_watch_e2e_number(s, "cwnd"), 0);
	} else {
		cr_expect_str_eq(get_watch_e2e_text(s, "backend"), i.sctp.backend);
		cr_expect_eq(get_watch_e2e_number(s, "stream"), i.sctp.stream);
	}
}

E2E_WIRES(watch, a_session_is_shown_as_it_is)
{
	static uint8_t out[5000], in[5000];
	const json_t *sessions, *ctx;
	struct ddps_watch *w;
	struct ddps_sge sge;
	struct ddps_mr *mi, *mo;
	struct e2e e;
	json_t *o;

	e2e_up(&e, wire);
	mi = e2e_reg(&e, in, sizeof in, DDPS_LOCAL_WRITE);
	mo = e2e_reg(&e, out, sizeof out, 0);
	sge = e2e_sge(in, sizeof in, mi);
	cr_assert_eq(ddps_post_recv(e.b.ep, 1, &sge, 1), 0);
	cr_assert_eq(ddps_post_recv(e.b.ep, 2, &sge, 1), 0);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_SEND, out, sizeof out, mo, 0, 0), 0);
	e2e_wc(&e);
	e2e_wc(&e);
	cr_assert_eq(ddps_watch_open(&w, e.ctx, "the \"label\"", dir), 0);
	o = ask_watch_e2e(path);
	cr_assert(o);
	cr_expect_eq(get_watch_e2e_number(o, "pid"), getpid());
	cr_expect_str_eq(get_watch_e2e_text(o, "label"), "the \"label\"");
	cr_expect_str_eq(get_watch_e2e_text(o, "version"), ddps_version());
	cr_expect_str_eq(json_string_value(json_array_get(json_object_get(o, "listeners"), 0)),
			 e.uri);
	sessions = json_object_get(o, "sessions");
	cr_assert_eq(json_array_size(sessions), 2);
	check_session(json_array_get(sessions, 0), &e.b, e.uri); /* the youngest is first */
	check_session(json_array_get(sessions, 1), &e.a, e.uri);
	cr_expect_eq(get_watch_e2e_number(json_array_get(sessions, 0), "recvs_posted"), 1);
	ctx = json_object_get(o, "context");
	cr_expect_eq(get_watch_e2e_number(ctx, "regions"), 2);
	cr_expect_eq(get_watch_e2e_number(ctx, "sessions"), 2);
	cr_expect_eq(get_watch_e2e_number(json_object_get(ctx, "sent"), "octets"),
		     (json_int_t)sizeof out);
	json_decref(o);
	ddps_watch_close(w);
	cr_expect(access(path, F_OK), "the socket is gone");
	e2e_close(&e);
}

#define OWN 300

struct own {
	int n;	  /* objects that there are */
	int fail; /* the one that cannot be had, or -1 */
	int size; /* octets of each */
};

static int write_own_watch_e2e(void *user, uint32_t n, char *to, size_t size)
{
	const struct own *o = user;
	int len;

	if ((int)n == o->fail)
		return -1;
	if ((int)n >= o->n)
		return 0;
	len = snprintf(to, size, "{\"n\":%u,\"pad\":\"", n);
	while (len < o->size - 2)
		to[len++] = 'x';
	return len + snprintf(to + len, size - (size_t)len, "\"}");
}

/* Objects as long as may be, more than the answer's buffer takes; then one that is not available. */
Test(watch, a_program_shows_something_of_its_own)
{
	struct own own = { OWN, -1, 1023 };
	struct ddps_ctx *ctx = new_watch_e2e_ctx();
	struct ddps_watch *w;
	const json_t *v;
	json_t *o;
	size_t i;

	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, dir), 0);
	cr_expect_eq(ddps_watch_add(w, "Capital", write_own_watch_e2e, &own), DDPS_E_INVAL);
	cr_expect_eq(ddps_watch_add(w, "", write_own_watch_e2e, &own), DDPS_E_INVAL);
	cr_expect_eq(ddps_watch_add(w, NULL, write_own_watch_e2e, &own), DDPS_E_INVAL);
	cr_expect_eq(ddps_watch_add(w, "a_name_that_is_too_long_by_one_o", write_own_watch_e2e,
				    &own),
		     DDPS_E_INVAL);
	cr_expect_eq(ddps_watch_add(w, "mine", NULL, &own), DDPS_E_INVAL);
	cr_expect_eq(ddps_watch_add(NULL, "mine", write_own_watch_e2e, &own), 0, "switched off");
	o = ask_watch_e2e(path);
	cr_expect_null(json_object_get(o, "mine"));
	json_decref(o);
	cr_assert_eq(ddps_watch_add(w, "mine", write_own_watch_e2e, &own), 0);
	o = ask_watch_e2e(path);
	cr_assert(o);
	cr_expect_eq(json_array_size(json_object_get(o, "mine")), OWN);
	json_array_foreach(json_object_get(o, "mine"), i, v)
		cr_assert_eq(get_watch_e2e_number(v, "n"), (json_int_t)i);
	cr_expect(json_object_get(o, "context"));
	json_decref(o);
	own.fail = 2;
	o = ask_watch_e2e(path);
	cr_assert(o);
	cr_expect_eq(json_array_size(json_object_get(o, "mine")), 2);
	cr_expect(json_is_true(json_object_get(o, "stuck")));
	json_decref(o);
	ddps_watch_close(w);
	ddps_ctx_free(ctx);
}

static struct ddps_ep *idle(struct ddps_ctx *ctx, struct ddps_pd *pd, struct ddps_cq *cq)
{
	struct ddps_ep_attr attr;
	struct ddps_ep *ep;

	ddps_ep_attr_init(&attr);
	attr.pd = pd;
	attr.send_cq = attr.recv_cq = cq;
	attr.rq_depth = 1;
	cr_assert_eq(ddps_ep_new(ctx, &attr, &ep), 0);
	return ep;
}

/* Endpoints that met a limit once each, so that a sum shows how many were counted. */
static struct ddps_ctx *many(struct ddps_ep *ep[MANY])
{
	struct ddps_ctx *ctx = new_watch_e2e_ctx();
	struct ddps_pd *pd;
	struct ddps_cq *cq;

	cr_assert_eq(ddps_pd_new(ctx, &pd), 0);
	cr_assert_eq(ddps_cq_new(ctx, 16, &cq), 0);
	for (int i = 0; i < MANY; i++) {
		ep[i] = idle(ctx, pd, cq);
		cr_assert_eq(ddps_post_recv(ep[i], 1, NULL, 0), 0);
		cr_assert_eq(ddps_post_recv(ep[i], 2, NULL, 0), DDPS_E_LIMIT);
	}
	return ctx;
}

Test(watch, many_sessions_are_reported_once_each)
{
	static bool seen[MANY + 1];
	struct ddps_ep *ep[MANY];
	struct ddps_ctx *ctx = many(ep);
	struct ddps_watch *w;
	const json_t *s;
	json_t *o;
	size_t i;

	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, dir), 0);
	o = ask_watch_e2e(path);
	cr_assert(o);
	json_array_foreach(json_object_get(o, "sessions"), i, s)
	{
		json_int_t n = get_watch_e2e_number(s, "session");

		cr_assert(n >= 1 && n <= MANY && !seen[n], "%d", (int)n);
		seen[n] = true;
	}
	cr_expect_eq(i, MANY);
	cr_expect_eq(get_watch_e2e_number(json_object_get(o, "context"), "rq_full"), MANY);
	json_decref(o);
	ddps_watch_close(w);
	ddps_ctx_free(ctx);
}

/* The client takes a part of the answer and stops, so that a walk is under way when endpoints of
 * both kinds go, those it has been at and those it has not; nobody waits for it, and no counter goes
 * back. */
Test(watch, a_client_that_does_not_read_holds_nobody_up)
{
	struct ddps_ep *ep[MANY];
	struct ddps_ctx *ctx = many(ep);
	char buf[4096];
	struct ddps_watch *w;
	FILE *f;
	json_t *o;
	int fd;

	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, dir), 0);
	fd = dial_watch_e2e(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(recv(fd, buf, 1, MSG_PEEK), 1);
	for (int i = 0; i < MANY; i++)
		ddps_ep_free(ep[i]); /* would hang if the thread held the lock */
	f = fdopen(fd, "r");
	o = json_loadf(f, 0, NULL);
	cr_assert(o, "the rest comes to a client that goes on reading");
	cr_expect_eq(get_watch_e2e_number(json_object_get(o, "context"), "rq_full"), MANY,
		     "what went in the midst of the walk was counted, once");
	json_decref(o);
	fclose(f);
	fd = dial_watch_e2e(path); /* never reads */
	o = ask_watch_e2e(path);
	cr_assert(o, "the next one is answered");
	cr_expect_eq(json_array_size(json_object_get(o, "sessions")), 0);
	json_decref(o);
	close(fd);
	ddps_watch_close(w);
	ddps_ctx_free(ctx);
}

/* An answer is given up when the watch is closed. */
Test(watch, closing_does_not_wait_for_a_client)
{
	struct ddps_ep *ep[MANY];
	struct ddps_ctx *ctx = many(ep);
	struct ddps_watch *w;
	json_t *o;
	FILE *f;
	char c;
	int fd;

	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, dir), 0);
	fd = dial_watch_e2e(path);
	cr_assert_eq(recv(fd, &c, 1, MSG_PEEK), 1);
	ddps_watch_close(w);
	f = fdopen(fd, "r");
	o = json_loadf(f, 0, NULL);
	cr_expect_null(o, "what it had not taken by then does not come");
	fclose(f);
	ddps_ctx_free(ctx);
}

Test(watch, only_its_owner_may_look)
{
	struct ddps_ctx *ctx = new_watch_e2e_ctx();
	struct ddps_watch *w;
	struct stat st;
	int status;
	pid_t child;

	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, dir), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0600, "%o", st.st_mode);
	/* However wide an administrator opens the doors: another user gets no octet. */
	cr_assert_eq(chmod(path, 0666) | chmod(dir, 0755), 0);
	if (geteuid() == 0) {
		child = fork();
		if (!child) {
			char c;
			int fd = setuid(65534) ? -1 : dial_watch_e2e(path);

			leave_child_fixture(fd < 0 ? 1 : read(fd, &c, 1) == 0 ? 0 : 2);
		}
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_expect_eq(status, 0);
	}
	ddps_watch_close(w);
	ddps_ctx_free(ctx);
}

Test(watch, directories_that_others_may_write_to_are_refused)
{
	struct ddps_ctx *ctx = new_watch_e2e_ctx();
	char link[80], longer[200];
	struct ddps_watch *w;

	memset(longer, 'x', sizeof longer);
	longer[0] = '/';
	longer[sizeof longer - 1] = 0;
	cr_assert_eq(chmod(dir, 0777), 0);
	cr_expect_eq(ddps_watch_open(&w, ctx, NULL, dir), DDPS_E_ACCESS);
	cr_expect_null(w);
	cr_assert_eq(chmod(dir, 0700), 0);
	snprintf(link, sizeof link, "%s.link", dir);
	cr_assert_eq(symlink(dir, link), 0);
	cr_expect_eq(ddps_watch_open(&w, ctx, NULL, link), DDPS_E_ACCESS, "a link may be moved");
	unlink(link);
	cr_expect_eq(ddps_watch_open(&w, ctx, NULL, "relative"), DDPS_E_INVAL);
	cr_expect_eq(ddps_watch_open(&w, ctx, NULL, longer), DDPS_E_INVAL);
	cr_expect_eq(ddps_watch_open(&w, ctx, NULL, "/nowhere/at/all"), DDPS_E_SYSTEM);
	cr_expect_eq(errno, ENOENT);
	cr_expect_eq(ddps_watch_open(NULL, ctx, NULL, dir), DDPS_E_INVAL);
	cr_expect_eq(ddps_watch_open(&w, ctx, NULL, "off"), 0);
	cr_expect_null(w, "switched off");
	ddps_watch_close(w);
	setenv("DDPSESS_WATCH", "off", 1);
	cr_expect_eq(ddps_watch_open(&w, ctx, NULL, NULL), 0);
	cr_expect_null(w);
	setenv("DDPSESS_WATCH", dir, 1);
	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, NULL), 0);
	cr_expect_eq(access(path, F_OK), 0);
	ddps_watch_close(w);
	ddps_ctx_free(ctx);
}

Test(watch, contexts_have_numbers)
{
	struct ddps_ctx *one = new_watch_e2e_ctx(), *two = new_watch_e2e_ctx();
	struct ddps_watch *w1, *w2, *w3;
	char second[96];

	snprintf(second, sizeof second, "%s/%d.2", dir, (int)getpid());
	cr_assert_eq(ddps_watch_open(&w1, one, NULL, dir), 0);
	cr_expect_eq(ddps_watch_open(&w3, one, NULL, dir), DDPS_E_BUSY);
	cr_assert_eq(ddps_watch_open(&w2, two, NULL, dir), 0);
	cr_expect_eq(access(path, F_OK), 0);
	cr_expect_eq(access(second, F_OK), 0);
	ddps_watch_close(w1);
	cr_expect_eq(access(second, F_OK), 0, "the other's stays");
	cr_assert_eq(ddps_watch_open(&w1, one, NULL, dir), 0, "after that it may be watched again");
	ddps_watch_close(w1);
	ddps_watch_close(w2);
	ddps_ctx_free(one);
	ddps_ctx_free(two);
}

/* What a process that was killed has left, and a file that is none of ours. */
Test(watch, sockets_of_dead_processes_are_removed)
{
	struct ddps_ctx *ctx = new_watch_e2e_ctx();
	char left[96], other[96];
	struct ddps_watch *w;
	pid_t child = fork();
	json_t *o;
	int status;

	if (!child) {
		struct ddps_ctx *own = new_watch_e2e_ctx();

		leave_child_fixture(ddps_watch_open(&w, own, NULL, dir) ? 1 : 0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	snprintf(left, sizeof left, "%s/%d.1", dir, (int)child);
	snprintf(other, sizeof other, "%s/notes", dir);
	cr_assert_eq(access(left, F_OK), 0);
	cr_assert_eq(dial_watch_e2e(left), -1);
	close(creat(other, 0600));
	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, dir), 0);
	o = ask_watch_e2e(path); /* the thread has swept before it answers */
	cr_assert(o);
	json_decref(o);
	cr_expect_eq(access(left, F_OK), -1);
	cr_expect_eq(unlink(other), 0, "it is still there");
	ddps_watch_close(w);
	ddps_ctx_free(ctx);
}

/* The parent's socket is the parent's: the child neither keeps it open nor removes it. */
Test(watch, a_fork_does_not_keep_it_open)
{
	struct ddps_ctx *ctx = new_watch_e2e_ctx();
	struct ddps_watch *w, *mine;
	int up[2], down[2], status;
	char kept[80], c = 0;
	pid_t child;

	cr_assert_eq(pipe(up) | pipe(down), 0);
	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, dir), 0);
	child = fork();
	if (!child) {
		bool bad = ddps_watch_open(&mine, ctx, NULL, dir) != DDPS_E_FORKED;

		ddps_watch_close(w);
		close(down[1]);
		bad |= access(path, F_OK) != 0 || write(up[1], &c, 1) != 1;
		leave_child_fixture(bad || read(down[0], &c, 1) != 1);
	}
	close(up[1]);
	cr_assert_eq(read(up[0], &c, 1), 1);
	snprintf(kept, sizeof kept, "%s/kept", dir);
	cr_assert_eq(rename(path, kept), 0);
	ddps_watch_close(w);
	cr_expect_eq(dial_watch_e2e(kept), -1, "nobody has it open, nor has the child");
	unlink(kept);
	cr_assert_eq(write(down[1], &c, 1), 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
	ddps_ctx_free(ctx);
}

/* As programs do that want a clean beginning. */
Test(watch, closing_it_after_the_program_has_closed_everything)
{
	struct ddps_watch *w;
	int status;
	pid_t child;

	child = fork();
	if (!child) {
		struct ddps_ctx *own = new_watch_e2e_ctx();

		if (ddps_watch_open(&w, own, NULL, dir))
			leave_child_fixture(1);
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
		alarm(20);
		ddps_watch_close(w);
		leave_child_fixture(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "%x", status);
	snprintf(path, sizeof path, "%s/%d.1", dir, (int)child);
	unlink(path);
}
