/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In place of libFuzzer: runs a target over the files of a folder, or over single files, once each, and
 * if it has a mutator of its own, over what that makes of each.
 * usage: fuzz-NAME FOLDER|FILE ...
 */
#include "mutate.h"
#include <dirent.h>
#include <stdio.h>

#define INPUT_MAX (1u << 20)

#define MUTANT_MAX 2048u
#define MUTANTS	   4u

/* A target need not have one. */
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
						     unsigned seed);

static unsigned inputs, mutants;

/* In place of libFuzzer's: an octet more, less or another. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
	static struct fuzz_dice d = { 1 };
	unsigned how = fuzz_roll(&d, 3);

	if (!how && size < max)
		data[size++] = (uint8_t)fuzz_roll(&d, 256);
	else if (how == 1 && size > 1)
		size--;
	else if (size)
		data[fuzz_roll(&d, (unsigned)size)] = (uint8_t)fuzz_roll(&d, 256);
	return size;
}

static void run_octets(const uint8_t *p, size_t n)
{
	uint8_t *exact = fuzz_exact(p, n);

	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
}

static void run_mutants(uint8_t *p, size_t n)
{
	for (unsigned i = 0; LLVMFuzzerCustomMutator && i < MUTANTS && n <= MUTANT_MAX; i++) {
		n = LLVMFuzzerCustomMutator(p, n, MUTANT_MAX, mutants++);
		FUZZ_CHECK(n <= MUTANT_MAX);
		run_octets(p, n);
	}
}

static int run_file(const char *path)
{
	FILE *f = fopen(path, "re");
	uint8_t *buf = malloc(INPUT_MAX);
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
	run_octets(buf, n);
	run_mutants(buf, n);
	free(buf);
	inputs++;
	return 0;
}

static int replay_path(const char *path)
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
		err |= replay_path(argv[i]);
	printf("%s fuzz/%s: %u inputs, %u mutants\n", err || !inputs ? "not ok" : "ok",
	       dash ? dash + 1 : argv[0], inputs, mutants);
	return err || !inputs;
}
