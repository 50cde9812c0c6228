/* SPDX-License-Identifier: BSD-2-Clause */
/* The set-up and the ends of an association of the tester's, and whose a packet is. */
#include "unit/conform/conform_packet_fixture.h"
#include "unit/sys_fixture.h"
#include <errno.h>

/* ---- the set-up ---- */

/* RFC 9260 3.3.3: such an INIT ACK is no answer. */
Test(conform_packet, init_acks_that_are_none)
{
	static const struct {
		const char *what;
		uint32_t tag;
		uint16_t out, max_in, type, param; /* its length field */
		size_t len;
	} row[] = {
		{ "too short", TAG, 1, 1, 0, 0, 12 },
		{ "no tag", 0, 1, 1, COOKIE, 8, 24 },
		{ "no streams out", TAG, 0, 1, COOKIE, 8, 24 },
		{ "no streams in", TAG, 1, 0, COOKIE, 8, 24 },
		{ "no parameter", TAG, 1, 1, 0, 0, 16 },
		{ "half a parameter's header", TAG, 1, 1, 0, 0, 18 },
		{ "a parameter shorter than its header", TAG, 1, 1, COOKIE, 3, 24 },
		{ "a parameter longer than the chunk", TAG, 1, 1, COOKIE, 9, 24 },
		{ "no cookie", TAG, 1, 1, UNKNOWN, 8, 24 },
		{ "a cookie beyond bounds", TAG, 1, 1, COOKIE, CF_COOKIE_MAX + 5,
		  4 + 16 + CF_COOKIE_MAX + 4 },
	};
	static uint8_t b[16 + 8 + CF_COOKIE_MAX];

	dial_conform_packet(AF_INET);
	cr_expect_eq(read_tester_chunk(), CF_C_INIT);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		init_fields(b, row[i].tag, row[i].out, row[i].max_in);
		cf_put16(b + 16, row[i].type);
		cf_put16(b + 18, row[i].param);
		bring_chunk_to_tester(CF_C_INIT_ACK, 0, b, row[i].len);
		cr_expect_eq(l->state, CF_L_INIT_SENT, "%s", row[i].what);
		cr_expect_eq(read_tester_chunk(), -1, "%s", row[i].what);
	}
	take_conform_packet_down();
}

Test(conform_packet, a_cookie_behind_other_parameters)
{
	uint8_t b[16 + 8 + 8] = { 0 };

	dial_conform_packet(AF_INET6);
	cr_expect_eq(read_tester_chunk(), CF_C_INIT);
	init_fields(b, TAG, 1, 1);
	cf_put16(b + 16, UNKNOWN);
	cf_put16(b + 18, 5); /* and three octets of padding */
	cf_put16(b + 24, COOKIE);
	cf_put16(b + 26, 7);
	bring_chunk_to_tester(CF_C_INIT_ACK, 0, b, 16 + 8 + 7);
	cr_expect_eq(read_tester_chunk(), CF_C_COOKIE_ECHO);
	cr_expect_eq(cf_get16(said.b + HEADER + 2), 7);
	take_conform_packet_down();
}

/* ---- it waits ---- */

static struct sockaddr_storage asks_from;

static void listen_as_tester(void)
{
	struct cf_at at = socket_at(AF_INET);
	socklen_t len = sizeof asks_from;
	char uri[160];

	new_net();
	cr_assert_eq(net.carrier->listen(&net, &at, uri, sizeof uri), 0);
	target = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(target, (struct sockaddr *)&at.ss, at.len), 0);
	cr_assert_eq(getsockname(target, (struct sockaddr *)&asks_from, &len), 0);
	l = NULL;
}

