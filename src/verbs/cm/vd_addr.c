/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_getaddrinfo and the list of devices. */
#include "verbs/vd.h"
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

static struct sockaddr *copy(const struct sockaddr *sa, socklen_t len)
{
	struct sockaddr *to = malloc(len);

	if (to)
		memcpy(to, sa, len);
	return to;
}

VD_API void rdma_freeaddrinfo(struct rdma_addrinfo *ai)
{
	while (ai) {
		struct rdma_addrinfo *next = ai->ai_next;

		free(ai->ai_src_addr);
		free(ai->ai_dst_addr);
		free(ai->ai_src_canonname);
		free(ai->ai_dst_canonname);
		free(ai->ai_route);
		free(ai->ai_connect);
		free(ai);
		ai = next;
	}
}

static struct rdma_addrinfo *make_addrinfo(const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *ai = calloc(1, sizeof *ai);

	if (!ai)
		return NULL;
	ai->ai_flags = hints ? hints->ai_flags : 0;
	ai->ai_family = hints ? hints->ai_family : 0;
	ai->ai_port_space = hints ? hints->ai_port_space : 0;
	ai->ai_qp_type = hints ? hints->ai_qp_type : 0;
	/* Each says the other. */
	if (!ai->ai_qp_type)
		ai->ai_qp_type = ai->ai_port_space == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
	if (!ai->ai_port_space)
		ai->ai_port_space = ai->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	return ai;
}

/* Addresses that the hints bring are the caller's: they are copied. */
static int from_hints(struct rdma_addrinfo *ai, const struct rdma_addrinfo *hints)
{
	if (!hints)
		return 0;
	if (!ai->ai_src_addr && hints->ai_src_addr) {
		ai->ai_src_addr = copy(hints->ai_src_addr, hints->ai_src_len);
		ai->ai_src_len = hints->ai_src_len;
		if (!ai->ai_src_addr)
			return EAI_MEMORY;
	}
	if (!ai->ai_dst_addr && hints->ai_dst_addr) {
		ai->ai_dst_addr = copy(hints->ai_dst_addr, hints->ai_dst_len);
		ai->ai_dst_len = hints->ai_dst_len;
		if (!ai->ai_dst_addr)
			return EAI_MEMORY;
	}
	return 0;
}

static int look_up_node(struct rdma_addrinfo *ai, const char *node, const char *service)
{
	struct addrinfo hints = { .ai_family = ai->ai_family, .ai_socktype = SOCK_STREAM }, *got;
	bool passive = ai->ai_flags & RAI_PASSIVE;
	struct sockaddr *sa;
	int err;

	if (passive)
		hints.ai_flags |= AI_PASSIVE;
	if (ai->ai_flags & RAI_NUMERICHOST)
		hints.ai_flags |= AI_NUMERICHOST;
	ddps_uncancellable(); /* the system's library keeps its own locks otherwise */
	err = getaddrinfo(node, service, &hints, &got);
	ddps_uncancellable_end();
	if (err)
		return err;
	sa = copy(got->ai_addr, got->ai_addrlen);
	if (!sa) {
		freeaddrinfo(got);
		return EAI_MEMORY;
	}
	ai->ai_family = got->ai_family;
	if (passive) {
		ai->ai_src_addr = sa;
		ai->ai_src_len = got->ai_addrlen;
	} else {
		ai->ai_dst_addr = sa;
		ai->ai_dst_len = got->ai_addrlen;
	}
	freeaddrinfo(got);
	return 0;
}

int vdi_rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
			 struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *ai;
	int err = 0;

	if (!node && !service && !hints)
		return vd_fail(EINVAL);
	ai = make_addrinfo(hints);
	if (!ai)
		return vd_fail(ENOMEM);
	if (node || service)
		err = look_up_node(ai, node, service);
	if (!err)
		err = from_hints(ai, hints);
	if (err) {
		rdma_freeaddrinfo(ai);
		return err;
	}
	*res = ai;
	return 0;
}

VD_API struct ibv_context **rdma_get_devices(int *num)
{
	struct ibv_context **list;
	unsigned n, got = 0;

	vd_config();
	vd_front.devices(&n);
	list = calloc(n + 1, sizeof *list);
	for (unsigned i = 0; list && i < n; i++) {
		list[got] = vd_shared_context(i);
		got += list[got] != NULL;
	}
	if (list && !got) {
		free(list);
		list = NULL;
	}
	if (num)
		*num = (int)got;
	return list;
}

VD_API void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
