/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an IP packet costs an interface, without noise: a fixed number of them from one interface to
 * another, over the fabric in memory, for callgrind (see guard.sh).  What that fabric takes is counted,
 * too, and is the same each time.
 *
 * datagram: 1000 octets each, on the unreliable queue pair.  connection: 8000 octets each.
 *
 * usage: guard_ipoib ipoib datagram|connection COUNT
 */
#include <ddpsess/ipoib_sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ull
#define BURST  16u
#define SMALL  1000u
#define LARGE  8000u

static unsigned long delivered;

static void count_delivered(void *user, const void *packet, size_t len)
{
	(void)user;
	(void)packet;
	(void)len;
	delivered++;
}

static struct ddps_ipoib_if *start_guard_if(struct ddps_ipoib_sim *fabric, unsigned node,
					    bool connections)
{
	struct ddps_ipoib_if_calls calls = { sizeof calls, count_delivered, NULL, NULL };
	struct ddps_ipoib_if_config c;
	struct ddps_ipoib_if *f;

	ddps_ipoib_if_config_init(&c);
	c.me.addr.flags = connections ? DDPS_IPOIB_RC : 0;
	c.me.addr.qpn = 0x48 + node;
	memcpy(c.me.addr.gid, (uint8_t[16]){ 0xfe, 0x80, [15] = (uint8_t)(node + 1) }, 16);
	c.me.pkey = 0xffff;
	c.me.rx_mtu = DDPS_IPOIB_MTU_CM_MAX + DDPS_IPOIB_ENCAP_LEN;
	c.has_ip4 = true;
	memcpy(c.ip4, (uint8_t[]){ 10, 0, 0, (uint8_t)(node + 1) }, 4);
	c.prefix4 = 24;
	if (ddps_ipoib_sim_if_start(&f, fabric, node, &c, &calls)) {
		fprintf(stderr, "guard_ipoib: no interface\n");
		exit(1);
	}
	return f;
}

/* As many packets of @len octets from one to the other, all of which arrive. */
static void send_guard_packets(struct ddps_ipoib_sim *fabric, struct ddps_ipoib_if *from,
			       uint16_t len, unsigned long count)
{
	static uint8_t packet[LARGE] = { 0x45, 0, 0,  0, 0, 0, 0x40, 0, 64, 17,
					 0,    0, 10, 0, 0, 1, 10,   0, 0,  2 };
	unsigned long want = delivered + count;

	packet[2] = (uint8_t)(len >> 8);
	packet[3] = (uint8_t)len;
	for (unsigned long n = 0; n < count;) {
		for (unsigned k = 0; k < BURST && n < count; k++, n++)
			ddps_ipoib_if_send(from, packet, len, ddps_ipoib_sim_now(fabric));
		ddps_ipoib_sim_touch(fabric, 0);
		ddps_ipoib_sim_run(fabric, ddps_ipoib_sim_now(fabric) + SECOND / 1000);
	}
	if (delivered != want) {
		fprintf(stderr, "guard_ipoib: %lu of %lu packets came\n", delivered, want);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	const bool large = argc == 4 && !strcmp(argv[2], "connection");
	const unsigned long count = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	struct ddps_ipoib_sim_config c;
	struct ddps_ipoib_sim *fabric;
	struct ddps_ipoib_if *f[2];
	uint64_t on_conn;

	if (!count || (!large && strcmp(argv[2], "datagram"))) {
		fprintf(stderr, "usage: guard_ipoib ipoib datagram|connection COUNT\n");
		return 2;
	}
	ddps_ipoib_sim_config_init(&c);
	if (ddps_ipoib_sim_new(&fabric, &c))
		return 1;
	for (unsigned i = 0; i < 2; i++)
		f[i] = start_guard_if(fabric, i, large);
	ddps_ipoib_sim_run(fabric, 8 * SECOND); /* both join their group, and get their addresses */
	send_guard_packets(fabric, f[0], large ? LARGE : SMALL, 1); /* ARP, and the connection */
	ddps_ipoib_sim_run(fabric, 9 * SECOND);
	on_conn = ddps_ipoib_if_stats(f[1])->rx_conn;
	send_guard_packets(fabric, f[0], large ? LARGE : SMALL, count);
	on_conn = ddps_ipoib_if_stats(f[1])->rx_conn - on_conn;
	for (unsigned i = 0; i < 2; i++)
		ddps_ipoib_sim_if_kill(f[i], fabric, i);
	ddps_ipoib_sim_free(fabric);
	return on_conn == (large ? count : 0) ? 0 : 1;
}