/* The n-th target asks, from a port of its own. */
static void ask_as_nth_target(unsigned n, const uint8_t *init, size_t len)
{
	begin_tester_packet(0);
	cf_put16(in.b, (uint16_t)(SCTP_OWN + n));
	cf_put16(in.b + 2, get_tester_carrier()->port);
	put_conform_packet_chunk(CF_C_INIT, 0, init, len);
	cf_put32(in.b + 8, cf_pkt_sum(in.b, in.len));
	cf_pkt_in(&net, get_tester_carrier()->listen_fd, &asks_from, sizeof(struct sockaddr_in),
		  in.b, in.len);
}

static unsigned invited(void)
{
	unsigned n = 0;

	for (const struct cf_link *i = get_tester_carrier()->links; i; i = i->next)
		n += i->state == CF_L_INVITED;
	return n;
}

Test(conform_packet, the_oldest_of_many_inits_makes_room)
{
	uint8_t b[16];

	listen_as_tester();
	for (unsigned n = 0; n < 18; n++) {
		init_fields(b, TAG, 1, 1); /* the same tag from other ports: other associations */
		ask_as_nth_target(n, b, sizeof b);
		cr_expect_eq(read_tester_chunk(), CF_C_INIT_ACK, "%u", n);
		cr_expect_eq(cf_get16(said.b + 2), SCTP_OWN + n);
		cr_expect_eq(invited(), n < 16 ? n + 1 : 16);
	}
	ask_as_nth_target(0, b, sizeof b);
	cr_expect_eq(read_tester_chunk(), -1, "that one is over");
	ask_as_nth_target(17, b, sizeof b);
	cr_expect_eq(read_tester_chunk(), CF_C_INIT_ACK, "once more the same answer");
	take_conform_packet_down();
}

Test(conform_packet, inits_that_are_none)
{
	uint8_t b[16];

	listen_as_tester();
	init_fields(b, TAG, 1, 1);
	ask_as_nth_target(1, b, 0);
	ask_as_nth_target(2, b, 8);
	cr_expect_eq(read_tester_chunk(), -1);
	mem_fail(1);
	ask_as_nth_target(3, b, sizeof b);
	cr_expect(mem_failed());
	cr_expect_eq(read_tester_chunk(), -1);
	ask_as_nth_target(3, b, sizeof b);
	cr_expect_eq(read_tester_chunk(), CF_C_INIT_ACK, "there is memory again");
	ask_as_nth_target(3, b, 0);
	cr_expect_eq(read_tester_chunk(), -1);
	/* for another port, with a tag, of a wrong length */
	cf_put16(in.b + 2, (uint16_t)(get_tester_carrier()->port ^ 1));
	comes_on(get_tester_carrier()->listen_fd);
	ask_as_nth_target(4, b, sizeof b);
	cr_expect_eq(read_tester_chunk(), CF_C_INIT_ACK);
	cf_put32(in.b + 4, 1);
	comes_on(get_tester_carrier()->listen_fd);
	begin_tester_packet(0);
	cf_put16(in.b + 2, get_tester_carrier()->port);
	put_conform_packet_chunk(CF_C_INIT, 0, b, sizeof b);
	cf_put16(in.b + HEADER + 2, 3);
	comes_on(get_tester_carrier()->listen_fd);
	cf_put16(in.b + HEADER + 2, 4 + sizeof b + 1);
	comes_on(get_tester_carrier()->listen_fd);
	cr_expect_eq(read_tester_chunk(), -1);
	take_conform_packet_down();
}

