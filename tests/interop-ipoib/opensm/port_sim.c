/* SPDX-License-Identifier: BSD-2-Clause */
/* The port as a client of ibsim, and libibumad on it. */
#include "port.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define API	   __attribute__((visibility("default")))
#define MAGIC	   0xdeadbeefu
#define AGENTS	   8
#define OFF_CLASS  1
#define OFF_METHOD 3
#define OFF_TID	   8
#define RESPONSE   0x80
#define ANSWER_S   5

enum { CTL_CONNECT = 1, CTL_DISCONNECT, CTL_NODEINFO = 7, CTL_PORTINFO = 8, CTL_PKEYS = 10 };

/* A control message of ibsim. */
struct control {
	uint32_t magic, client, type, len;
	uint8_t data[64];
};

struct client_info {
	uint32_t id, qp, is_sm;
	char host[32];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ctl = -1, mads = -1;
static uint32_t client;
static uint64_t guid;
static struct {
	int class;
	uint16_t methods; /* that come unasked */
} agent[AGENTS];
static int n_agents;

static uint16_t be16_at(const uint8_t *b)
{
	return (uint16_t)(b[0] << 8 | b[1]);
}

static uint64_t be64_at(const uint8_t *b)
{
	uint64_t v;

	memcpy(&v, b, sizeof(v));
	return be64toh(v);
}

/* ---- ibsim ---- */

int port_socket(int type)
{
	const char *where = getenv("FABRIC_NETNS");
	int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), fd = -1;
	int there = where ? open(where, O_RDONLY | O_CLOEXEC) : -1;

	if (!where || !setns(there, CLONE_NEWNET))
		fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (where && setns(here, CLONE_NEWNET))
		abort(); /* the thread would go on in another network */
	close(here);
	if (there >= 0)
		close(there);
	return fd;
}

/* ibsim's names are abstract. */
static socklen_t name(struct sockaddr_un *a, const char *what, unsigned n)
{
	const char *base = getenv("IBSIM_SOCKNAME");
	int len;

	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	len = n == (unsigned)-1 ? snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "%s:%s",
					   base ? base : "sim", what)
				: snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "%s:%s%u",
					   base ? base : "sim", what, n);
	/* with the NUL, as ibsim counts it */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 2 + (size_t)len);
}

static int bind_as(int fd, const char *mine)
{
	struct timeval wait = { .tv_sec = ANSWER_S };
	struct sockaddr_un a;
	socklen_t len = name(&a, mine, (unsigned)getpid());

	return bind(fd, (struct sockaddr *)&a, len) ||
			       setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait))
		       ? -1
		       : 0;
}

static int connect_port_sim_guest_to(int fd, const char *its, unsigned n)
{
	struct sockaddr_un a;
	socklen_t len = name(&a, its, n);

	return connect(fd, (struct sockaddr *)&a, len);
}

/* One question to ibsim, @data both ways. */
static int ask_port_sim_guest(uint32_t type, void *data, size_t len)
{
	struct control c = { .magic = MAGIC, .client = client, .type = type, .len = (uint32_t)len };
	int err = -1;

	memcpy(c.data, data, len);
	pthread_mutex_lock(&lock);
	if (send(ctl, &c, sizeof(c), 0) == sizeof(c) && recv(ctl, &c, sizeof(c), 0) == sizeof(c) &&
	    c.type == type)
		err = 0;
	pthread_mutex_unlock(&lock);
	memcpy(data, c.data, len);
	return err;
}

int port_open(void)
{
	/* ibsim gives requests only to clients that say so */
	struct client_info me = { .id = (uint32_t)getpid(), .is_sm = 1 };
	const char *host = getenv("SIM_HOST");
	uint8_t node[64] = { 0 };

	if (ctl >= 0)
		return 0;
	ctl = port_socket(SOCK_DGRAM);
	mads = port_socket(SOCK_DGRAM);
	snprintf(me.host, sizeof(me.host), "%s", host ? host : "");
	if (ctl >= 0 && mads >= 0 && !bind_as(ctl, "ctl") && !bind_as(mads, "in") &&
	    !connect_port_sim_guest_to(ctl, "ctl", (unsigned)-1) &&
	    !ask_port_sim_guest(CTL_CONNECT, &me, sizeof(me))) {
		client = me.id;
		if (!connect_port_sim_guest_to(mads, "out", client) &&
		    !ask_port_sim_guest(CTL_NODEINFO, node, sizeof(node))) {
			guid = be64_at(node + 12) + 1; /* of port 1 */
			return 0;
		}
	}
	fprintf(stderr,
		"port of %s: no ibsim '%s': %s; try: is it running, and is FABRIC_NETNS its "
		"network?\n",
		me.host, getenv("IBSIM_SOCKNAME"), strerror(errno));
	return -1;
}

/* So that ibsim does not go on giving messages to it. */
__attribute__((destructor)) static void leave_fabric(void)
{
	uint8_t nothing[1] = { 0 };

	if (guid)
		(void)ask_port_sim_guest(CTL_DISCONNECT, nothing, sizeof(nothing));
}

