/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libfabric's tcp provider with many endpoints: messages of 4 KiB over SIZE of them, four under way on
 * each, counted where they arrive, as sessions.c does it.
 * usage: peer_fi_many send SIZE SECONDS
 */
#include "peer_fi.h"
#include <arpa/inet.h>
#include <signal.h>
#include <sys/mman.h>

#define MESSAGE	 4096u
#define EACH	 4u    /* messages under way on an endpoint */
#define RECEIVES 8u    /* posted on an endpoint of the side that accepts */
#define PLACES	 8192u /* as many as sessions.c has */
#define WARM	 0.5   /* seconds */

/* What the processes tell each other. */
struct board {
	volatile uint64_t up, received;
	volatile uint16_t port;
};

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_mr *mr;
	uint8_t *mem;
	size_t place;
};

static void open_fi_side(struct side *s, size_t endpoints)
{
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_MSG,
				 .size = endpoints * (RECEIVES + EACH) + 64 };
	size_t len = (size_t)PLACES * MESSAGE;

	s->mem = peer_memory(len);
	check_fi(fi_fabric(s->info->fabric_attr, &s->fabric, NULL), "fi_fabric");
	check_fi(fi_eq_open(s->fabric, &eq, &s->eq, NULL), "fi_eq_open");
	check_fi(fi_domain(s->fabric, s->info, &s->domain, NULL), "fi_domain");
	check_fi(fi_cq_open(s->domain, &cq, &s->cq, NULL), "fi_cq_open");
	check_fi(fi_mr_reg(s->domain, s->mem, len, FI_SEND | FI_RECV, 0, 1, 0, &s->mr, NULL),
		 "fi_mr_reg");
}

/* An operation's context is its endpoint. */
static struct fid_ep *new_endpoint(struct side *s, struct fi_info *info)
{
	struct fid_ep *ep;

	check_fi(fi_endpoint(s->domain, info, &ep, NULL), "fi_endpoint");
	check_fi(fi_ep_bind(ep, &s->eq->fid, 0), "bind eq");
	check_fi(fi_ep_bind(ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
	check_fi(fi_enable(ep), "fi_enable");
	return ep;
}

static void post_fi_many_receive(struct side *s, struct fid_ep *ep)
{
	uint8_t *to = s->mem + s->place++ % PLACES * MESSAGE;

	check_fi(fi_recv(ep, to, MESSAGE, fi_mr_desc(s->mr), 0, ep), "fi_recv");
}

static void take_fi_event(struct side *s, struct board *b)
{
	struct fi_eq_cm_entry e;
	uint32_t event;
	struct fid_ep *ep;
	ssize_t n = fi_eq_read(s->eq, &event, &e, sizeof e, 0);

	if (n == -FI_EAGAIN)
		return;
	check_fi(n, "fi_eq_read");
	if (event == FI_CONNREQ) {
		ep = new_endpoint(s, e.info);
		for (unsigned i = 0; i < RECEIVES; i++)
			post_fi_many_receive(s, ep);
		check_fi(fi_accept(ep, NULL, 0), "fi_accept");
		fi_freeinfo(e.info);
	}
	b->up += event == FI_CONNECTED;
}

/* Until it is killed. */
__attribute__((noreturn)) static void serve_fi_many(struct board *b, const struct peer_args *a)
{
	struct side s = { .info = get_fi_info("0", FI_SOURCE) };
	struct fi_cq_msg_entry e[64];
	struct sockaddr_in sa;
	size_t len = sizeof sa;
	struct fid_pep *pep;

	open_fi_side(&s, a->size);
	check_fi(fi_passive_ep(s.fabric, s.info, &pep, NULL), "fi_passive_ep");
	check_fi(fi_pep_bind(pep, &s.eq->fid, 0), "bind eq");
	check_fi(fi_listen(pep), "fi_listen");
	check_fi(fi_getname(&pep->fid, &sa, &len), "fi_getname");
	b->port = ntohs(sa.sin_port);
	for (;;) {
		ssize_t n = fi_cq_read(s.cq, e, 64);

		if (b->up < a->size)
			take_fi_event(&s, b);
		if (n == -FI_EAGAIN)
			continue;
		check_fi(n, "fi_cq_read");
		for (ssize_t i = 0; i < n; i++)
			post_fi_many_receive(&s, e[i].op_context);
		b->received += (uint64_t)n;
	}
}

static struct fid_ep *connect_fi_endpoint(struct side *s)
{
	struct fid_ep *ep = new_endpoint(s, s->info);
	struct fi_eq_cm_entry e;
	uint32_t event = 0;

	check_fi(fi_connect(ep, s->info->dest_addr, NULL, 0), "fi_connect");
	check_fi(fi_eq_sread(s->eq, &event, &e, sizeof e, 10000, 0), "fi_eq_sread");
	if (event != FI_CONNECTED) {
		fprintf(stderr, "peer_fi_many: event %u instead of a connection\n", event);
		exit(1);
	}
	return ep;
}

static void send_to_fi_endpoint(struct side *s, struct fid_ep *ep)
{
	ssize_t err;

	do {
		err = fi_send(ep, s->mem, MESSAGE, fi_mr_desc(s->mr), 0, ep);
		if (err == -FI_EAGAIN) /* drives it, and takes nothing */
			fi_cq_read(s->cq, NULL, 0);
	} while (err == -FI_EAGAIN);
	check_fi(err, "fi_send");
}

static void measure_fi_many(struct side *s, struct board *b, const struct peer_args *a)
{
	double warm = peer_now(), begin = 0, end, cpu = 0;
	struct fi_cq_msg_entry e[64];
	uint64_t first = 0;

	do {
		ssize_t n = fi_cq_read(s->cq, e, 64);

		if (n != -FI_EAGAIN)
			check_fi(n, "fi_cq_read");
		for (ssize_t i = 0; i < n; i++)
			send_to_fi_endpoint(s, e[i].op_context);
		end = peer_now();
		if (begin == 0 && end - warm > WARM) {
			begin = end;
			cpu = peer_cpu();
			first = b->received;
		}
	} while (begin == 0 || end - begin < a->seconds);
	peer_report(a, b->received - first, end - begin, peer_cpu() - cpu);
}

int main(int argc, char **argv)
{
	struct peer_args a = peer_parse(argc, argv, "send");
	struct board *b =
		mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct side s = { 0 };
	char port[8];
	pid_t child;

	if (b == MAP_FAILED)
		peer_die("mmap");
	peer_descriptors();
	child = fork();
	if (child < 0)
		peer_die("fork");
	alarm((unsigned)a.seconds + 50);
	if (!child) {
		peer_pin(0);
		serve_fi_many(b, &a);
	}
	peer_pin(1);
	while (!b->port)
		usleep(100);
	snprintf(port, sizeof port, "%u", b->port);
	s.info = get_fi_info(port, 0);
	open_fi_side(&s, a.size);
	struct fid_ep **ep = peer_memory(a.size * sizeof(*ep));

	for (size_t i = 0; i < a.size; i++)
		ep[i] = connect_fi_endpoint(&s);
	while (b->up < a.size)
		usleep(100);
	for (size_t i = 0; i < a.size; i++)
		for (unsigned k = 0; k < EACH; k++)
			send_to_fi_endpoint(&s, ep[i]);
	measure_fi_many(&s, b, &a);
	fflush(stdout);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	_exit(0);
}