Test(conform_packet, an_invitation_is_taken_with_its_cookie_by_whom_somebody_waits_for)
{
	uint8_t b[16], cookie[16];

	listen_as_tester();
	init_fields(b, TAG, 1, 1);
	ask_as_nth_target(0, b, sizeof b);
	cr_expect_eq(read_tester_chunk(), CF_C_INIT_ACK);
	l = get_tester_carrier()->links;
	memcpy(cookie, l->cookie, sizeof cookie);
	bring_chunk_to_tester(CF_C_COOKIE_ECHO, 0, cookie, sizeof cookie);
	cr_expect_eq(read_tester_chunk(), -1, "nobody waits");
	net.waiting = &as;
	bring_chunk_to_tester(CF_C_COOKIE_ECHO, 0, cookie, sizeof cookie - 1);
	cookie[3] ^= 1;
	bring_chunk_to_tester(CF_C_COOKIE_ECHO, 0, cookie, sizeof cookie);
	cr_expect_eq(read_tester_chunk(), -1, "not its cookie");
	cookie[3] ^= 1;
	cr_expect(!as.up);
	l->to = asks_from; /* packets of bring_chunk_to_tester() have no address */
	begin_tester_packet(l->tag);
	put_conform_packet_chunk(CF_C_COOKIE_ECHO, 0, cookie, sizeof cookie);
	cf_put32(in.b + 8, cf_pkt_sum(in.b, in.len));
	cf_pkt_in(&net, l->fd, &asks_from, sizeof(struct sockaddr_in), in.b, in.len);
	cr_expect_eq(read_tester_chunk(), CF_C_COOKIE_ACK);
	cr_expect(as.up);
	ask_as_nth_target(0, b, sizeof b);
	cr_expect_eq(read_tester_chunk(), -1, "an INIT of what is there");
	take_conform_packet_down();
}

/* ---- whose a packet is ---- */

Test(conform_packet, packets_of_others_are_not_answered)
{
	set_conform_packet_up();
	for (unsigned i = 0; i < 5; i++) {
		begin_tester_packet(l->tag);
		put_conform_packet_chunk(CF_C_HEARTBEAT, 0, "abcd", 4);
		if (i == 1)
			in.b[1] ^= 1;
		if (i == 2)
			in.b[3] ^= 1;
		if (i == 3)
			in.b[7] ^= 1;
		comes_on(i == 4 ? target : l->fd);
		cr_expect_eq(read_tester_chunk(), i ? -1 : CF_C_HEARTBEAT_ACK, "%u", i);
	}
	/* a checksum that is wrong */
	begin_tester_packet(l->tag);
	put_conform_packet_chunk(CF_C_HEARTBEAT, 0, "abcd", 4);
	cf_put32(in.b + 8, cf_pkt_sum(in.b, in.len) ^ 1);
	cf_pkt_in(&net, l->fd, &l->to, l->to_len, in.b, in.len);
	cr_expect_eq(read_tester_chunk(), -1);
	/* with its own tag back only what may carry it */
	begin_tester_packet(TAG);
	put_conform_packet_chunk(CF_C_HEARTBEAT, 1, "abcd", 4);
	comes_on(l->fd);
	cr_expect_eq(read_tester_chunk(), -1);
	begin_tester_packet(TAG);
	put_conform_packet_chunk(CF_C_ABORT, 1, "", 0);
	comes_on(l->fd);
	cr_expect(as.gone);
	take_conform_packet_down();
}

/* On IPv4 a raw socket gives the IP header, too; on IPv6 it does not. */
Test(conform_packet, raw_sockets)
{
	struct sockaddr_storage from = { .ss_family = AF_INET };
	uint8_t b[200] = { 0x46 };

	set_conform_packet_up();
	get_tester_carrier()->raw = true;
	begin_tester_packet(l->tag);
	put_conform_packet_chunk(CF_C_HEARTBEAT, 0, "abcd", 4);
	cf_put32(in.b + 8, cf_pkt_sum(in.b, in.len));
	memcpy(b + 24, in.b, in.len);
	cf_pkt_in(&net, l->fd, &from, sizeof from, b, 0);
	cf_pkt_in(&net, l->fd, &from, sizeof from, b, 23);
	cf_pkt_in(&net, l->fd, &from, sizeof from, b, 24);
	cr_expect_eq(read_tester_chunk(), -1);
	cf_pkt_in(&net, l->fd, &from, sizeof from, b, 24 + in.len);
	cr_expect_eq(read_tester_chunk(), CF_C_HEARTBEAT_ACK);
	from.ss_family = AF_INET6;
	comes_on(l->fd);
	cr_expect_eq(read_tester_chunk(), -1, "no IPv4 header there");
	cf_put32(in.b + 8, cf_pkt_sum(in.b, in.len));
	cf_pkt_in(&net, l->fd, &from, sizeof from, in.b, in.len);
	cr_expect_eq(read_tester_chunk(), CF_C_HEARTBEAT_ACK);
	take_conform_packet_down();
}

