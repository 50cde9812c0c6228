/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_VT_H
#define DDPS_TEST_VT_H
/* Both ends of a connection of rdma_cm in one process, through the drop-in. */
#include <criterion/criterion.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>

#define VT_MS 20000 /* bound on every wait; never reached when things work */

struct vt_end {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *cc;
	struct ibv_cq *cq; /* of both queues */
	struct ibv_mr *mr;
	uint8_t buf[8192];
};

struct vt {
	struct sockaddr_storage addr; /* where the listener is; set before vt_listen */
	struct ibv_qp_init_attr init; /* of both queue pairs */
	struct ibv_srq *srq;	      /* of the passive end, if set */
	int cqe;		      /* of both queues */
	struct rdma_conn_param connect, accept;
	unsigned access; /* of the registered octets */
	struct rdma_cm_id *listen;
	struct vt_end a, b; /* active, passive */
};

/* The device and what queue pairs need that programs connect themselves. */
struct vt_dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_device_attr attr;
};

/* The call fails, and errno says why: NULL is returned, or -1. */
#define VT_REFUSED_AS(fails, why)                                                                  \
	do {                                                                                       \
		errno = 0;                                                                         \
		cr_expect(fails, "it is taken: %s", #fails);                                       \
		cr_expect_eq(errno, why, "%m: %s", #fails);                                        \
	} while (0)
#define VT_NULL_AS(call, why)  VT_REFUSED_AS((call) == NULL, why)
#define VT_MINUS_AS(call, why) VT_REFUSED_AS((call) == -1, why)

/* The wire of this process is TLS from here on, with one key for both ends. */
void vt_over_tls(void);

/* The same test over each plain wire ... */
#define VT_TEST(suite, name)                                                                       \
	static void name##_runs(void);                                                             \
	Test(suite, name##_over_tcp, .timeout = 60)                                                \
	{                                                                                          \
		setenv("DDPSESS_TRANSPORT", "tcp", 1);                                             \
		name##_runs();                                                                     \
	}                                                                                          \
	Test(suite, name##_over_sctp, .timeout = 60)                                               \
	{                                                                                          \
		setenv("DDPSESS_TRANSPORT", "sctp", 1);                                            \
		name##_runs();                                                                     \
	}                                                                                          \
	static void name##_runs(void)

/* ... and over TLS, and where TCP makes way for shared memory: what is tested has to do with the wire, and is not
 * refused there. */
#define VT_TLS_TEST(suite, name)                                                                   \
	static void name##_runs(void);                                                             \
	Test(suite, name##_over_tls, .timeout = 60)                                                \
	{                                                                                          \
		vt_over_tls();                                                                     \
		name##_runs();                                                                     \
	}                                                                                          \
	Test(suite, name##_over_shm, .timeout = 60)                                                \
	{                                                                                          \
		setenv("DDPSESS_TRANSPORT", "tcp", 1);                                             \
		setenv("DDPSESS_SHM", "auto", 1);                                                  \
		name##_runs();                                                                     \
	}                                                                                          \
	VT_TEST(suite, name)

/* Defaults: 127.0.0.1, 16 requests each way, 4 pieces; nothing is opened. */
void vt_init(struct vt *v);
void vt_listen(struct vt *v);
/* A resolved identifier with a queue pair, a domain and 8192 registered octets. */
void vt_dial(struct vt *v);
/* The same for the request that came: fills v->b. */
void vt_take_request(struct vt *v);
/* Queue pair, domain and registered octets for an identifier that is the end's. */
void vt_equip(struct vt *v, struct vt_end *e);
/* Connect, accept: both ends established. */
void vt_connect(struct vt *v);
/* Listen, and that. */
void vt_up(struct vt *v);
/* Everything that is still there goes. */
void vt_down(struct vt *v);
void vt_end_down(struct vt_end *e);

/* The next event, which must be this one; to be acknowledged. */
struct rdma_cm_event *vt_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type);
/* The same, acknowledged. */
void vt_expect(struct rdma_event_channel *ch, enum rdma_cm_event_type type);
bool vt_readable(int fd, int ms);
/* The next completion. */
struct ibv_wc vt_wc(struct vt_end *e);
void vt_expect_wc(struct vt_end *e, uint64_t wr_id, enum ibv_wc_opcode op,
		  enum ibv_wc_status status);
int vt_recv(struct vt_end *e, uint64_t wr_id, size_t off, uint32_t len);
int vt_post(struct vt_end *e, uint64_t wr_id, enum ibv_wr_opcode op, uint32_t len,
	    const struct vt_end *peer);
/* The next asynchronous event of this context, to be acknowledged. */
struct ibv_async_event vt_async(struct ibv_context *ctx, enum ibv_event_type type);
uint16_t vt_port(const struct vt *v);

void vt_dev_open(struct vt_dev *d);
void vt_dev_close(struct vt_dev *d);
/* A queue pair of 4 requests and 2 pieces each way. */
struct ibv_qp_init_attr vt_rc(const struct vt_dev *d);

/* Tests of the edge: rules for this process, and what it did by them. */

/* These are the rules; before the first call of the drop-in. */
void vf_use(const char *rules);
/* This is the profile; the same. */
void vp_use(const char *profile);
/* The trace so far. */
const char *vf_traced(void);
/* This process may not lock as much memory as it likes, as most may not. */
void vf_may_not_pin(void);
/* vt_init, vt_up with these rules. */
void vf_up(struct vt *v, const char *rules);

#endif
