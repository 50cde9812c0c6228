/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_ED_NAMES_H
#define DDPS_VERBS_ED_NAMES_H
/*
 * The calls of libibverbs and librdmacm that go through the edge.  The drop-in's own files define and
 * call them by another name, "vdi_" in front, so what it does for itself does not pass the edge;
 * the edge defines those that programs call.  Who wants to see them as programs do (the edge, the
 * tests) defines VD_OUTER.  And what the drop-in asks the edge for.
 */
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>

struct vd_config;

/*
 * What is between program and drop-in if it is asked for (edge/ed.h).  The settings have been read;
 * return: 0, or -1, what is wrong was told.  And put its functions into a new context.
 */
int ed_start(const struct vd_config *cfg);
/* The process ends by exit().  Return: whether the program made mistakes, which were told. */
bool ck_end(void);
void ed_dress(struct ibv_context *ctx);
/* The device that has this address of the host, the drop-in's own without a profile; its number. */
struct ibv_device *ed_device_at(const struct sockaddr *sa, uint8_t *port);
unsigned ed_device_count(void);
struct ibv_device *ed_device_numbered(unsigned i);
int ed_device_index(const struct ibv_device *device);
bool ed_is_roce(const struct ibv_context *ctx);
unsigned ed_ports(const struct ibv_context *ctx);
/* Whether the port has its interface and address now, and its GID then. */
bool ed_port_now(const struct ibv_context *ctx, unsigned port, union ibv_gid *gid);
/* vd_host_address, of the device's first port. */
unsigned ed_host_address(const struct ibv_context *ctx, struct sockaddr_in *a4);

/* ---- names ---- */

extern __typeof__(ibv_get_device_list) vdi_ibv_get_device_list;
extern __typeof__(ibv_open_device) vdi_ibv_open_device;
extern __typeof__(ibv_query_device) vdi_ibv_query_device;
extern __typeof__(ibv_query_port) vdi_ibv_query_port;
extern __typeof__(ibv_query_gid) vdi_ibv_query_gid;
extern __typeof__(ibv_alloc_pd) vdi_ibv_alloc_pd;
extern __typeof__(ibv_reg_mr) vdi_ibv_reg_mr;
extern __typeof__(ibv_reg_mr_iova2) vdi_ibv_reg_mr_iova2;
extern __typeof__(ibv_rereg_mr) vdi_ibv_rereg_mr;
extern __typeof__(ibv_dereg_mr) vdi_ibv_dereg_mr;
extern __typeof__(ibv_create_comp_channel) vdi_ibv_create_comp_channel;
extern __typeof__(ibv_create_cq) vdi_ibv_create_cq;
extern __typeof__(ibv_resize_cq) vdi_ibv_resize_cq;
extern __typeof__(ibv_destroy_cq) vdi_ibv_destroy_cq;
extern __typeof__(ibv_get_cq_event) vdi_ibv_get_cq_event;
extern __typeof__(ibv_create_srq) vdi_ibv_create_srq;
extern __typeof__(ibv_modify_srq) vdi_ibv_modify_srq;
extern __typeof__(ibv_destroy_srq) vdi_ibv_destroy_srq;
extern __typeof__(ibv_create_qp) vdi_ibv_create_qp;
extern __typeof__(ibv_modify_qp) vdi_ibv_modify_qp;
extern __typeof__(ibv_query_qp) vdi_ibv_query_qp;
extern __typeof__(ibv_destroy_qp) vdi_ibv_destroy_qp;
extern __typeof__(rdma_create_event_channel) vdi_rdma_create_event_channel;
extern __typeof__(rdma_create_id) vdi_rdma_create_id;
extern __typeof__(rdma_destroy_id) vdi_rdma_destroy_id;
extern __typeof__(rdma_create_ep) vdi_rdma_create_ep;
extern __typeof__(rdma_destroy_ep) vdi_rdma_destroy_ep;
extern __typeof__(rdma_create_qp) vdi_rdma_create_qp;
extern __typeof__(rdma_create_qp_ex) vdi_rdma_create_qp_ex;
extern __typeof__(rdma_destroy_qp) vdi_rdma_destroy_qp;
extern __typeof__(rdma_bind_addr) vdi_rdma_bind_addr;
extern __typeof__(rdma_listen) vdi_rdma_listen;
extern __typeof__(rdma_resolve_addr) vdi_rdma_resolve_addr;
extern __typeof__(rdma_resolve_route) vdi_rdma_resolve_route;
extern __typeof__(rdma_connect) vdi_rdma_connect;
extern __typeof__(rdma_get_request) vdi_rdma_get_request;
extern __typeof__(rdma_accept) vdi_rdma_accept;
extern __typeof__(rdma_reject) vdi_rdma_reject;
extern __typeof__(rdma_establish) vdi_rdma_establish;
extern __typeof__(rdma_disconnect) vdi_rdma_disconnect;
extern __typeof__(rdma_get_cm_event) vdi_rdma_get_cm_event;
extern __typeof__(rdma_getaddrinfo) vdi_rdma_getaddrinfo;
extern __typeof__(ibv_get_device_guid) vdi_ibv_get_device_guid;
extern __typeof__(ibv_query_pkey) vdi_ibv_query_pkey;
extern __typeof__(ibv_get_pkey_index) vdi_ibv_get_pkey_index;
extern __typeof__(_ibv_query_gid_ex) vdi__ibv_query_gid_ex;
extern __typeof__(_ibv_query_gid_table) vdi__ibv_query_gid_table;
extern __typeof__(ibv_dealloc_pd) vdi_ibv_dealloc_pd;

