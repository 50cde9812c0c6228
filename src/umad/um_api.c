/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of libibumad that know of devices; preloaded, they take the place of those of the library. */
#include "common/system/lock.h"
#include "umad/um.h"
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define API	__attribute__((visibility("default")))
#define DEVICE	"ddpsess0"
#define PORT	1
#define CA	1
#define ACTIVE	4
#define LINK_UP 5
#define RATE_40 40

static struct ddps_mutex lock = DDPS_MUTEX(DDPS_LOCK_UMAD);
static struct um *um; /* or NULL: it has not been read */

static struct um *get_um(void)
{
	char why[400];

	ddps_lock(&lock);
	if (!um && (um = calloc(1, sizeof(*um))) &&
	    um_read(um, getenv(UM_VARIABLE), why, sizeof(why))) {
		fprintf(stderr, "ddpsess: %s\n", why);
		free(um);
		um = NULL;
	}
	ddps_unlock(&lock);
	return um;
}

static bool is_here(const char *name, int portnum)
{
	return (!name || !*name || !strcmp(name, DEVICE)) && (portnum == PORT || !portnum) &&
	       get_um();
}

static uint64_t read_guid(const uint8_t *half)
{
	uint64_t v;

	memcpy(&v, half, sizeof(v));
	return v; /* big endian, as it is wanted */
}

/* ---- devices ---- */

API int umad_init(void)
{
	return get_um() ? 0 : -1;
}

API int umad_done(void)
{
	return 0;
}

API int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max)
{
	if (max < 1 || !get_um())
		return 0;
	snprintf(cas[0], UMAD_CA_NAME_LEN, "%s", DEVICE);
	return 1;
}

API struct umad_device_node *umad_get_ca_device_list(void)
{
	struct umad_device_node *n = get_um() ? calloc(1, sizeof(*n)) : NULL;

	if (n)
		n->ca_name = DEVICE;
	return n;
}

API void umad_free_ca_device_list(struct umad_device_node *head)
{
	free(head);
}

API int umad_sort_ca_device_list(struct umad_device_node **head, size_t size)
{
	(void)head;
	return size > 1 ? EINVAL : 0;
}

API int umad_get_ca_portguids(const char *ca_name, __be64 *guids, int max)
{
	if (!is_here(ca_name, PORT))
		return -ENODEV;
	if (max > 0)
		guids[0] = 0; /* port 0 is a switch's */
	if (max > 1)
		guids[1] = read_guid(um->self.gid + 8);
	return max < 2 ? max : 2;
}

API int umad_get_port(const char *ca_name, int portnum, umad_port_t *port)
{
	if (!is_here(ca_name, portnum))
		return -ENODEV;
	*port = (umad_port_t){ .ca_name = DEVICE,
			       .portnum = PORT,
			       .base_lid = um->self.lid,
			       .sm_lid = um->self.sm_lid,
			       .state = ACTIVE,
			       .phys_state = LINK_UP,
			       .rate = RATE_40,
			       .gid_prefix = read_guid(um->self.gid),
			       .port_guid = read_guid(um->self.gid + 8),
			       .pkeys_size = 1,
			       .pkeys = malloc(sizeof(uint16_t)),
			       .link_layer = "InfiniBand" };
	if (!port->pkeys)
		return -ENOMEM;
	port->pkeys[0] = um->self.pkey;
	return 0;
}

API int umad_release_port(umad_port_t *port)
{
	free(port->pkeys);
	port->pkeys = NULL;
	return 0;
}

API int umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	umad_port_t *port;
	int err;

	if (!is_here(ca_name, PORT))
		return -ENODEV;
	port = calloc(1, sizeof(*port));
	if (!port)
		return -ENOMEM;
	err = umad_get_port(DEVICE, PORT, port);
	if (err) {
		free(port);
		return err;
	}
	*ca = (umad_ca_t){ .ca_name = DEVICE,
			   .node_type = CA,
			   .numports = 1,
			   .ca_type = "InfiniBand in UDP",
			   .node_guid = port->port_guid,
			   .system_guid = port->port_guid,
			   .ports = { [PORT] = port } };
	return 0;
}

API int umad_release_ca(umad_ca_t *ca)
{
	if (!ca->ports[PORT])
		return 0;
	(void)umad_release_port(ca->ports[PORT]);
	free(ca->ports[PORT]);
	ca->ports[PORT] = NULL;
	return 0;
}

/* Several in one process are the same port. */
API int umad_open_port(const char *ca_name, int portnum)
{
	char why[400];
	int err = 0;

	if (!is_here(ca_name, portnum))
		return -ENODEV;
	ddps_lock(&lock);
	errno = 0;
	if (!um->opened && um_open(um, why, sizeof(why))) {
		err = errno ? -errno : -EIO;
		um_close(um);
		fprintf(stderr, "ddpsess: %s\n", why);
	} else {
		um->opened++;
	}
	ddps_unlock(&lock);
	return err;
}

/* Whether @portid is open; then with the lock. */
static bool enter_port(int portid)
{
	if (portid || !um)
		return false;
	ddps_lock(&lock);
	if (um->opened)
		return true;
	ddps_unlock(&lock);
	return false;
}

