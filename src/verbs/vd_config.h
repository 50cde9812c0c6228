/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_CONFIG_H
#define DDPS_VERBS_VD_CONFIG_H
/* What the settings of the process say. */
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define VD_PATH 1024

/* Which requests complete when the peer has them, as on InfiniBand, not when they have left. */
enum vd_placed { VD_PLACED_NONE, VD_PLACED_WRITES, VD_PLACED_ALL, VD_PLACED_FACE };

#define VD_TLS_WORDS 10 /* settings of secured wires */

struct vd_config {
	char transport[8]; /* tcp, sctp, tls, sctps: the scheme of its URIs */
	bool secured;	   /* ... is one of the last two: vd_secure.h */
	char name[32];	   /* of the device */
	bool crc, p2p;
	bool shm;     /* TCP makes way for shared memory on one host */
	bool no_wait; /* a Send without a receive ends the session */
	bool strict;  /* what adapters refuse is refused: vd_strict.h */
	bool rfc7306; /* immediate data and atomics */
	enum vd_placed placed;
	bool roce;	   /* the device says that it is a RoCE one, or one of InfiniBand */
	bool lids;	   /* ... of InfiniBand: vd_lid.h */
	bool stats;	   /* counters to standard error at the end */
	unsigned retry_ms; /* how long a refused connection is tried again */
	/* edge/: files of rules and of their trace, empty: none */
	char faults[VD_PATH], trace[VD_PATH], profile[VD_PATH], suppress[VD_PATH];
	bool check;	       /* for the program's own mistakes */
	char capture[VD_PATH]; /* for what goes over the wire; empty: none */
	char watch[VD_PATH];   /* the directory of the socket that shows it, "off", or empty */
	uint64_t seed;
	char tls[VD_TLS_WORDS][VD_PATH]; /* vd_tls_words; empty: not given */
	bool bad;			 /* a setting has a value that it does not take */
};

/* Read the settings; what they do not say is the default. */
void vd_config_read(struct vd_config *c);
/* What the settings say, without making anything. */
const struct vd_config *vd_config(void);

static inline bool vd_over_sctp(const struct vd_config *cfg)
{
	return cfg->transport[0] == 's';
}

/* Settings by name: from the environment, else from a file, for containers. */

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
