/* SPDX-License-Identifier: BSD-2-Clause */
/* A C++17 program that uses all public headers (all.h, made from the folder) and refers to every
 * exported function (functions.h, made from the maps).  It carries a message to itself. */
#include "all.h"
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

static void must(int result, const char *what)
{
	if (result < 0)
		throw std::runtime_error(std::string(what) + ": " + ddps_strerror(result));
}

template <auto free_fn> struct deleter {
	template <typename T> void operator()(T *p) const
	{
		free_fn(p);
	}
};

using context = std::unique_ptr<ddps_ctx, deleter<ddps_ctx_free>>;
using endpoint = std::unique_ptr<ddps_ep, deleter<ddps_ep_free>>;

static endpoint make_endpoint(ddps_ctx *ctx, ddps_pd *pd, ddps_cq *cq)
{
	ddps_ep_attr attr;
	ddps_ep *ep;

	ddps_ep_attr_init(&attr);
	attr.pd = pd;
	attr.send_cq = attr.recv_cq = cq;
	must(ddps_ep_new(ctx, &attr, &ep), "endpoint");
	return endpoint(ep);
}

static void open_session(ddps_ctx *ctx, ddps_ep *a, ddps_ep *b)
{
	ddps_listen_param lp;
	ddps_conn_param p;
	ddps_listener *l;
	ddps_event ev;
	char uri[128];

	ddps_listen_param_init(&lp);
	ddps_conn_param_init(&p);
	must(ddps_listen(ctx, "tcp://127.0.0.1:0", &lp, &l), "listen");
	must(ddps_listener_uri(l, uri, sizeof uri), "uri");
	must(ddps_connect(a, uri, &p), "connect");
	must(ddps_event_wait(ctx, &ev, 10000), "request");
	must(ddps_accept(ev.request, b, &p), "accept");
	do
		must(ddps_event_wait(ctx, &ev, 10000), "established");
	while (ev.type == DDPS_EV_ESTABLISHED && ev.ep != a);
	if (ev.type != DDPS_EV_ESTABLISHED)
		throw std::runtime_error(ev.error.text);
}

static std::string carry(const std::string &message)
{
	ddps_ctx_attr attr;
	ddps_ctx *made;
	ddps_pd *pd;
	ddps_cq *cq;
	ddps_mr *from, *to;
	char out[64] = {}, in[64] = {};

	ddps_ctx_attr_init(&attr);
	must(ddps_ctx_new(&made, &attr), "context");
	context ctx(made);
	must(ddps_pd_new(made, &pd), "pd");
	must(ddps_cq_new(made, 16, &cq), "cq");
	must(ddps_mr_reg(pd, out, sizeof out, 0, nullptr, &from), "mr");
	must(ddps_mr_reg(pd, in, sizeof in, DDPS_LOCAL_WRITE, nullptr, &to), "mr");
	endpoint a = make_endpoint(made, pd, cq), b = make_endpoint(made, pd, cq);
	ddps_sge sge{ in, sizeof in, ddps_mr_stag(to) };
	must(ddps_post_recv(b.get(), 1, &sge, 1), "receive");
	open_session(made, a.get(), b.get());
	message.copy(out, sizeof out - 1);
	sge = { out, static_cast<uint32_t>(message.size()), ddps_mr_stag(from) };
	ddps_send_wr wr{};
	wr.op = DDPS_OP_SEND;
	wr.sge = &sge;
	wr.nsge = 1;
	must(ddps_post_send(a.get(), &wr), "send");
	for (ddps_wc wc{}; wc.op != DDPS_OP_RECV;)
		must(ddps_cq_wait(cq, &wc, 1, 10000), "completion");
	return in;
}

/* Each would not link if its header lacked extern "C". */
static int count_functions()
{
	int n = 0;
#define FUNCTION(name)                                                                             \
	if (void (*volatile f)() = reinterpret_cast<void (*)()>(&name); f)                         \
		n++;
#include "functions.h"
	return n;
}

int main()
{
	try {
		const std::string message = "from C++";

		if (carry(message) != message || std::strcmp(ddps_version(), DDPS_VERSION_STRING))
			return 1;
	} catch (const std::exception &e) {
		std::fprintf(stderr, "%s\n", e.what());
		return 1;
	}
	std::printf("functions: %d\n", count_functions());
	return 0;
}
