/* SPDX-License-Identifier: BSD-2-Clause */
/* The port of an adapter: what it says of itself, when what it then says is not what was hoped for. */
#include "ib_verbs_fixture.h"

static void bring_port_event(unsigned i, enum ibv_event_type type)
{
	fake_event(i, type, NULL);
	turn_ib_verbs();
}

static void goes_down(unsigned i)
{
	fake[i].port.state = IBV_PORT_DOWN;
	bring_port_event(i, IBV_EVENT_PORT_ERR);
	cr_assert_not(ddps_ib_verbs_info(peer[i].v)->active);
}

/* ---- the port ---- */

Test(ib_verbs_event, what_is_down_goes_down_once, .init = init, .fini = fini)
{
	two_up();
	goes_down(0);
	bring_port_event(0, IBV_EVENT_PORT_ERR);
	cr_expect_eq(count_ib_verbs(0, "port_down"), 1);
	cr_expect_eq(peer[0].n_link, 1);
	cr_expect_eq(ddps_ib_verbs_deadline(peer[0].v), DDPS_CM_NEVER, "nobody is asked");
}

Test(ib_verbs_event, what_is_up_comes_up_once, .init = init, .fini = fini)
{
	two_up();
	bring_port_event(0, IBV_EVENT_PORT_ACTIVE);
	cr_expect_eq(peer[0].n_link, 0);
	cr_expect_eq(count_ib_verbs(0, "renewed"), 0);
}

/* Of what a port says that is down, nothing is taken but that it is up. */
Test(ib_verbs_event, a_port_that_is_down_is_asked_for_nothing, .init = init, .fini = fini)
{
	two_up();
	goes_down(0);
	fake[0].gid.raw[8] ^= 1;
	bring_port_event(0, IBV_EVENT_GID_CHANGE);
	fake[0].gid.raw[8] ^= 1;
	bring_port_event(0, IBV_EVENT_SM_CHANGE);
	bring_port_event(0, IBV_EVENT_CLIENT_REREGISTER);
	cr_expect_eq(peer[0].n_link, 1);
	cr_expect_eq(count_ib_verbs(0, "renewed"), 0);
	bring_port_event(0, IBV_EVENT_PORT_ACTIVE); /* it is not, after all */
	cr_expect_eq(peer[0].n_link, 1);
	fake[0].fail = "query_port";
	bring_port_event(0, IBV_EVENT_PORT_ACTIVE);
	bring_port_event(0, IBV_EVENT_LID_CHANGE);
	fake[0].fail = NULL;
	cr_expect_eq(peer[0].n_link, 1);
	fake[0].port.state = IBV_PORT_ACTIVE;
	bring_port_event(0, IBV_EVENT_LID_CHANGE); /* the same LID, but it is up */
	cr_expect_eq(peer[0].n_link, 2);
	cr_expect(peer[0].link);
	UNTIL(is_ib_verbs_up(0));
}

Test(ib_verbs_event, a_port_that_comes_up_as_another_stays_down, .init = init, .fini = fini)
{
	two_up();
	goes_down(0);
	fake[0].port.state = IBV_PORT_ACTIVE;
	fake[0].gid.raw[8] ^= 1;
	bring_port_event(0, IBV_EVENT_PORT_ACTIVE);
	expect_reason(0, "another GID");
	cr_expect_not(ddps_ib_verbs_info(peer[0].v)->active);
	fake[0].gid.raw[8] ^= 1;
	fake[0].pkey[0] = 0x8001;
	bring_port_event(0, IBV_EVENT_PORT_ACTIVE);
	expect_reason(0, "P_Key 0xffff is not in the table");
	cr_expect_not(ddps_ib_verbs_info(peer[0].v)->active);
	fake[0].pkey[2] = 0xffff; /* another place: the queue pair is to be set up anew */
	fake[0].fail = "modify_qp";
	fake[0].fail_errno = EIO;
	bring_port_event(0, IBV_EVENT_PORT_ACTIVE);
	expect_reason(0, "cannot be reset");
	cr_expect_not(ddps_ib_verbs_info(peer[0].v)->active);
	cr_expect_eq(peer[0].n_link, 1);
	fake[0].fail = NULL;
}

