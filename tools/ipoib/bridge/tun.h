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
/* Let packets through.  Return: 0 or -1, @why, errno. */
int tun_up(const char *name, char *why, size_t why_len);

/* ---- tun_watch.c ---- */

/* A descriptor for news of addresses, those that there are first.  Return: -1 with errno. */
int tun_watch_open(void);
/* What has come of device @name; never blocks. */
void tun_watch_read(int fd, const char *name,
		    void (*told)(void *arg, int family, const uint8_t *addr, unsigned prefix,
				 bool has),
		    void *arg);

#endif
