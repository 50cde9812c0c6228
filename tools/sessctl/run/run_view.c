/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The view is written by a child that loads the drop-in and asks it, so that it shows whatever
 * devices the program will have.  Its folder is named by what is in it: it stays, and a later run
 * finds it, or the files of it that something has removed are written again.  Others may have the
 * folder's fixed name before: then a folder with a name that nobody knew before is used.
 */
#include "sessctl/run/run_view.h"
#include "sessctl/run/run_nldev.h"
#include "common/system/user.h"
#include "view/view_counters.h"
#include <dirent.h>
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX 512
#define GIDS_MAX 256 /* of a port, that are shown */
#define FNV	 UINT64_C(0x100000001b3)

struct view {
	char root[PATH_MAX];
	uint64_t hash; /* of all names and contents */
	bool write;    /* else only @hash is made */
	int err;
};

/* The drop-in's functions that are not in the contexts. */
struct drop {
	struct ibv_device **(*list)(int *n);
	struct ibv_context *(*open)(struct ibv_device *dev);
	int (*query)(struct ibv_context *ctx, struct ibv_device_attr *attr);
	int (*gid)(struct ibv_context *ctx, uint32_t port, uint32_t index,
		   struct ibv_gid_entry *entry, uint32_t flags, size_t len);
	int (*pkey)(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey);
};

static void mix_view_hash(struct view *v, const void *octets, size_t len)
{
	const uint8_t *o = octets;

	for (size_t i = 0; i < len; i++)
		v->hash = (v->hash ^ o[i]) * FNV;
}

/* Folders on the way; a file of nobody but this user's is not in it, see run_view_write. */
static void make_folders(char *path, size_t from)
{
	for (char *at = path + from; (at = strchr(at + 1, '/')) != NULL; *at = '/') {
		*at = 0;
		mkdir(path, 0755);
	}
}

static int write_view_octets(const char *path, const void *octets, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	bool bad = fd < 0 || write(fd, octets, len) != (ssize_t)len || fchmod(fd, 0644);

	if (fd >= 0)
		bad |= close(fd) != 0;
	return bad ? -1 : 0;
}

/* A file or a link, whole from the first moment that it is there. */
static void put_view_file(struct view *v, const char *name, const void *octets, size_t len,
			  bool link)
{
	char path[PATH_MAX + TEXT_MAX], temp[PATH_MAX + TEXT_MAX + 32];
	struct stat st;

	mix_view_hash(v, name, strlen(name) + 1);
	mix_view_hash(v, octets, len);
	if (!v->write || v->err)
		return;
	snprintf(path, sizeof path, "%s/%s", v->root, name);
	if (!lstat(path, &st))
		return;
	make_folders(path, strlen(v->root));
	snprintf(temp, sizeof temp, "%s.%d", path, (int)getpid());
	if ((link ? symlink(octets, temp) : write_view_octets(temp, octets, len)) ||
	    rename(temp, path))
		v->err = errno;
}

static void put_view_link(struct view *v, const char *name, const char *target)
{
	put_view_file(v, name, target, strlen(target) + 1, true);
}

__attribute__((format(printf, 3, 4))) static void file(struct view *v, const char *name,
						       const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text - 1, fmt, ap);
	va_end(ap);
	strcat(text, "\n");
	put_view_file(v, name, text, strlen(text), false);
}

/* As the kernel writes 8 octets of a GID or a GUID. */
static void guid_text(char *to, size_t len, const void *guid)
{
	const uint8_t *g = guid;

	snprintf(to, len, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3], g[4], g[5],
		 g[6], g[7]);
}

static const char *gid_type(uint32_t type)
{
	return type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1";
}

static void one_gid(struct view *v, const char *port, uint32_t i, const struct ibv_gid_entry *e)
{
	char name[TEXT_MAX], high[24], low[24], ifname[IF_NAMESIZE] = "";

	guid_text(high, sizeof high, e->gid.raw);
	guid_text(low, sizeof low, e->gid.raw + 8);
	snprintf(name, sizeof name, "%s/gids/%u", port, i);
	file(v, name, "%s:%s", high, low);
	snprintf(name, sizeof name, "%s/gid_attrs/types/%u", port, i);
	file(v, name, "%s", gid_type(e->gid_type));
	if (!if_indextoname(e->ndev_ifindex, ifname))
		return;
	snprintf(name, sizeof name, "%s/gid_attrs/ndevs/%u", port, i);
	file(v, name, "%s", ifname);
}