Test(ib_verbs_event, a_gid_that_cannot_be_read_is_another, .init = init, .fini = fini)
{
	uint8_t was[16];

	two_up();
	memcpy(was, ddps_ib_verbs_info(peer[0].v)->gid, 16);
	fake[0].fail = "query_gid";
	bring_port_event(0, IBV_EVENT_GID_CHANGE);
	fake[0].fail = NULL;
	expect_reason(0, "another GID");
	cr_expect_eq(peer[0].n_link, 1);
	cr_expect_not(peer[0].link);
	cr_expect_arr_eq(ddps_ib_verbs_info(peer[0].v)->gid, was, 16);
}

/* Whoever is informed that the link is gone asks why immediately: it is not the cable. */
Test(ib_verbs_event, contact_36_the_reason_comes_before_the_news, .init = init, .fini = fini)
{
	static const struct {
		enum ibv_event_type type;
		const char *why;
	} end[] = { { IBV_EVENT_GID_CHANGE, "another GID" },
		    { IBV_EVENT_PKEY_CHANGE, "P_Key 0xffff is not in the table" },
		    { IBV_EVENT_CQ_ERR, "lost a queue" },
		    { IBV_EVENT_DEVICE_FATAL, "has failed" },
		    { IBV_EVENT_PORT_ERR, "went down" } };

	two_up();
	for (unsigned i = 0; i < sizeof(end) / sizeof(*end); i++) {
		const struct fake was = fake[0];

		peer[0].n_link = 0;
		if (end[i].type == IBV_EVENT_GID_CHANGE)
			fake[0].gid.raw[8] ^= 1;
		if (end[i].type == IBV_EVENT_PKEY_CHANGE)
			fake[0].pkey[0] = 0x8001;
		bring_port_event(0, end[i].type);
		cr_expect_eq(peer[0].n_link, 1);
		cr_expect(strstr(peer[0].link_why, end[i].why), "'%s' is said, not '%s'",
			  peer[0].link_why, end[i].why);
		fake[0].gid = was.gid;
		fake[0].pkey[0] = was.pkey[0];
		bring_port_event(0, IBV_EVENT_PORT_ACTIVE);
		cr_expect_eq(peer[0].n_link, 2);
	}
}

/* Nor is it, where the port goes on as another one. */
Test(ib_verbs_event, contact_36_what_begins_anew_is_not_down, .init = init, .fini = fini)
{
	two_up();
	fake[0].port.lid++;
	bring_port_event(0, IBV_EVENT_LID_CHANGE);
	cr_expect_eq(peer[0].n_link, 2, "down and up");
	cr_expect(strstr(peer[0].link_why, "has another LID"), "%s", peer[0].link_why);
	fake[0].pkey[0] = 0x7fff;
	bring_port_event(0, IBV_EVENT_PKEY_CHANGE);
	cr_expect_eq(peer[0].n_link, 4);
	cr_expect(strstr(peer[0].link_why, "has another P_Key"), "%s", peer[0].link_why);
	fake[0].port.state = IBV_PORT_DOWN;
	fake[0].port.lid++;
	bring_port_event(0, IBV_EVENT_LID_CHANGE);
	cr_expect(strstr(peer[0].link_why, "went down"), "%s", peer[0].link_why);
}

/* Full membership may come or go in the same place of the table. */
Test(ib_verbs_event, a_p_key_that_becomes_limited, .init = init, .fini = fini)
{
	two_up();
	fake[0].pkey[0] = 0x7fff;
	bring_port_event(0, IBV_EVENT_PKEY_CHANGE);
	cr_expect_eq(peer[0].n_link, 2, "down and up");
	cr_expect_eq(ddps_ib_verbs_info(peer[0].v)->pkey, 0x7fff);
	cr_expect_eq(count_ib_verbs(0, "ud_rebuilt"), 0, "its place is the same");
}

Test(ib_verbs_event, a_lid_that_cannot_be_read_is_the_same, .init = init, .fini = fini)
{
	two_up();
	fake[0].fail = "query_port";
	bring_port_event(0, IBV_EVENT_LID_CHANGE);
	fake[0].fail = NULL;
	cr_expect_eq(peer[0].n_link, 0);
	cr_expect_eq(ddps_ib_verbs_info(peer[0].v)->lid, 8);
}

