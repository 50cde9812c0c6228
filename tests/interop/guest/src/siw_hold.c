/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program on the kernel's soft-iWARP that says yes to everything: the target of sessctl conform.
 *
 *	siw_hold -s ADDRESS PORT	takes every connection until it is killed
 *	siw_hold -c ADDRESS PORT	makes one, and ends with it
 *
 * It posts receives, sends nothing, and leaves each connection to its peer.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RECEIVES 16u
#define OCTETS	 4096u
#define DEPTH	 16

static uint8_t memory[RECEIVES * OCTETS];

static int fail_siw_hold_guest(const char *what)
{
	fprintf(stderr, "siw_hold: %s: %s\n", what, strerror(errno));
	return 1;
}

static struct rdma_cm_id *make_siw_hold_guest(char *address, char *port, bool server)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP,
				       .ai_flags = server ? RAI_PASSIVE : 0 };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id = NULL;

	attr.cap.max_send_wr = attr.cap.max_recv_wr = RECEIVES;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	if (rdma_getaddrinfo(address, port, &hints, &info) ||
	    rdma_create_ep(&id, info, NULL, &attr))
		return NULL;
	return id;
}

/* Every octet of @memory may be received into. */
static int post_siw_hold_guest(struct rdma_cm_id *id)
{
	struct ibv_mr *mr = rdma_reg_msgs(id, memory, sizeof memory);

	if (!mr)
		return -1;
	for (size_t i = 0; i < RECEIVES; i++)
		if (rdma_post_recv(id, NULL, memory + i * OCTETS, OCTETS, mr))
			return -1;
	return 0;
}

static int serve_siw_hold_guest(struct rdma_cm_id *listener)
{
	struct rdma_conn_param param = { .responder_resources = DEPTH, .initiator_depth = DEPTH };
	struct rdma_cm_id *id;

	if (!listener || rdma_listen(listener, 64))
		return fail_siw_hold_guest("listen");
	/* Ended ones are not destroyed: that can hang (see tests/interop/README.md). */
	for (;;)
		if (!rdma_get_request(listener, &id) &&
		    (post_siw_hold_guest(id) || rdma_accept(id, &param)))
			fail_siw_hold_guest("accept");
}

static int call_siw_hold_guest(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .responder_resources = DEPTH, .initiator_depth = DEPTH };
	struct ibv_wc wc;

	if (!id || post_siw_hold_guest(id))
		return fail_siw_hold_guest("address");
	if (rdma_connect(id, &param))
		return fail_siw_hold_guest("connect");
	/* the receives are flushed when the connection ends */
	while (rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS)
		;
	return 0;
}

int main(int argc, char **argv)
{
	bool server = argc == 4 && !strcmp(argv[1], "-s");

	if (!server && (argc != 4 || strcmp(argv[1], "-c") != 0))
		return 2;
	return server ? serve_siw_hold_guest(make_siw_hold_guest(argv[2], argv[3], true))
		      : call_siw_hold_guest(make_siw_hold_guest(argv[2], argv[3], false));
}
