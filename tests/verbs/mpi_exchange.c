/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An MPI program as they come: every rank says hello, a token goes round the ring, ranks 0 and 1
 * measure latency and bandwidth, all of them reduce and exchange.  What arrives is compared.
 * Prints "all N ranks agree" at the end; any difference ends the job with status 1.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (1 << 20)
#define WINDOW	16

static int rank, size;
static unsigned char *out, *in;

static void fill_mpi_exchange(unsigned char *buf, int len, int seed)
{
	for (int i = 0; i < len; i++)
		buf[i] = (unsigned char)(i * 31 + seed);
}

static void compare(int len, int seed, const char *what)
{
	for (int i = 0; i < len; i++)
		if (in[i] != (unsigned char)(i * 31 + seed)) {
			fprintf(stderr, "rank %d: %s: octet %d of %d differs\n", rank, what, i,
				len);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
}

static void hello(void)
{
	int theirs;

	if (rank) {
		MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
		return;
	}
	for (int i = 1; i < size; i++) {
		MPI_Recv(&theirs, 1, MPI_INT, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (theirs != i)
			MPI_Abort(MPI_COMM_WORLD, 1);
		printf("hello from rank %d of %d\n", theirs, size);
	}
}

/* Each rank adds itself to the token. */
static void ring(void)
{
	int token = 0, next = (rank + 1) % size, before = (rank + size - 1) % size;

	if (rank) {
		MPI_Recv(&token, 1, MPI_INT, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		token += rank;
	}
	MPI_Send(&token, 1, MPI_INT, next, 2, MPI_COMM_WORLD);
	if (rank)
		return;
	MPI_Recv(&token, 1, MPI_INT, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	printf("ring: the token is %d\n", token);
	if (token != size * (size - 1) / 2)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

static void latency(int len)
{
	const int rounds = 20;
	double start = MPI_Wtime();

	for (int i = 0; i < rounds; i++) {
		fill_mpi_exchange(out, len, i);
		if (!rank)
			MPI_Send(out, len, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
		MPI_Recv(in, len, MPI_BYTE, !rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank)
			MPI_Send(out, len, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
		compare(len, i, "latency");
	}
	if (!rank)
		printf("%8d octets: %9.1f us one way\n", len,
		       (MPI_Wtime() - start) / rounds / 2 * 1e6);
}

static void bandwidth(int len)
{
	MPI_Request req[WINDOW];
	double start = MPI_Wtime();

	fill_mpi_exchange(out, len, 5);
	for (int i = 0; i < WINDOW; i++)
		if (rank)
			MPI_Irecv(in, len, MPI_BYTE, 0, i, MPI_COMM_WORLD, &req[i]);
		else
			MPI_Isend(out, len, MPI_BYTE, 1, i, MPI_COMM_WORLD, &req[i]);
	MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
	if (rank) {
		compare(len, 5, "bandwidth");
		MPI_Send(&rank, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
		return;
	}
	MPI_Recv(in, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	printf("%8d octets: %9.1f MB/s\n", len, len * (double)WINDOW / (MPI_Wtime() - start) / 1e6);
}

static void collective(void)
{
	int sum, each = LARGEST / 16 / size;

	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (sum != size * (size - 1) / 2)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < size; i++)
		memset(out + (size_t)i * (size_t)each, rank * 16 + i, (size_t)each);
	MPI_Alltoall(out, each, MPI_BYTE, in, each, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < size * each; i++)
		if (in[i] != i / each * 16 + rank)
			MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	out = malloc(LARGEST);
	in = malloc(LARGEST);
	if (size < 2 || size > 16 || !out || !in)
		MPI_Abort(MPI_COMM_WORLD, 1);
	hello();
	ring();
	if (rank < 2)
		for (int len = 1; len <= LARGEST; len *= 32)
			latency(len);
	if (rank < 2)
		for (int len = 64; len <= LARGEST; len *= 128)
			bandwidth(len);
	collective();
	if (!rank)
		printf("all %d ranks agree\n", size);
	free(in);
	free(out);
	MPI_Finalize();
	return 0;
}
