/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_E2E_H
#define DDPS_TEST_E2E_H
/* Two ends of a session in one process, through the public API and real sockets. */
#include <criterion/criterion.h>
#include <ddpsess/ddpsess.h>
#include <ddpsess/secure.h>

#define E2E_MS	       20000 /* bound on every wait; never reached when things work */
#define E2E_SEEN(type) (1u << (type))

struct e2e_end {
	struct ddps_ep *ep;
	unsigned seen;		       /* E2E_SEEN of the events that came */
	struct ddps_event established; /* or REJECTED */
	struct ddps_error error;       /* of the last event that has one */
};

struct e2e {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_listener *listener;
	char uri[128];
	struct ddps_ep_attr attr;
	struct ddps_conn_param connect, accept;
	struct ddps_event request; /* the last CONNECT_REQUEST */
	bool reject, keep_request; /* what to do with requests, else accept */
	const void *reject_pd;
	size_t reject_pd_len;
	int accept_result;
	void (*before_accept)(struct e2e *e, struct ddps_ep *ep);
	struct e2e_end a, b; /* initiator, responder */
};

/* The wires under test; "%" in a test's name stands for each. */
extern const char *const e2e_wires[];
#define E2E_NWIRES 10

/* A test that runs on every wire. */
#define E2E_WIRES(suite, name, ...)                                                                \
	static void name##_on(const char *wire);                                                   \
	Test(suite, name, .timeout = 60, ##__VA_ARGS__)                                            \
	{                                                                                          \
		for (int i = 0; i < E2E_NWIRES; i++)                                               \
			name##_on(e2e_wires[i]);                                                   \
	}                                                                                          \
	static void name##_on(const char *wire)

void e2e_open(struct e2e *e, const char *uri);
/* @attr: NULL, or with what differs; without credentials in it a secured wire has those of e2e_secure. */
void e2e_open_with(struct e2e *e, const char *uri, const struct ddps_ctx_attr *attr);
/* Credentials for tls:// and sctps://, the same ones in a process and in what it forks from then on; the caller closes them. */
struct ddps_secure *e2e_secure(void);
/* The same, whose peers @judge decides about. */
struct ddps_secure *e2e_secure_judged(ddps_judge_fn *judge, void *user);
void e2e_close(struct e2e *e);
/* Connect the pair; waits until the initiator's outcome is known and the responder's too. */
void e2e_connect(struct e2e *e);
/* Open, connect, expect both established. */
void e2e_up(struct e2e *e, const char *uri);
/* Serve events until @end has seen all of @mask. */
void e2e_wait(struct e2e *e, struct e2e_end *end, unsigned mask);
/* Take one completion and expect this. */
struct ddps_wc e2e_wc(struct e2e *e);
void e2e_expect_wc(struct e2e *e, const struct e2e_end *end, enum ddps_op op,
		   enum ddps_wc_status status, uint32_t len);
struct ddps_mr *e2e_reg(struct e2e *e, void *buf, size_t len, unsigned access);
struct ddps_sge e2e_sge(void *buf, size_t len, struct ddps_mr *mr);
int e2e_post(struct e2e_end *end, enum ddps_op op, void *buf, size_t len, struct ddps_mr *mr,
	     uint32_t stag, uint64_t to);
/* Graceful end from @end's side; expects CLOSED with code 0 on both. */
void e2e_disconnect(struct e2e *e, struct e2e_end *end);
/* Descriptors this process has open. */
unsigned e2e_fds(void);
void e2e_fill(uint8_t *buf, size_t len, uint32_t seed);

#endif
