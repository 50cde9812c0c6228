/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a command and all its processes take of the machine, in a line behind its own output: seconds,
 * seconds of processor time, context switches.
 * usage: usage COMMAND...
 */
#include "peer.h"
#include <sys/prctl.h>

int main(int argc, char **argv)
{
	double begin = peer_now();
	struct rusage u;
	int status;
	pid_t child;

	if (argc < 2) {
		fprintf(stderr, "usage: %s COMMAND...\n", argv[0]);
		return 2;
	}
	if (prctl(PR_SET_CHILD_SUBREAPER, 1)) /* what it leaves behind becomes ours */
		peer_die("prctl");
	child = fork();
	if (child < 0)
		peer_die("fork");
	if (!child) {
		execvp(argv[1], argv + 1);
		peer_die(argv[1]);
	}
	if (waitpid(child, &status, 0) != child)
		peer_die("waitpid");
	while (wait(NULL) > 0)
		;
	if (getrusage(RUSAGE_CHILDREN, &u))
		peer_die("getrusage");
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return 1;
	printf("{\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"switches\":%ld}\n", peer_now() - begin,
	       peer_seconds(&u), u.ru_nvcsw + u.ru_nivcsw);
	return 0;
}
