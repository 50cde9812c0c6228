/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that loads the libraries at run time and asks for versions, as language bindings do. */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fail_dlopen(const char *what)
{
	const char *why = dlerror();

	fprintf(stderr, "%s: %s\n", what, why ? why : "wrong result");
	return 1;
}

/* The device's name, by the function of that library and version. */
static const char *device_name(void *lib, const char *version)
{
	struct ibv_device **(*list)(int *) =
		(struct ibv_device * *(*)(int *)) dlvsym(lib, "ibv_get_device_list", version);
	const char *(*name)(struct ibv_device *) =
		(const char *(*)(struct ibv_device *))dlvsym(lib, "ibv_get_device_name", version);
	struct ibv_device **all;
	int n = 0;

	if (!list || !name)
		return NULL;
	all = list(&n);
	return all && n == 1 ? name(all[0]) : NULL;
}

int main(void)
{
	void *verbs = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	void *rdmacm = dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL);
	struct ibv_context **(*devices)(int *), **all;
	const char *name;
	int n = 0;

	if (!verbs || !rdmacm)
		return fail_dlopen("dlopen");
	name = device_name(verbs, "IBVERBS_1.1");
	if (!name)
		return fail_dlopen("dlvsym in libibverbs.so.1");
	devices =
		(struct ibv_context * *(*)(int *)) dlvsym(rdmacm, "rdma_get_devices", "RDMACM_1.0");
	if (!devices)
		return fail_dlopen("dlvsym in librdmacm.so.1");
	/* One copy of the state: both libraries report the same device object. */
	all = devices(&n);
	if (!all || n != 1 || all[0]->device->name != name)
		return fail_dlopen("rdma_get_devices");
	if (dlvsym(verbs, "ibv_get_device_list", "IBVERBS_9.9"))
		return fail_dlopen("a version that does not exist");
	printf("%s\n", name);
	/* The threads that its device has go on living: a program that unloads a plug-in stays alive. */
	if (dlclose(rdmacm) || dlclose(verbs))
		return fail_dlopen("dlclose");
	usleep(100000);
	verbs = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!verbs || !device_name(verbs, "IBVERBS_1.1"))
		return fail_dlopen("dlopen once more");
	return 0;
}