/* When an event is looked at, the state may be that of a later one. */
Test(ib_verbs_event, no_event_hides_that_the_state_is_another, .init = init, .fini = fini)
{
	static const enum ibv_event_type type[] = { IBV_EVENT_LID_CHANGE, IBV_EVENT_SM_CHANGE,
						    IBV_EVENT_CLIENT_REREGISTER };

	two_up();
	for (unsigned i = 0; i < sizeof(type) / sizeof(*type); i++) {
		peer[0].n_link = 0;
		fake[0].port.state = IBV_PORT_INIT;
		bring_port_event(0, type[i]);
		cr_expect_eq(peer[0].n_link, 1, "it is down");
		cr_expect_not(peer[0].link);
		bring_port_event(0, IBV_EVENT_PORT_ERR);
		cr_expect_eq(peer[0].n_link, 1, "and has been said to be");
		fake[0].port.state = IBV_PORT_ACTIVE;
		bring_port_event(0, type[i]);
		cr_expect_eq(peer[0].n_link, 2, "it is up");
		cr_expect(peer[0].link);
		bring_port_event(0, IBV_EVENT_PORT_ACTIVE);
		cr_expect_eq(peer[0].n_link, 2);
		UNTIL(is_ib_verbs_up(0));
	}
	cr_expect_eq(count_ib_verbs(0, "port_down"), sizeof(type) / sizeof(*type));
}

Test(ib_verbs_event, events_of_others_are_nothing, .init = init, .fini = fini)
{
	connect_two_interfaces();
	bring_port_event(0, IBV_EVENT_PORT_ERR);
	fake[0].port.state = IBV_PORT_ACTIVE;
	bring_port_event(0, IBV_EVENT_PORT_ACTIVE);
	UNTIL(is_ib_verbs_up(0));
	peer[0].n_link = 0;
	fake_event(0, IBV_EVENT_PORT_ERR, NULL);
	fake[0].event[fake[0].n_event - 1].element.port_num = 2;
	bring_port_event(0, IBV_EVENT_SRQ_LIMIT_REACHED); /* what nobody here asks for */
	cr_expect_eq(peer[0].n_link, 0);
	cr_expect_eq(count_ib_verbs(0, "port_down"), 1);
}

Test(ib_verbs_event, a_queue_that_is_lost_is_the_end, .init = init, .fini = fini)
{
	two_up();
	bring_port_event(0, IBV_EVENT_CQ_ERR);
	expect_reason(0, "lost a queue");
	cr_expect_not(peer[0].link);
	bring_port_event(1, IBV_EVENT_SRQ_ERR);
	expect_reason(1, "lost a queue");
	cr_expect_not(peer[1].link);
	cr_expect_eq(peer[1].n_link, 1);
}

/* ---- queue pairs ---- */

Test(ib_verbs_event, of_a_queue_pair_that_goes_on, .init = init, .fini = fini)
{
	static const enum ibv_event_type type[] = { IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED,
						    IBV_EVENT_PATH_MIG, IBV_EVENT_PATH_MIG_ERR };
	uint64_t events;

	connect_two_interfaces();
	events = count_ib_verbs(0, "events");
	for (unsigned i = 0; i < sizeof(type) / sizeof(*type); i++)
		fake_event(0, type[i], &conn(0)->qp);
	turn_ib_verbs();
	cr_expect_eq(count_ib_verbs(0, "events"), events + 4);
	cr_expect_eq(peer[0].qp_err, 0);
	cr_expect_eq(peer[0].n_link, 0);
	cr_expect_eq(count_ib_verbs_conns(0), 1);
}

Test(ib_verbs_event, an_access_that_is_not_allowed_ends_the_connection, .init = init, .fini = fini)
{
	connect_two_interfaces();
	fake_event(0, IBV_EVENT_QP_ACCESS_ERR, &conn(0)->qp);
	UNTIL(peer[0].qp_err);
	cr_expect_eq(peer[0].qp_err, DDPS_E_PROTOCOL);
}

