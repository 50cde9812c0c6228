/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_SAID_H
#define DDPS_TEST_SAID_H
/* Lines of the log, one behind the other: note_said is a context's log function. */
#include "common/log.h"
#include <criterion/criterion.h>
#include <string.h>

static char said[4096];

static inline void note_said(void *user, enum ddps_log_level level, const char *facility,
			     const char *message)
{
	(void)user;
	(void)level;
	(void)facility;
	cr_assert_lt(strlen(said) + strlen(message) + 2, sizeof said);
	strcat(said, message);
	strcat(said, "\n");
}

#endif
