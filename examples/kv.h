/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What kv_server.c and kv_client.c agree on; python/examples has both in Python.
 *
 * A request is one message: 'P' to put or 'G' to get, an octet with the length of the key, the key, and
 * for 'P' the value.  The answer is one message, too: the advert of the value (<ddpsess/advert.h>), whose
 * length is 0 if there is none.  The client then reads the value out of the server's memory.
 */
#ifndef EXAMPLES_KV_H
#define EXAMPLES_KV_H

#define KV_REQUEST_MAX 4096 /* octets of a request */
#define KV_KEY_MAX     255

#endif