/* The interface that the port is on, from its first GID; for programs that look for its address. */
static void put_view_interface(struct view *v, const char *dev, const struct ibv_gid_entry *e)
{
	char name[TEXT_MAX], target[TEXT_MAX], ifname[IF_NAMESIZE];

	if (!if_indextoname(e->ndev_ifindex, ifname))
		return;
	snprintf(name, sizeof name, "sys/class/infiniband/%s/device/net/%s", dev, ifname);
	snprintf(target, sizeof target, "/sys/class/net/%s", ifname);
	put_view_link(v, name, target);
}

static unsigned lanes(const struct ibv_port_attr *a)
{
	static const unsigned n[] = { [1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2 };

	return a->active_width < sizeof n / sizeof *n ? n[a->active_width] : 0;
}

/* Tenths of Gb/s of a lane, and its name. */
static unsigned speed(const struct ibv_port_attr *a, const char **name)
{
	static const struct {
		unsigned code, tenths;
		const char *name;
	} all[] = {
		{ 1, 25, "SDR" },   { 2, 50, "DDR" },	{ 4, 100, "QDR" },  { 8, 100, "FDR10" },
		{ 16, 140, "FDR" }, { 32, 250, "EDR" }, { 64, 500, "HDR" }, { 128, 1000, "NDR" }
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].code == a->active_speed) {
			*name = all[i].name;
			return all[i].tenths;
		}
	*name = "?";
	return 0;
}

static void port_state(struct view *v, const char *port, const struct ibv_port_attr *a)
{
	static const char *const states[] = { "NOP",   "DOWN",	 "INIT",
					      "ARMED", "ACTIVE", "ACTIVE_DEFER" };
	static const char *const phys[] = { [2] = "Polling", [3] = "Disabled", [5] = "LinkUp" };
	bool known = a->phys_state < sizeof phys / sizeof *phys && phys[a->phys_state];
	const char *gen;
	unsigned rate = lanes(a) * speed(a, &gen);
	char name[TEXT_MAX];

#define ATTR(file_name, ...)                                                                       \
	do {                                                                                       \
		snprintf(name, sizeof name, "%s/" file_name, port);                                \
		file(v, name, __VA_ARGS__);                                                        \
	} while (0)
	ATTR("state", "%d: %s", a->state, a->state <= 5 ? states[a->state] : "?");
	ATTR("phys_state", "%d: %s", a->phys_state, known ? phys[a->phys_state] : "?");
	if (rate % 10)
		ATTR("rate", "%u.%u Gb/sec (%uX %s)", rate / 10, rate % 10, lanes(a), gen);
	else
		ATTR("rate", "%u Gb/sec (%uX %s)", rate / 10, lanes(a), gen);
	ATTR("link_layer", "%s",
	     a->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
	ATTR("lid", "0x%x", a->lid);
	ATTR("lid_mask_count", "%d", a->lmc);
	ATTR("sm_lid", "0x%x", a->sm_lid);
	ATTR("sm_sl", "%d", a->sm_sl);
	ATTR("cap_mask", "0x%08x", a->port_cap_flags);
}

static void put_nldev_file(struct view *v, const char *name, const struct run_nldev *n)
{
	put_view_file(v, name, n->octets, n->len, false);
}

static void port(struct view *v, const struct drop *d, struct ibv_context *ctx, int index,
		 uint8_t n)
{
	struct verbs_context *vc = verbs_get_ctx(ctx);
	const char *dev = ctx->device->name;
	struct ibv_gid_entry e, first;
	struct run_nldev nl;
	bool found = false;
	struct ibv_port_attr a;
	char path[128], name[TEXT_MAX];
	__be16 pkey;

	if (!vc || vc->query_port(ctx, n, &a, sizeof a))
		return;
	snprintf(path, sizeof path, "sys/class/infiniband/%s/ports/%d", dev, n);
	port_state(v, path, &a);
	for (int i = 0; i < a.pkey_tbl_len && !d->pkey(ctx, n, i, &pkey); i++) {
		snprintf(name, sizeof name, "%s/pkeys/%d", path, i);
		file(v, name, "0x%04x", be16toh(pkey));
	}
	for (uint32_t i = 0; i < (uint32_t)a.gid_tbl_len && i < GIDS_MAX; i++) {
		if (d->gid(ctx, n, i, &e, 0, sizeof e))
			continue;
		one_gid(v, path, i, &e);
		put_view_interface(v, dev, &e);
		if (!found)
			first = e;
		found = true;
	}
	run_nldev_port(&nl, ctx->device, index, n, &a, found ? &first : NULL);
	snprintf(name, sizeof name, "nldev/%d.%d", index, n);
	put_nldev_file(v, name, &nl);
}

/* Their values come when they are read (src/view/view_count.c); one port has them. */
static void put_counter_files(struct view *v, const char *dev)
{
	static const char *const names[] = {
#define COUNTER_FILE(folder, name) #folder "/" #name,
		VIEW_COUNTERS(COUNTER_FILE)
	};
	char name[TEXT_MAX];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(name, sizeof name, "sys/class/infiniband/%s/ports/1/%s", dev, names[i]);
		file(v, name, "0");
	}
}

