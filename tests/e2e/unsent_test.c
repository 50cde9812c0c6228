/* SPDX-License-Identifier: BSD-2-Clause */
/* The first FPDU is wrong: the session ends, and no Terminate may leave. */
#include "support/e2e.h"
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* An initiator by hand, of MPA revision 1 with CRCs. */
static int dial_unsent_e2e(const char *uri)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)atoi(strrchr(uri, ':') + 1)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	static const char request[] = "MPA ID Req Frame\x40\1\0";
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	cr_assert_eq(send(fd, request, sizeof request, 0), (ssize_t)sizeof request);
	return fd;
}

/* Octets until the peer's FIN, while the context is served. */
static size_t receive_unsent_e2e(struct e2e *e, int fd, uint8_t *to, size_t least, size_t room)
{
	size_t n = 0;
	ssize_t k = 1;

	while (n < least || (!least && k)) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		cr_assert_geq(ddps_progress(e->ctx, 0), 0);
		if (poll(&p, 1, 1) != 1)
			continue;
		k = recv(fd, to + n, room - n, 0);
		cr_assert_geq(k, 0);
		n += (size_t)k;
	}
	return n;
}

Test(unsent, contact_04_a_terminate_that_may_not_leave_is_not_said_to_have_left, .timeout = 60,
     .description = "5044-7.1.2-15")
{
	/* a Send of one octet, and four octets that are no CRC of it */
	static const uint8_t fpdu[] = { 0, 19, 0x41, 0x43, 0, 0, 0,   0, 0, 0, 0, 0, 0, 0,
					0, 1,  0,    0,	   0, 0, 'x', 0, 0, 0, 9, 9, 9, 9 };
	struct ddps_event ev;
	uint8_t got[256];
	struct e2e e;
	int fd;

	e2e_open(&e, e2e_wires[0]);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.b.ep), 0);
	fd = dial_unsent_e2e(e.uri);
	cr_assert_eq(ddps_event_wait(e.ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ev.type, DDPS_EV_CONNECT_REQUEST);
	cr_assert_eq(ddps_accept(ev.request, e.b.ep, NULL), 0);
	cr_assert_eq(receive_unsent_e2e(&e, fd, got, 20, 20), 20); /* the Reply */
	cr_assert_eq(send(fd, fpdu, sizeof fpdu, 0), (ssize_t)sizeof fpdu);
	cr_expect_eq(receive_unsent_e2e(&e, fd, got, 0, sizeof got), 0, "nothing but a FIN");
	close(fd);
	do
		cr_assert_eq(ddps_event_wait(e.ctx, &ev, E2E_MS), 0);
	while (ev.type != DDPS_EV_CLOSED && ev.type != DDPS_EV_FAILED);
	cr_expect_eq(ev.error.code, DDPS_E_TERMINATED, "%s", ev.error.text);
	cr_expect(strstr(ev.error.text, "CRC"), "%s", ev.error.text);
	cr_expect_null(strstr(ev.error.text, "sent"), "%s", ev.error.text);
	e2e_close(&e);
}
