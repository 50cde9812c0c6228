/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libfabric's tcp provider through its own API: connected endpoints (FI_EP_MSG), RMA writes and
 * reads with a number of them under way, messages likewise, and polled round trips.
 */
#include "peer_fi.h"
#include <arpa/inet.h>
#include <signal.h>

struct peer {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	uint8_t *mem;
	size_t len;
};

struct remote {
	uint64_t addr, key;
};

static void open_fabric(struct peer *p)
{
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };

	check_fi(fi_fabric(p->info->fabric_attr, &p->fabric, NULL), "fi_fabric");
	check_fi(fi_eq_open(p->fabric, &eq, &p->eq, NULL), "fi_eq_open");
}

static void open_endpoint(struct peer *p, struct fi_info *info, const struct peer_args *a)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_MSG, .size = 4096 };

	p->len = a->size;
	p->mem = peer_memory(p->len);
	check_fi(fi_domain(p->fabric, info, &p->domain, NULL), "fi_domain");
	check_fi(fi_cq_open(p->domain, &cq, &p->cq, NULL), "fi_cq_open");
	check_fi(fi_mr_reg(p->domain, p->mem, p->len,
			   FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
				   FI_REMOTE_WRITE,
			   0, 1, 0, &p->mr, NULL),
		 "fi_mr_reg");
	check_fi(fi_endpoint(p->domain, info, &p->ep, NULL), "fi_endpoint");
	check_fi(fi_ep_bind(p->ep, &p->eq->fid, 0), "bind eq");
	check_fi(fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
	check_fi(fi_enable(p->ep), "fi_enable");
}

static void post_fi_receive(struct peer *p)
{
	check_fi(fi_recv(p->ep, p->mem, p->len, fi_mr_desc(p->mr), 0, NULL), "fi_recv");
}

static void await_fi_event(struct peer *p, uint32_t want)
{
	struct fi_eq_cm_entry e;
	uint32_t event = 0;

	check_fi(fi_eq_sread(p->eq, &event, &e, sizeof e, 10000, 0), "fi_eq_sread");
	if (event != want) {
		fprintf(stderr, "peer_fi: event %u instead of %u\n", event, want);
		exit(1);
	}
}

/* Some completions.  Return: how many were sends or RMA; receives go into @recvs. */
static uint64_t poll_fi_cq(struct peer *p, uint64_t *recvs)
{
	struct fi_cq_msg_entry e[64];
	ssize_t n = fi_cq_read(p->cq, e, 64);
	uint64_t ours = 0;

	if (n == -FI_EAGAIN)
		return 0;
	check_fi(n, "fi_cq_read");
	for (ssize_t i = 0; i < n; i++) {
		ours += !(e[i].flags & FI_RECV);
		*recvs += (e[i].flags & FI_RECV) != 0;
	}
	return ours;
}

static void post_fi_operation(struct peer *p, const struct peer_args *a, const struct remote *r)
{
	uint64_t none;
	ssize_t err;

	do {
		if (!strcmp(a->mode, "write"))
			err = fi_write(p->ep, p->mem, a->size, fi_mr_desc(p->mr), 0, r->addr,
				       r->key, NULL);
		else if (!strcmp(a->mode, "read"))
			err = fi_read(p->ep, p->mem, a->size, fi_mr_desc(p->mr), 0, r->addr, r->key,
				      NULL);
		else
			err = fi_send(p->ep, p->mem, a->size, fi_mr_desc(p->mr), 0, NULL);
		if (err == -FI_EAGAIN)
			fi_cq_read(p->cq, &none, 0);
	} while (err == -FI_EAGAIN);
	check_fi(err, "posting");
}