#define MELLANOX 0x2c9u /* an IEEE OUI */

static void put_view_device(struct view *v, const struct drop *d, struct ibv_context *ctx,
			    int index)
{
	static const char *const types[] = { "?",    "CA",    "SWITCH",	   "ROUTER",
					     "RNIC", "usNIC", "usNIC UDP", "unspecified" };
	const struct ibv_device *dev = ctx->device;
	unsigned type = (unsigned)dev->node_type;
	struct verbs_context *vc = verbs_get_ctx(ctx);
	struct ibv_port_attr first;
	struct ibv_device_attr a;
	char name[TEXT_MAX], guid[24];
	struct run_nldev nl;

	if (d->query(ctx, &a) || !vc || vc->query_port(ctx, 1, &first, sizeof first))
		return;
#define OF_DEVICE(file_name, ...)                                                                  \
	do {                                                                                       \
		snprintf(name, sizeof name, "sys/class/infiniband/%s/" file_name, dev->name);      \
		file(v, name, __VA_ARGS__);                                                        \
	} while (0)
	OF_DEVICE("node_type", "%u: %s", type, type < 8 ? types[type] : "?");
	guid_text(guid, sizeof guid, &a.node_guid);
	OF_DEVICE("node_guid", "%s", guid);
	guid_text(guid, sizeof guid, &a.sys_image_guid);
	OF_DEVICE("sys_image_guid", "%s", guid);
	OF_DEVICE("fw_ver", "%s", a.fw_ver);
	OF_DEVICE("hw_rev", "%x", a.hw_ver);
	/* As mlx5 names its own, for programs that look for such an adapter. */
	if (a.vendor_id == MELLANOX && a.vendor_part_id)
		OF_DEVICE("hca_type", "MT%u", a.vendor_part_id);
	else
		OF_DEVICE("hca_type", "ddpsess");
	OF_DEVICE("board_id", "ddpsess");
	OF_DEVICE("node_desc", "%s", dev->name);
	for (int n = 1; n <= a.phys_port_cnt; n++)
		port(v, d, ctx, index, (uint8_t)n);
	if (!index)
		put_counter_files(v, dev->name);
	snprintf(name, sizeof name, "sys/class/infiniband_verbs/%s/ibdev", dev->dev_name);
	file(v, name, "%s", dev->name);
	snprintf(name, sizeof name, "sys/class/infiniband_verbs/%s/abi_version", dev->dev_name);
	file(v, name, "1");
	snprintf(name, sizeof name, "sys/class/infiniband_verbs/%s/dev", dev->dev_name);
	file(v, name, "231:%d", 192 + index);
	/* A character device that may be read and written, which is what programs want to know. */
	snprintf(name, sizeof name, "dev/infiniband/%s", dev->dev_name);
	put_view_link(v, name, "/dev/null");
	run_nldev_device(&nl, dev, index, &a, &first);
	snprintf(name, sizeof name, "nldev/%d", index);
	put_nldev_file(v, name, &nl);
}

static void describe_view(struct view *v, const struct drop *d, struct ibv_context **ctx, int n)
{
	struct run_nldev nl;

	v->hash = UINT64_C(0xcbf29ce484222325);
	for (int i = 0; i < n; i++)
		put_view_device(v, d, ctx[i], i);
	put_view_link(v, "dev/infiniband/rdma_cm", "/dev/null");
	file(v, "sys/class/infiniband_verbs/abi_version", "6");
	run_nldev_system(&nl);
	put_nldev_file(v, "nldev/sys", &nl);
}

static bool is_own_folder(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && ddps_user_is_own(st.st_uid) &&
	       !(st.st_mode & 022);
}

