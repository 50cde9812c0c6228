/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_SETTINGS_H
#define DDPS_VERBS_VD_SETTINGS_H
/* Settings by name: from the environment, else from a file, for containers. */
#include "verbs/vd_config.h"
#include <stddef.h>

#define VD_SETTINGS_FILE "/etc/ddpsess.conf"
#define VD_SETTINGS_MAX	 4096 /* octets of the file */

/* Those of secured wires, and where they belong in struct ddps_secure_attr. */
struct vd_tls_word {
	const char *name;
	size_t at;
};
extern const struct vd_tls_word vd_tls_words[VD_TLS_WORDS];

struct vd_settings {
	char text[VD_SETTINGS_MAX + 1]; /* lines, each ended by a NUL */
	size_t len;
};

/*
 * Read $DDPSESS_CONF, or /etc/ddpsess.conf, which need not exist.  Lines are KEY=VALUE, empty, or
 * begin with #; blanks around key and value are no part of them.  A file that cannot be read, is
 * too long or has another line is reported on standard error; the lines that are good count.
 */
void vd_settings_read(struct vd_settings *s);

/* The value of @name: the environment's if it has one, else the file's last, else NULL. */
const char *vd_settings_get(const struct vd_settings *s, const char *name);

#endif