/* Waits, drives the provider, echoes for ping, until it is killed. */
__attribute__((noreturn)) static void serve_fi(const struct peer_args *a, int out)
{
	struct peer p = { 0 };
	struct fi_eq_cm_entry e;
	struct fid_pep *pep;
	struct remote r;
	struct sockaddr_in sa;
	size_t len = sizeof sa;
	uint32_t event;

	if (getenv("BENCH_SERVE_NS"))
		peer_enter(getenv("BENCH_SERVE_NS"));
	p.info = get_fi_info("0", FI_SOURCE);
	open_fabric(&p);
	check_fi(fi_passive_ep(p.fabric, p.info, &pep, NULL), "fi_passive_ep");
	check_fi(fi_pep_bind(pep, &p.eq->fid, 0), "bind eq");
	check_fi(fi_listen(pep), "fi_listen");
	check_fi(fi_getname(&pep->fid, &sa, &len), "fi_getname");
	if (write(out, &sa.sin_port, 2) != 2)
		peer_die("pipe");
	check_fi(fi_eq_sread(p.eq, &event, &e, sizeof e, 10000, 0), "waiting for a request");
	open_endpoint(&p, e.info, a);
	for (size_t i = 0; i < e.info->rx_attr->size / 2; i++)
		post_fi_receive(&p);
	check_fi(fi_accept(p.ep, NULL, 0), "fi_accept");
	await_fi_event(&p, FI_CONNECTED);
	r = (struct remote){ .key = fi_mr_key(p.mr) };
	if (e.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) /* else from 0 on */
		r.addr = (uint64_t)(uintptr_t)p.mem;
	if (write(out, &r, sizeof r) != sizeof r)
		peer_die("pipe");
	for (;;) {
		uint64_t recvs = 0;

		poll_fi_cq(&p, &recvs);
		for (; recvs; recvs--) {
			post_fi_receive(&p);
			if (!strcmp(a->mode, "ping"))
				post_fi_operation(&p, a, &r);
		}
	}
}

static void measure_fi(struct peer *p, const struct peer_args *a, const struct remote *r)
{
	double begin = peer_now(), cpu = peer_cpu();
	uint64_t posted = 0, done = 0, recvs = 0;
	int on = 1;

	while (on || done < posted) {
		for (; on && posted - done < a->depth; posted++) {
			post_fi_operation(p, a, r);
			on = peer_now() - begin < a->seconds;
		}
		done += poll_fi_cq(p, &recvs);
	}
	peer_report(a, done, peer_now() - begin, peer_cpu() - cpu);
}

static void measure_fi_pings(struct peer *p, const struct peer_args *a, const struct remote *r)
{
	double begin = peer_now(), cpu = peer_cpu();
	struct peer_median m = { 0 };

	for (int i = 0; i < 8; i++)
		post_fi_receive(p);
	while (peer_now() - begin < a->seconds) {
		double t = peer_now();
		uint64_t recvs = 0;

		post_fi_operation(p, a, r);
		while (!recvs)
			poll_fi_cq(p, &recvs);
		post_fi_receive(p);
		peer_median_add(&m, peer_now() - t);
	}
	peer_report_median(a, &m, peer_now() - begin, peer_cpu() - cpu);
}

int main(int argc, char **argv)
{
	struct peer_args a = peer_parse(argc, argv, "write|read|send|ping");
	struct peer p = { 0 };
	struct remote r;
	char text[8];
	uint16_t port;
	int in[2];
	pid_t child;

	if (pipe(in))
		peer_die("pipe");
	child = fork();
	if (child < 0)
		peer_die("fork");
	if (!child) {
		peer_pin(0);
		alarm((unsigned)a.seconds + 20);
		serve_fi(&a, in[1]);
	}
	close(in[1]);
	peer_pin(1);
	alarm((unsigned)a.seconds + 20);
	if (read(in[0], &port, 2) != 2)
		peer_die("server");
	snprintf(text, sizeof text, "%u", ntohs(port));
	p.info = get_fi_info(text, 0);
	open_fabric(&p);
	open_endpoint(&p, p.info, &a);
	check_fi(fi_connect(p.ep, p.info->dest_addr, NULL, 0), "fi_connect");
	await_fi_event(&p, FI_CONNECTED);
	if (read(in[0], &r, sizeof r) != sizeof r)
		peer_die("server");
	if (!strcmp(a.mode, "ping"))
		measure_fi_pings(&p, &a, &r);
	else
		measure_fi(&p, &a, &r);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}
