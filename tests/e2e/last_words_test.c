/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that says its last words and ends: they count, though its host says by then that it is gone. */
#include "support/child.h"
#include "support/e2e.h"
#include <poll.h>
#include <string.h>

struct peer {
	pid_t pid;
	int tell[2], hear[2];
	char uri[128];
};

/* Rejects one request when it is asked to, and ends without a word more. */
static _Noreturn void run_last_words_peer(const struct peer *p, const char *wire)
{
	struct ddps_event ev;
	struct e2e e;
	char go;

	e2e_open(&e, wire);
	if (write(p->tell[1], e.uri, sizeof e.uri) != sizeof e.uri)
		leave_child_fixture(1);
	do
		if (ddps_event_wait(e.ctx, &ev, E2E_MS))
			leave_child_fixture(2);
	while (ev.type != DDPS_EV_CONNECT_REQUEST);
	if (write(p->tell[1], "r", 1) != 1 || read(p->hear[0], &go, 1) != 1)
		leave_child_fixture(3);
	if (ddps_reject(ev.request, "last words", 10))
		leave_child_fixture(4);
	for (int i = 0; i < 10; i++)
		ddps_progress(e.ctx, 1);
	leave_child_fixture(0);
}

static void start_last_words_peer(struct peer *p, const char *wire)
{
	if (strstr(wire, "tls:"))
		ddps_secure_close(e2e_secure()); /* both sides have the same */
	cr_assert_eq(pipe(p->tell), 0);
	cr_assert_eq(pipe(p->hear), 0);
	p->pid = fork();
	close(p->pid ? p->tell[1] : p->hear[1]); /* the other's alone: a read ends when it does */
	if (!p->pid)
		run_last_words_peer(p, wire);
	cr_assert_eq(read(p->tell[0], p->uri, sizeof p->uri), sizeof p->uri);
}

/* It rejects and is gone; nobody here has looked at a socket meanwhile. */
static void let_it_end(struct peer *p)
{
	int status = -1;

	cr_assert_eq(write(p->hear[1], "g", 1), 1);
	cr_assert_eq(waitpid(p->pid, &status, 0), p->pid);
	cr_assert_eq(status, 0);
	close(p->tell[0]);
	close(p->hear[0]);
	close(p->hear[1]);
}

E2E_WIRES(last_words, are_heard_before_its_host_says_that_it_is_gone)
{
	struct ddps_ep *first, *second;
	struct pollfd asked;
	struct ddps_event ev;
	struct peer p;
	struct e2e e;

	if (strstr(wire, "://127.0.0.2:"))
		return; /* it is usrsctp that hears there, which has rules of its own */
	start_last_words_peer(&p, wire);
	e2e_open(&e, wire);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &first), 0);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &second), 0);
	cr_assert_eq(ddps_connect(first, p.uri, &e.connect), 0);
	asked = (struct pollfd){ p.tell[0], POLLIN, 0 };
	while (!poll(&asked, 1, 0))
		cr_assert_geq(ddps_progress(e.ctx, 1), 0);
	let_it_end(&p);
	/* Over SCTP this goes to the port that is closed, and brings an ICMP error. */
	cr_assert_eq(ddps_connect(second, p.uri, &e.connect), 0);
	do
		cr_assert_eq(ddps_event_wait(e.ctx, &ev, E2E_MS), 0, "%s", wire);
	while (ev.ep != first);
	cr_expect_eq(ev.type, DDPS_EV_REJECTED, "%s: %s", wire, ev.error.text);
	cr_expect_eq(ev.private_data_len, 10, "%s", wire);
	if (ev.private_data_len == 10)
		cr_expect_arr_eq(ev.private_data, "last words", 10);
	ddps_ep_free(first);
	ddps_ep_free(second);
	e2e_close(&e);
}