/* ---- ends ---- */

Test(conform_packet, aborts)
{
	uint8_t b[16];

	set_conform_packet_up();
	begin_tester_packet(l->tag);
	put_conform_packet_chunk(CF_C_ABORT, 0, "\0\14\0\4", 4);
	put_conform_packet_chunk(CF_C_HEARTBEAT, 0, "abcd", 4);
	comes_on(l->fd);
	cr_expect_str_eq(as.end, "the target sent ABORT, cause 12");
	cr_expect_eq(read_tester_chunk(), -1, "what is behind it is not looked at");
	bring_chunk_to_tester(CF_C_ABORT, 0, b, 0);
	cr_expect_str_eq(as.end, "the target sent ABORT, cause 12", "the first end is the end");
	take_conform_packet_down();
	listen_as_tester();
	init_fields(b, TAG, 1, 1);
	ask_as_nth_target(0, b, sizeof b);
	cr_expect_eq(invited(), 1);
	l = get_tester_carrier()->links;
	bring_chunk_to_tester(CF_C_ABORT, 0, b, 0);
	cr_expect_eq(invited(), 0);
	cr_expect(!as.gone, "nobody's");
	take_conform_packet_down();
}

Test(conform_packet, an_abort_without_a_cause)
{
	set_conform_packet_up();
	bring_chunk_to_tester(CF_C_ABORT, 0, "", 0);
	cr_expect_str_eq(as.end, "the target sent ABORT");
	take_conform_packet_down();
}

Test(conform_packet, shutdowns_that_are_none)
{
	uint8_t cum[4];

	dial_conform_packet(AF_INET);
	cr_expect_eq(read_tester_chunk(), CF_C_INIT);
	cf_put32(cum, l->tsn - 1);
	bring_chunk_to_tester(CF_C_SHUTDOWN, 0, cum, 4);
	cr_expect_eq(read_tester_chunk(), -1, "nothing to end");
	take_conform_packet_down();
	set_conform_packet_up();
	bring_chunk_to_tester(CF_C_SHUTDOWN, 0, cum, 3);
	bring_chunk_to_tester(CF_C_SHUTDOWN_ACK, 0, cum, 0);
	bring_chunk_to_tester(CF_C_SHUTDOWN_COMPLETE, 0, cum, 0);
	cr_expect_eq(read_tester_chunk(), -1);
	cr_expect(!as.gone);
	take_conform_packet_down();
}

/* Both ends simultaneously (RFC 9260 section 9.2), and the target's end. */
Test(conform_packet, shutdowns)
{
	for (unsigned i = 0; i < 2; i++) {
		uint8_t cum[4];

		set_conform_packet_up();
		cf_put32(cum, l->tsn - 1);
		bring_chunk_to_tester(CF_C_SHUTDOWN, 0, cum, 4);
		cr_expect_eq(read_tester_chunk(), CF_C_SHUTDOWN_ACK);
		net.carrier->shutdown(&as);
		cr_expect_eq(l->state, CF_L_SHUTDOWN_ACK_SENT, "it is under way");
		cr_expect(!as.gone);
		bring_chunk_to_tester(i ? CF_C_SHUTDOWN_ACK : CF_C_SHUTDOWN_COMPLETE, 0, cum, 0);
		cr_expect_eq(read_tester_chunk(), i ? CF_C_SHUTDOWN_COMPLETE : -1);
		cr_expect_str_eq(as.end, "an orderly SHUTDOWN");
		take_conform_packet_down();
	}
}