Test(ib_verbs_event, one_that_is_dying_does_not_fail, .init = init, .fini = fini)
{
	struct ddps_ipoib_port *port;
	struct fake_qp *q;

	connect_two_interfaces();
	port = ddps_ib_verbs_port(peer[0].v);
	q = conn(0);
	fake[0].no_last_wqe = true;
	port->ops->qp_destroy(port, q->qp.qp_num);
	fake_event(0, IBV_EVENT_QP_REQ_ERR, &q->qp);
	turn_ib_verbs();
	cr_expect_eq(peer[0].qp_err, 0);
	cr_expect_eq(count_ib_verbs(0, "qp_failed"), 0);
	cr_expect_eq(port->ops->qp_send(port, q->qp.qp_num, "", 1), DDPS_E_STATE);
}

Test(ib_verbs_event, a_datagram_queue_that_cannot_be_reset_says_so, .init = init, .fini = fini)
{
	struct fake_qp *q;

	two_up();
	q = fake_qp_of(0, ddps_ib_verbs_info(peer[0].v)->qpn);
	fake[0].fail = "modify_qp";
	fake[0].fail_errno = EIO;
	fake_event(0, IBV_EVENT_QP_FATAL, &q->qp);
	turn_ib_verbs();
	fake[0].fail = NULL;
	expect_reason(0, "cannot be reset");
	fake_event(0, IBV_EVENT_QP_FATAL, &q->qp);
	turn_ib_verbs();
	cr_expect_eq(count_ib_verbs(0, "ud_rebuilt"), 2);
	send_ib_verbs_ip(0, 1, 100);
	UNTIL(peer[1].n_rx == 1);
}

/* ---- as many as there are ---- */

/* A turn is bounded, and says so. */
Test(ib_verbs_event, a_turn_takes_so_many, .init = init, .fini = fini)
{
	const struct ibv_wc wc = { .wr_id = UINT64_MAX };
	uint64_t events;

	two_up();
	settle_ib_verbs(0);
	events = count_ib_verbs(0, "events");
	for (unsigned i = 0; i < FAKE_EVENTS; i++)
		fake_event(0, IBV_EVENT_PORT_ACTIVE, NULL);
	for (unsigned i = 0; i < 600; i++)
		fake_wc(0, 0, &wc);
	cr_expect(ddps_ib_verbs_run(peer[0].v, fake_now), "there is more");
	cr_expect_eq(count_ib_verbs(0, "rx_bad"), 512);
	cr_expect_eq(count_ib_verbs(0, "events"), events + FAKE_EVENTS);
	cr_expect_not(ddps_ib_verbs_run(peer[0].v, fake_now));
	cr_expect_eq(count_ib_verbs(0, "rx_bad"), 600);
	for (unsigned i = 0; i < 70; i++)
		fake[0].mad[fake[0].n_mad++] =
			(typeof(fake[0].mad[0])){ .agent = FAKE_SA, .len = DDPS_CM_MAD_LEN - 1 };
	cr_expect(ddps_ib_verbs_run(peer[0].v, fake_now));
	cr_expect_eq(count_ib_verbs(0, "mad_bad"), 64);
	cr_expect_not(ddps_ib_verbs_run(peer[0].v, fake_now));
	cr_expect_eq(count_ib_verbs(0, "mad_bad"), 70);
}

/* Notices of the channel are taken, and the next one is asked for, once. */
Test(ib_verbs_event, completions_are_asked_for_anew, .init = init, .fini = fini)
{
	two_up();
	fake[0].n_asked = fake[0].n_acked = 0;
	fake[0].n_notice = 3;
	turn_ib_verbs();
	cr_expect_eq(fake[0].n_notice, 0);
	cr_expect_eq(fake[0].n_acked, 3);
	cr_expect_eq(fake[0].n_asked, 1);
}

/* The adapter gives a notice whenever one is asked for: each turn takes one, and comes to its end. */
Test(ib_verbs_event, contact_35_an_adapter_that_answers_immediately, .init = init, .fini = fini)
{
	two_up();
	fake[0].n_asked = fake[0].n_acked = 0;
	fake[0].arm_fires = 1000;
	fake[0].n_notice = 1;
	for (unsigned i = 1; i <= 3; i++) {
		(void)ddps_ib_verbs_run(peer[0].v, fake_now);
		cr_expect_eq(fake[0].n_asked, i);
		cr_expect_eq(fake[0].n_notice, 1);
	}
}
