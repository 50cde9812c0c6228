/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In place of libFuzzer: runs a target over the files of a folder, or over single files, once each.
 * usage: fuzz-NAME FOLDER|FILE ...
 */
#include "fuzz.h"
#include <dirent.h>
#include <stdio.h>

#define INPUT_MAX (1u << 20)

static unsigned inputs;

static int run_file(const char *path)
{
	FILE *f = fopen(path, "re");
	uint8_t *buf = malloc(INPUT_MAX), *exact;
	size_t n;

	if (!f || !buf) {
		perror(path);
		if (f)
			fclose(f);
		free(buf);
		return -1;
	}
	n = fread(buf, 1, INPUT_MAX, f);
	fclose(f);
	exact = fuzz_exact(buf, n);
	free(buf);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	inputs++;
	return 0;
}

static int run(const char *path)
{
	struct dirent **entry;
	int n = scandir(path, &entry, NULL, alphasort), err = 0;

	if (n < 0)
		return run_file(path);
	for (int i = 0; i < n; i++) {
		char name[4096];

		snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name);
		if (entry[i]->d_name[0] != '.')
			err |= run_file(name);
		free(entry[i]);
	}
	free(entry);
	return err;
}

int main(int argc, char **argv)
{
	const char *dash = strrchr(argv[0], '-');
	int err = 0;

	for (int i = 1; i < argc; i++)
		err |= run(argv[i]);
	printf("%s fuzz/%s: %u inputs\n", err || !inputs ? "not ok" : "ok",
	       dash ? dash + 1 : argv[0], inputs);
	return err || !inputs;
}