/* One next to @name in @base, which an earlier run made. */
static bool find_own_folder(const char *base, const char *name, char *path, size_t len)
{
	DIR *dir = opendir(base);
	size_t n = strlen(name);
	struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir)) != NULL) {
		if (strncmp(e->d_name, name, n) || e->d_name[n] != '.')
			continue;
		snprintf(path, len, "%s/%s", base, e->d_name);
		found = is_own_folder(path);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Whoever has the name first, this user has a folder.  Return: 0 or errno. */
static int make_own_folder(const char *base, char *path, size_t len)
{
	char name[64];

	snprintf(name, sizeof name, "ddpsess-view-%u", (unsigned)geteuid());
	snprintf(path, len, "%s/%s", base, name);
	if (!mkdir(path, 0755) || is_own_folder(path) || find_own_folder(base, name, path, len))
		return 0;
	snprintf(path, len, "%s/%s.XXXXXX", base, name);
	return mkdtemp(path) && !chmod(path, 0755) ? 0 : errno;
}

/* A folder that nobody else can write to.  Return: 0 or errno. */
static int own_folder(char *path, size_t len)
{
	const char *run = getenv("XDG_RUNTIME_DIR");

	if (run && *run == '/' && geteuid() && !make_own_folder(run, path, len))
		return 0;
	return make_own_folder("/tmp", path, len);
}

/* dlsym's object pointer as a function's: POSIX wants them to be alike. */
static bool find_symbol(void *lib, const char *name, void *to)
{
	void *f = dlsym(lib, name);

	memcpy(to, &f, sizeof f);
	return f;
}

static bool load_drop_in(struct drop *d, const char *library)
{
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	return lib && find_symbol(lib, "ibv_get_device_list", &d->list) &&
	       find_symbol(lib, "ibv_open_device", &d->open) &&
	       find_symbol(lib, "ibv_query_device", &d->query) &&
	       find_symbol(lib, "_ibv_query_gid_ex", &d->gid) &&
	       find_symbol(lib, "ibv_query_pkey", &d->pkey);
}

struct answer {
	int err, without_device;
	char root[PATH_MAX];
};

/* The child's work. */
static void ask_drop_in(const char *library, struct answer *a)
{
	struct ibv_context **ctx;
	struct view v = { 0 };
	struct ibv_device **list;
	struct drop d;
	char base[PATH_MAX / 2], live[PATH_MAX + sizeof "/" VIEW_LIVE];
	int n = 0;

	a->err = own_folder(base, sizeof base);
	if (a->err)
		return;
	a->without_device = 1;
	list = load_drop_in(&d, library) ? d.list(&n) : NULL;
	ctx = list ? calloc((size_t)n + 1, sizeof(*ctx)) : NULL;
	if (!ctx)
		return;
	for (int i = 0; i < n; i++) {
		ctx[i] = d.open(list[i]);
		if (!ctx[i])
			return;
	}
	a->without_device = 0;
	describe_view(&v, &d, ctx, n);
	snprintf(v.root, sizeof v.root, "%s/%016" PRIx64, base, v.hash);
	mkdir(v.root, 0755);
	v.write = true;
	describe_view(&v, &d, ctx, n);
	snprintf(live, sizeof live, "%s/" VIEW_LIVE, v.root);
	if (mkdir(live, S_IRWXU) && errno != EEXIST)
		v.err = errno;
	a->err = v.err;
	memcpy(a->root, v.root, sizeof a->root);
}

int run_view_write(const char *library, char root[PATH_MAX], struct run_fault *f)
{
	struct answer a = { .err = ECHILD };
	int ends[2], null;
	ssize_t got = -1;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	child = fork();
	if (!child) {
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(null,
		     STDERR_FILENO); /* the program will say what is wrong with its settings */
		/* Faults, their trace and captures are the program's. */
		setenv("DDPSESS_FAULTS", "", 1);
		setenv("DDPSESS_TRACE", "", 1);
		setenv("DDPSESS_CAPTURE", "", 1);
		umask(022);
		ask_drop_in(library, &a);
		_exit(write(ends[1], &a, sizeof a) != sizeof a);
	}
	close(ends[1]);
	if (child > 0) {
		got = read(ends[0], &a, sizeof a);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	if (got == sizeof a && a.without_device)
		return -2;
	if (got == sizeof a && !a.err) {
		memcpy(root, a.root, PATH_MAX);
		return 0;
	}
	snprintf(f->why, sizeof f->why, "no view of /sys/class/infiniband can be written: %s",
		 strerror(got == sizeof a ? a.err : ECHILD));
	snprintf(f->try, sizeof f->try,
		 "--view off, or a folder that you may write to in XDG_RUNTIME_DIR");
	return -1;
}
