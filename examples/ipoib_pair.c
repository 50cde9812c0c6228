/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two IPoIB interfaces in connected mode talk over a fabric in memory: the first packet is held
 * while ARP and CM do their work, then it travels on a reliable connection.
 *
 * cc ipoib_pair.c $(pkg-config --cflags --libs libddpsess-ipoib)
 */
#include <ddpsess/ipoib_sim.h>
#include <stdio.h>
#include <string.h>

#define SECOND 1000000000ull

static void print_packet(void *user, const void *packet, size_t len)
{
	printf("%s received %zu octets from 10.0.0.%u\n", (const char *)user, len,
	       ((const uint8_t *)packet)[15]);
}

static struct ddps_ipoib_if *start_pair_if(struct ddps_ipoib_sim *fabric, unsigned node, char *name)
{
	struct ddps_ipoib_if_calls calls = { sizeof calls, print_packet, NULL, name };
	struct ddps_ipoib_if_config c;
	struct ddps_ipoib_if *f;

	ddps_ipoib_if_config_init(&c);
	c.me.addr.flags = DDPS_IPOIB_RC;
	c.me.addr.qpn = 0x48 + node;
	memcpy(c.me.addr.gid, (uint8_t[16]){ 0xfe, 0x80, [15] = (uint8_t)(node + 1) }, 16);
	c.me.pkey = 0xffff;
	c.me.rx_mtu = DDPS_IPOIB_MTU_CM_MAX + DDPS_IPOIB_ENCAP_LEN;
	c.has_ip4 = true;
	memcpy(c.ip4, (uint8_t[]){ 10, 0, 0, (uint8_t)(node + 1) }, 4);
	c.prefix4 = 24;
	return ddps_ipoib_sim_if_start(&f, fabric, node, &c, &calls) ? NULL : f;
}

int main(void)
{
	/* an IPv4 packet of 40 000 octets from 10.0.0.1 to 10.0.0.2, too long for a datagram */
	static uint8_t packet[40000] = { 0x45, 0, 40000 >> 8, 40000 & 255, 0, 0, 0x40, 0, 64, 17,
					 0,    0, 10,	      0,	   0, 1, 10,   0, 0,  2 };
	static char name[2][8] = { "first", "second" };
	struct ddps_ipoib_sim_config c;
	struct ddps_ipoib_sim *fabric;
	struct ddps_ipoib_if *f[2];

	ddps_ipoib_sim_config_init(&c);
	if (ddps_ipoib_sim_new(&fabric, &c))
		return 1;
	for (unsigned i = 0; i < 2; i++)
		if (!(f[i] = start_pair_if(fabric, i, name[i])))
			return 1;
	ddps_ipoib_sim_run(fabric,
			   8 * SECOND); /* both join their group, and ask it for their addresses */
	ddps_ipoib_if_send(f[0], packet, sizeof packet, ddps_ipoib_sim_now(fabric));
	ddps_ipoib_sim_touch(fabric, 0);
	ddps_ipoib_sim_run(fabric, 9 * SECOND);
	printf("on connections: %llu\n", (unsigned long long)ddps_ipoib_if_stats(f[1])->rx_conn);
	for (unsigned i = 0; i < 2; i++) /* in order: each peer is informed */
		ddps_ipoib_if_stop(f[i], ddps_ipoib_sim_now(fabric));
	while (!ddps_ipoib_if_at_rest(f[0]) || !ddps_ipoib_if_at_rest(f[1]))
		ddps_ipoib_sim_run(fabric, ddps_ipoib_sim_now(fabric) + SECOND);
	for (unsigned i = 0; i < 2; i++)
		ddps_ipoib_sim_if_kill(f[i], fabric, i);
	ddps_ipoib_sim_free(fabric);
	return 0;
}