API int umad_close_port(int portid)
{
	if (!enter_port(portid))
		return -EINVAL;
	if (!--um->opened)
		um_close(um);
	ddps_unlock(&lock);
	return 0;
}

API int umad_get_fd(int portid)
{
	int fd;

	if (!enter_port(portid))
		return -EINVAL;
	fd = um->poll;
	ddps_unlock(&lock);
	return fd;
}

/* ---- agents ---- */

static int add_agent(int portid, const struct um_agent *a)
{
	int at = -ENOMEM;

	if (!enter_port(portid))
		return -EINVAL;
	for (int i = 0; i < UM_AGENTS && at < 0; i++)
		if (!um->agent[i].used) {
			um->agent[i] = *a;
			at = i;
		}
	ddps_unlock(&lock);
	return at;
}

API int umad_register(int portid, int mgmt_class, int mgmt_version, uint8_t rmpp_version,
		      long method_mask[16 / sizeof(long)])
{
	struct um_agent a = { .used = true,
			      .mgmt_class = (uint8_t)mgmt_class,
			      .rmpp = rmpp_version };

	(void)mgmt_version;
	if (method_mask)
		memcpy(a.methods, method_mask, sizeof(a.methods));
	return add_agent(portid, &a);
}

API int umad_register_oui(int portid, int mgmt_class, uint8_t rmpp_version, uint8_t oui[3],
			  long method_mask[16 / sizeof(long)])
{
	struct um_agent a = { .used = true,
			      .mgmt_class = (uint8_t)mgmt_class,
			      .rmpp = rmpp_version,
			      .has_oui = true };

	if (mgmt_class < 0x30 || mgmt_class > 0x4f)
		return -EINVAL;
	memcpy(a.oui, oui, sizeof(a.oui));
	if (method_mask)
		memcpy(a.methods, method_mask, sizeof(a.methods));
	return add_agent(portid, &a);
}

API int umad_register2(int portid, struct umad_reg_attr *attr, uint32_t *agent_id)
{
	struct um_agent a = { .used = true,
			      .mgmt_class = attr->mgmt_class,
			      .rmpp = attr->rmpp_version };
	int at;

	memcpy(a.methods, attr->method_mask, sizeof(a.methods));
	at = add_agent(portid, &a);
	if (at < 0)
		return -at;
	*agent_id = (uint32_t)at;
	return 0;
}

API int umad_unregister(int portid, int agentid)
{
	if (agentid <= UM_OWN || agentid >= UM_AGENTS || !enter_port(portid))
		return -EINVAL;
	um_forget(um, (unsigned)agentid);
	ddps_unlock(&lock);
	return 0;
}

/* ---- MADs ---- */

API int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms, int retries)
{
	struct ib_user_mad *h = umad;
	int err = -EINVAL;

	if (length >= 0 && agentid >= 0 && agentid < UM_AGENTS && enter_port(portid)) {
		if (um->agent[agentid].used)
			err = um_send(um, (unsigned)agentid, h, h->data, (size_t)length, timeout_ms,
				      retries);
		um_run(um);
		ddps_unlock(&lock);
	}
	if (err)
		errno = -err;
	return err;
}

/* Until there is a message.  Return: 0, -ETIMEDOUT, or -EINVAL: another thread has closed the port.  The
 * lock is held, but for the sleeps. */
static int wait_message(int timeout_ms)
{
	struct pollfd p = { .fd = um->poll, .events = POLLIN };
	struct timespec t;
	int64_t end = 0, now = 0;

	for (;;) {
		ddps_assert_held(&lock);
		um_run(um);
		if (!TAILQ_EMPTY(&um->queue))
			return 0;
		clock_gettime(CLOCK_MONOTONIC, &t);
		now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
		end = end ? end : now + timeout_ms;
		if (timeout_ms >= 0 && now >= end)
			return -ETIMEDOUT;
		ddps_unlock(&lock);
		(void)poll(&p, 1, timeout_ms < 0 ? -1 : (int)(end - now));
		ddps_lock(&lock);
		if (!um->opened)
			return -EINVAL;
	}
}

API int umad_poll(int portid, int timeout_ms)
{
	int err;

	if (!enter_port(portid))
		return -EINVAL;
	err = wait_message(timeout_ms);
	ddps_unlock(&lock);
	if (err)
		errno = -err;
	return err;
}

static int take_um_message(struct ib_user_mad *to, int *length)
{
	struct um_message *m = TAILQ_FIRST(&um->queue);

	if (m->len > (size_t)*length) { /* it is asked for again, with room */
		*length = (int)m->len;
		return -ENOSPC;
	}
	TAILQ_REMOVE(&um->queue, m, of_queue);
	um->queued--;
	*to = m->head;
	to->length = (uint32_t)(sizeof(*to) + m->len);
	memcpy(to->data, m->mad, m->len);
	*length = (int)m->len;
	free(m);
	return (int)to->agent_id;
}

API int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	int at;

	if (!umad || *length < 0 || !enter_port(portid)) {
		errno = EINVAL;
		return -EINVAL;
	}
	at = wait_message(timeout_ms);
	if (!at)
		at = take_um_message(umad, length);
	else if (at == -ETIMEDOUT && !timeout_ms)
		at = -EWOULDBLOCK;
	ddps_unlock(&lock);
	if (at < 0)
		errno = -at;
	return at;
}