int port_mads(void)
{
	return mads;
}

int port_ask(struct port_state *s)
{
	uint8_t info[64] = { 0 }, keys[2 * PORT_PKEYS] = { 0 };

	if (ask_port_sim_guest(CTL_PORTINFO, info, sizeof(info)) ||
	    ask_port_sim_guest(CTL_PKEYS, keys, sizeof(keys)))
		return -1;
	*s = (struct port_state){ .prefix = be64_at(info + 8),
				  .guid = guid,
				  .lid = be16_at(info + 16),
				  .sm_lid = be16_at(info + 18),
				  .state = info[32] & 15,
				  .lmc = info[34] & 7,
				  .mtu = info[36] >> 4,
				  .sm_sl = info[36] & 15 };
	for (unsigned i = 0; i < PORT_PKEYS; i++)
		s->pkey[i] = be16_at(keys + 2 * (size_t)i);
	return 0;
}

/* ---- libibumad ---- */

API int umad_init(void)
{
	return port_open();
}

API int umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	(void)ca_name;
	*ca = (umad_ca_t){ .numports = 1 };
	return -ENODEV; /* the ports of verbs are asked by libibverbs */
}

API int umad_release_ca(umad_ca_t *ca)
{
	(void)ca;
	return 0;
}

API int umad_get_port(const char *ca_name, int portnum, umad_port_t *port)
{
	(void)ca_name;
	(void)portnum;
	(void)port;
	return -ENODEV;
}

API int umad_release_port(umad_port_t *port)
{
	(void)port;
	return 0;
}

API int umad_open_port(const char *ca_name, int portnum)
{
	(void)ca_name;
	return portnum == 1 && !port_open() ? 0 : -ENODEV;
}

API int umad_close_port(int portid)
{
	(void)portid;
	n_agents = 0;
	return 0;
}

API int umad_get_fd(int portid)
{
	(void)portid;
	return mads;
}

API int umad_register(int portid, int mgmt_class, int mgmt_version, uint8_t rmpp_version,
		      long method_mask[16 / sizeof(long)])
{
	(void)portid;
	(void)mgmt_version;
	(void)rmpp_version;
	if (n_agents == AGENTS)
		return -ENOMEM;
	agent[n_agents].class = mgmt_class;
	agent[n_agents].methods = method_mask ? (uint16_t)method_mask[0] : 0;
	return n_agents++;
}

API int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey)
{
	struct ib_user_mad *u = umad;

	u->addr.lid = htobe16((uint16_t)dlid);
	u->addr.qpn = htobe32((uint32_t)dqp);
	u->addr.sl = (uint8_t)sl;
	u->addr.qkey = htobe32((uint32_t)qkey);
	return 0;
}

/* As a kernel does, the upper half of a question's transaction ID is the agent's. */
API int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms, int retries)
{
	const struct ib_user_mad *u = umad;
	struct port_mad m = { .dlid = u->addr.lid,
			      .dqp = u->addr.qpn,
			      .sqp = htobe32(1),
			      .length = htobe64(sizeof(m.mad)) };

	(void)portid;
	(void)timeout_ms;
	(void)retries;
	if (length != (int)sizeof(m.mad))
		return -EINVAL;
	memcpy(m.mad, u->data, sizeof(m.mad));
	if (!(m.mad[OFF_METHOD] & RESPONSE)) {
		const uint8_t upper[4] = { 0, 0, 0, (uint8_t)agentid };

		memcpy(m.mad + OFF_TID, upper, sizeof(upper));
	}
	return send(mads, &m, sizeof(m), MSG_DONTWAIT) == sizeof(m) ? 0 : -EIO;
}

static int agent_of(const uint8_t *mad, bool failed)
{
	const bool answer = mad[OFF_METHOD] & RESPONSE;

	if (answer || failed)
		return mad[OFF_TID + 3] < n_agents ? mad[OFF_TID + 3] : -1;
	for (int i = 0; i < n_agents; i++)
		if (agent[i].class == mad[OFF_CLASS] &&
		    agent[i].methods >> (mad[OFF_METHOD] & 15) & 1)
			return i;
	return -1;
}

API int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	struct ib_user_mad *u = umad;
	struct port_mad m;
	int to;

	(void)portid;
	(void)timeout_ms;
	do {
		if (recv(mads, &m, sizeof(m), MSG_DONTWAIT) != sizeof(m))
			return -EWOULDBLOCK;
		to = agent_of(m.mad, m.status);
	} while (to < 0);
	memset(u, 0, sizeof(*u));
	u->agent_id = (uint32_t)to;
	u->status = be32toh(m.status);
	u->addr.lid = (uint16_t)m.slid;
	u->addr.qpn = m.sqp;
	memcpy(u->data, m.mad, sizeof(m.mad));
	*length = sizeof(m.mad);
	return to;
}