#ifndef VD_OUTER
/* rdma-core puts macros over these */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#define ibv_get_device_list	  vdi_ibv_get_device_list
#define ibv_open_device		  vdi_ibv_open_device
#define ibv_query_device	  vdi_ibv_query_device
#define ibv_query_port		  vdi_ibv_query_port
#define ibv_query_gid		  vdi_ibv_query_gid
#define ibv_alloc_pd		  vdi_ibv_alloc_pd
#define ibv_reg_mr		  vdi_ibv_reg_mr
#define ibv_reg_mr_iova2	  vdi_ibv_reg_mr_iova2
#define ibv_rereg_mr		  vdi_ibv_rereg_mr
#define ibv_dereg_mr		  vdi_ibv_dereg_mr
#define ibv_create_comp_channel	  vdi_ibv_create_comp_channel
#define ibv_create_cq		  vdi_ibv_create_cq
#define ibv_resize_cq		  vdi_ibv_resize_cq
#define ibv_destroy_cq		  vdi_ibv_destroy_cq
#define ibv_get_cq_event	  vdi_ibv_get_cq_event
#define ibv_create_srq		  vdi_ibv_create_srq
#define ibv_modify_srq		  vdi_ibv_modify_srq
#define ibv_destroy_srq		  vdi_ibv_destroy_srq
#define ibv_create_qp		  vdi_ibv_create_qp
#define ibv_modify_qp		  vdi_ibv_modify_qp
#define ibv_query_qp		  vdi_ibv_query_qp
#define ibv_destroy_qp		  vdi_ibv_destroy_qp
#define rdma_create_event_channel vdi_rdma_create_event_channel
#define rdma_create_id		  vdi_rdma_create_id
#define rdma_destroy_id		  vdi_rdma_destroy_id
#define rdma_create_ep		  vdi_rdma_create_ep
#define rdma_destroy_ep		  vdi_rdma_destroy_ep
#define rdma_create_qp		  vdi_rdma_create_qp
#define rdma_create_qp_ex	  vdi_rdma_create_qp_ex
#define rdma_destroy_qp		  vdi_rdma_destroy_qp
#define rdma_bind_addr		  vdi_rdma_bind_addr
#define rdma_listen		  vdi_rdma_listen
#define rdma_resolve_addr	  vdi_rdma_resolve_addr
#define rdma_resolve_route	  vdi_rdma_resolve_route
#define rdma_connect		  vdi_rdma_connect
#define rdma_get_request	  vdi_rdma_get_request
#define rdma_accept		  vdi_rdma_accept
#define rdma_reject		  vdi_rdma_reject
#define rdma_establish		  vdi_rdma_establish
#define rdma_disconnect		  vdi_rdma_disconnect
#define rdma_get_cm_event	  vdi_rdma_get_cm_event
#define rdma_getaddrinfo	  vdi_rdma_getaddrinfo
#define ibv_get_device_guid	  vdi_ibv_get_device_guid
#define ibv_query_pkey		  vdi_ibv_query_pkey
#define ibv_get_pkey_index	  vdi_ibv_get_pkey_index
#define _ibv_query_gid_ex	  vdi__ibv_query_gid_ex
#define _ibv_query_gid_table	  vdi__ibv_query_gid_table
#define ibv_dealloc_pd		  vdi_ibv_dealloc_pd
#endif

#endif
