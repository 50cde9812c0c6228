/* SPDX-License-Identifier: BSD-2-Clause */
/* What ends --help and --version of every command. */
#include "cmd.h"
#include "sessctl.h"
#include <ddpsess/version.h>

int cmd_finish(void)
{
	return fflush(stdout) || ferror(stdout) ? ST_FAILED : ST_DONE;
}

int cmd_version(void)
{
	printf("sessctl %s, libddpsess %s\n", DDPS_VERSION_STRING, ddps_version());
	return cmd_finish();
}
