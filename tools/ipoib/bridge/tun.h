/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_TUN_H
#define SESSCTL_TUN_H
/* A TUN device of the kernel: IP packets by read() and write(). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUN_NAME_MAX 16 /* NUL included */

/*
 * Make device @name, with MTU @mtu; nothing blocks.  It goes away when the descriptor is closed.
 * Each packet has a struct virtio_net_hdr before it, both ways, and may be a long one of TCP.
 * Return: the descriptor, or -1 with a sentence in @why and errno.
 */
int tun_open(const char *name, unsigned mtu, char *why, size_t why_len);
/* Give it an address.  @family: AF_INET (4 octets) or AF_INET6.  Return: 0 or -1, @why, errno. */
int tun_address(const char *name, int family, const uint8_t *addr, unsigned prefix, char *why,
		size_t why_len);
/* The device has MTU @mtu from now on.  Return: 0 or -1, @why, errno. */
int tun_mtu(const char *name, unsigned mtu, char *why, size_t why_len);
/* Let packets through.  Return: 0 or -1, @why, errno. */
int tun_up(const char *name, char *why, size_t why_len);

/* ---- tun_watch.c ---- */

#define TUN_ADDRS 128 /* more are informed of, and what news of them is lost stays so */

/* One that the device has.  It may have one address several times, with other prefixes or peers. */
struct tun_addr {
	int family;
	unsigned prefix;
	uint8_t addr[16], peer[16];
	bool seen; /* in the list that is under way */
};

struct tun_watch {
	int fd; /* for poll; -1: none */
	unsigned n;
	bool listing, again; /* a list of all is under way, and another one is due behind it */
	struct tun_addr at[TUN_ADDRS];
};

typedef void tun_told_fn(void *arg, int family, const uint8_t *addr, unsigned prefix, bool has);

/* Begins to watch, with a list of the addresses that there are.  Return: 0 or -1 with errno. */
int tun_watch_open(struct tun_watch *w);
/* What has come of device @name; never blocks. */
void tun_watch_read(struct tun_watch *w, const char *name, tun_told_fn *told, void *arg);
/* Takes an address away from device @name, with each prefix that it has.  Return: 0 or -1, errno. */
int tun_watch_drop(const struct tun_watch *w, const char *name, int family, const uint8_t *addr);
/* News were lost: by a list of those that there are it is found out what. */
void tun_watch_lost(struct tun_watch *w);

#endif