/* ---- sockets ---- */

Test(conform_packet, without_sockets_there_is_no_association)
{
	struct cf_at at = socket_at(AF_INET);
	char uri[160];

	new_net();
	at.encap = CF_ENCAP_OFF; /* raw ones, which not everybody may open */
	sys_fail("socket", 0, 2, EPERM);
	cr_expect_eq(net.carrier->dial(&as, &at), EPERM);
	cr_expect_eq(net.carrier->listen(&net, &at, uri, sizeof uri), EPERM);
	cr_expect_eq(sys_failed(), 2);
	cr_expect(get_tester_carrier()->raw);
	sys_fail(NULL, 0, 0, 0);
	net.carrier->close(&net);
	net.below = NULL;
	mem_fail(1);
	cr_expect_eq(net.carrier->dial(&as, &at), ENOMEM);
	mem_fail(1);
	cr_expect_eq(net.carrier->listen(&net, &at, uri, sizeof uri), ENOMEM);
	mem_fail(0);
	take_conform_packet_down();
}

Test(conform_packet, more_links_than_can_be_polled_for)
{
	struct pollfd p[3];
	struct cf_at at;
	struct cf_assoc more[3];

	dial_conform_packet(AF_INET);
	at = socket_at(AF_INET);
	at.encap = CF_ENCAP_DEFAULT; /* nothing is sent to it */
	for (unsigned i = 0; i < 3; i++) {
		more[i] = (struct cf_assoc){ .net = &net };
		cr_assert_eq(cf_link_open(&more[i], &at), 0);
	}
	cr_expect_eq(net.carrier->fds(&net, p, 3), 3);
	for (unsigned i = 0; i < 3; i++)
		net.carrier->abort(&more[i]);
	cr_expect_eq(net.carrier->fds(&net, p, 3), 1, "those that are over are left out");
	cr_expect_eq(p[0].fd, l->fd);
	l->due = 0; /* its timer has run out */
	cr_expect_eq(read_tester_chunk(), CF_C_INIT);
	net.carrier->step(&net);
	cr_expect_eq(read_tester_chunk(), CF_C_INIT);
	cr_expect_gt(l->due, 0);
	take_conform_packet_down();
}

/* ---- DATA that comes to the tester, in any order, and SACKs in either direction ---- */

/* ---- SACKs that come, and those that go ---- */

Test(conform_packet_data, sacks_that_are_none)
{
	uint8_t b[16] = { 0 };

	set_conform_packet_up();
	cr_expect(net.carrier->send(&as, 1, PPID_SEGMENT, "abcd", 4));
	cr_expect_eq(read_tester_chunk(), CF_C_DATA);
	cf_put32(b, l->tsn - 1);
	bring_chunk_to_tester(CF_C_SACK, 0, b, 8);
	cr_expect_not_null(l->out);
	cf_put16(b + 8, 2); /* gaps, and room for one */
	bring_chunk_to_tester(CF_C_SACK, 0, b, 16);
	cr_expect_not_null(l->out);
	cf_put16(b + 8, 0);
	bring_chunk_to_tester(CF_C_SACK, 0, b, 12);
	cr_expect_null(l->out);
	take_conform_packet_down();
}

Test(conform_packet_data, a_sack_has_at_most_256_gaps)
{
	set_conform_packet_up();
	bring_chunk_to_tester(CF_C_DATA, F_WHOLE, "abcdefgh", 8); /* too short */
	for (unsigned i = 1; i <= 300; i++) {
		comes_data(TSN + 2 * i, F_WHOLE, 4);
		cr_expect_eq(read_tester_sack(TSN - 1), i < 256 ? i : 256);
	}
	comes_data(TSN + 5000, F_WHOLE, 4);
	cr_expect_eq(read_tester_sack(TSN - 1), 256, "too far ahead to be kept");
	comes_data(TSN, F_WHOLE, 4);
	cr_expect_eq(read_tester_sack(TSN), 256);
	comes_data(TSN + 1, F_WHOLE, 4);
	cr_expect_eq(read_tester_sack(TSN + 2), 256);
	take_conform_packet_down();
}

