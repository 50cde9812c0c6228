/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_ADDR_H
#define DDPS_VERBS_VD_ADDR_H
/* Addresses, as sockets, the library and programs write them (vd_addr.c).  vd.h has it. */
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct ddps_addr;
struct vd_config;
struct vd_id;
struct vd_process;

/* An address of the library's, as programs have it; none is any of IPv4. */
void vd_sockaddr(const struct ddps_addr *a, struct sockaddr_storage *ss);
/* The URI of @sa with the wire of this run; behind it, what @id has for its packets. */
void vd_uri(const struct vd_config *cfg, const struct sockaddr *sa, char *buf, size_t len);
void vd_add_tos(const struct vd_id *id, char *uri, size_t len);
/* The same for a listener at the address that @id is bound to. */
void vd_listen_uri(const struct vd_process *p, const struct vd_id *id, char *buf, size_t len);
void vd_addr_text(const struct sockaddr *sa, char *buf, size_t len);
socklen_t vd_sa_len(const struct sockaddr *sa);
uint16_t *vd_port_of(struct sockaddr_storage *ss);
bool vd_is_any(const struct sockaddr *sa);

#endif
