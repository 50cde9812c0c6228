/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CREDS_SETTINGS_H
#define DDPS_CREDS_SETTINGS_H
/* What a program and its settings file say, as one struct that owns its texts. */
#include "secure/creds/file.h"
#include <ddpsess/secure.h>

enum ddps_setting {
	DDPS_SET_CERT,
	DDPS_SET_KEY,
	DDPS_SET_CA,
	DDPS_SET_CRL,
	DDPS_SET_PSK,
	DDPS_SET_PEERS,
	DDPS_SET_HOSTS,
	DDPS_SET_FILES, /* those before it are read */
	DDPS_SET_KEYLOG = DDPS_SET_FILES,
	DDPS_SET_PATHS, /* those before it are names of files */
	DDPS_SET_PSK_IDENTITY = DDPS_SET_PATHS,
	DDPS_SET_PEER,
	DDPS_SETTINGS
};

struct ddps_settings {
	char *file;		    /* the settings file, or NULL */
	char *value[DDPS_SETTINGS]; /* NULL: not set */
	bool stale_crl;
	ddps_judge_fn *judge;
	void *judge_user;
};

/* Which of the files are of which kind. */
enum ddps_file_kind ddps_setting_kind(enum ddps_setting s);

/* "cert", "psk-identity": the word of the settings file. */
const char *ddps_setting_word(enum ddps_setting s);

/* What the program says.  0, DDPS_E_INVAL or DDPS_E_NOMEM; to be freed in each case. */
int ddps_settings_take(struct ddps_settings *s, const struct ddps_secure_attr *attr);
/* @to: what @given says and, for what it does not say, its file.  0, or a code and in @why what is wrong
 * with the file; to be freed in each case. */
int ddps_settings_read(struct ddps_settings *to, const struct ddps_settings *given,
		       struct ddps_stamp *stamp, char *why, size_t why_len);
void ddps_settings_free(struct ddps_settings *s);

#endif