Test(conform_packet_data, a_gap_of_two_chunks)
{
	set_conform_packet_up();
	comes_data(TSN + 4, F_WHOLE, 4);
	cr_expect_eq(read_tester_sack(TSN - 1), 1);
	comes_data(TSN + 5, F_WHOLE, 4);
	cr_expect_eq(read_tester_sack(TSN - 1), 1);
	cr_expect_eq(cf_get32(said.b + HEADER + 16), 5u << 16 | 6);
	take_conform_packet_down();
}

/* What a case does not read shuts the window, and is not thrown away. */
Test(conform_packet_data, a_window_that_is_shut)
{
	set_conform_packet_up();
	as.held = CF_RWND;
	comes_data(TSN, F_WHOLE, 4);
	cr_expect_eq(read_tester_sack(TSN), 0);
	cr_expect_eq(cf_get32(said.b + HEADER + 8), 0);
	as.held = 4u << 20;
	comes_data(TSN + 1, F_WHOLE, 4);
	cr_expect_eq(read_tester_sack(TSN), 0, "no room at all");
	as.held = 4;
	cf_link_reopen(l);
	cr_expect_eq(read_tester_sack(TSN), 0);
	cr_expect_eq(cf_get32(said.b + HEADER + 8), CF_RWND - 4);
	take_conform_packet_down();
}

/* What finds no memory as a chunk comes again; as a message it is missed, and the case says so. */
Test(conform_packet_data, data_without_memory)
{
	set_conform_packet_up();
	for (unsigned n = 1; n <= 2; n++) {
		mem_fail(n);
		comes_data(TSN, F_WHOLE, 4);
		cr_expect(mem_failed(), "%u", n);
		cr_expect_eq(read_tester_sack(n == 1 ? TSN - 1 : TSN), 0);
		cr_expect_null(as.first);
	}
	take_conform_packet_down();
}

/* Pieces in any order; one longer than anything that may come is not heard. */
Test(conform_packet_data, messages_of_many_pieces)
{
	set_conform_packet_up();
	comes_data(TSN + 2, 4 | 1, 3);
	comes_data(TSN, 4 | 2, 5);
	cr_expect_null(as.first);
	comes_data(TSN + 1, 4, 2);
	cr_assert_not_null(as.first);
	cr_expect_eq(as.first->m.len, 10);
	cr_expect(as.first->m.unordered);
	cr_expect_null(as.first->next);
	for (unsigned i = 0; i <= CF_MAX / 2000; i++)
		comes_data(TSN + 3 + i, i ? 4 : 4 | 2, 2000);
	comes_data(TSN + 4 + CF_MAX / 2000, 4 | 1, 2000);
	cr_expect_null(as.first->next);
	comes_data(TSN + 5 + CF_MAX / 2000, F_WHOLE, 7);
	cr_assert_not_null(as.first->next);
	cr_expect_eq(as.first->next->m.len, 7);
	cr_expect_null(l->in);
	take_conform_packet_down();
}

Test(conform_packet_data, what_a_case_cannot_hear)
{
	static uint8_t b[CF_MAX + 1];

	set_conform_packet_up();
	cf_sctp_heard(&as, 0, 0, true, b, sizeof b);
	mem_fail(1);
	cf_sctp_heard(&as, 0, 0, true, b, 1);
	mem_fail(0);
	cr_expect_null(as.first);
	cf_sctp_heard(&as, 0, 0, true, b, sizeof b - 1);
	cr_assert_not_null(as.first);
	cr_expect_eq(as.first->m.len, CF_MAX);
	take_conform_packet_down();
}
