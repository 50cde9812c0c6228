// SPDX-License-Identifier: BSD-2-Clause
// One rank of Gloo: rings of sums, and a broadcast, whose results are known.
// usage: gloo RANK SIZE FOLDER DEVICE|tcp
#include <cstdlib>
#include <gloo/algorithm.h>
#include <gloo/allreduce_ring.h>
#include <gloo/barrier_all_to_one.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>
#include <gloo/transport/tcp/device.h>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

static std::shared_ptr<gloo::transport::Device> device(const std::string &name)
{
	if (name == "tcp")
		return gloo::transport::tcp::CreateDevice("127.0.0.1");
	gloo::transport::ibverbs::attr attr{ name, 1, 0 };
	return gloo::transport::ibverbs::CreateDevice(attr);
}

static void check(bool good, const char *what)
{
	if (good)
		return;
	std::cerr << what << " came out wrong\n";
	std::exit(1);
}

// Gloo's own barriers do not wait until what they have sent is done, and end the process if it is not
// when they are destroyed.  This one is behind them in every pair.
static void part(const std::shared_ptr<gloo::Context> &context, int rank, int size)
{
	const int slot = context->nextSlot();
	std::vector<int> in(size), out(size);
	std::vector<std::unique_ptr<gloo::transport::Buffer>> buffers;
	for (int i = 0; i < size; i++) {
		if (i == rank)
			continue;
		auto &pair = context->getPair(i);
		buffers.push_back(pair->createRecvBuffer(slot, &in[i], sizeof(int)));
		buffers.push_back(pair->createSendBuffer(slot, &out[i], sizeof(int)));
		buffers.back()->send();
	}
	for (size_t i = 0; i < buffers.size(); i += 2) {
		buffers[i]->waitRecv();
		buffers[i + 1]->waitSend();
	}
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	const int rank = std::atoi(argv[1]), size = std::atoi(argv[2]);
	auto dev = device(argv[4]);
	gloo::rendezvous::FileStore store(argv[3]);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
	context->connectFullMesh(store, dev);
	// None of them, nor the memory that it has registered, goes before all ranks are done with it.
	std::vector<std::unique_ptr<gloo::Algorithm>> done;
	std::vector<std::unique_ptr<std::vector<float>>> memory;
	auto run = [&](gloo::Algorithm *a) {
		done.emplace_back(a);
		a->run();
	};
	for (size_t n : { size_t(1), size_t(1000), size_t(100000) }) {
		memory.emplace_back(new std::vector<float>(n));
		std::vector<float> &v = *memory.back();
		for (size_t i = 0; i < n; i++)
			v[i] = float(rank + 1) * float(i % 100);
		std::vector<float *> ptrs{ v.data() };
		run(new gloo::AllreduceRing<float>(context, ptrs, int(n)));
		for (size_t i = 0; i < n; i++)
			check(v[i] == float(size * (size + 1) / 2) * float(i % 100), "a sum");
		if (rank == 0)
			for (size_t i = 0; i < n; i++)
				v[i] = float(i % 7);
		run(new gloo::BroadcastOneToAll<float>(context, ptrs, n, 0));
		for (size_t i = 0; i < n; i++)
			check(v[i] == float(i % 7), "a broadcast");
	}
	run(new gloo::BarrierAllToOne(context));
	part(context, rank, size);
	std::cout << "rank " << rank << " of " << size << ": all right" << std::endl;
	return 0;
}
