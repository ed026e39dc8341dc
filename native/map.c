// SPDX-License-Identifier: Apache-2.0
/* The maps of the BPF tier. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "bpf.h"
#include "map.h"

#define CPUS_MAX 8192 /* what a kernel can be built for */

static int call(int command, union bpf_attr *attr)
{
	long result = syscall(__NR_bpf, command, attr, sizeof(*attr));

	return result < 0 ? -errno : (int)result;
}

static int on_element(int command, int fd, uint32_t key, const void *value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)fd;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)value;
	return call(command, &attr);
}

int at_map_lookup(int fd, uint32_t key, void *value)
{
	return on_element(BPF_MAP_LOOKUP_ELEM, fd, key, value);
}

int at_map_update(int fd, uint32_t key, const void *value)
{
	return on_element(BPF_MAP_UPDATE_ELEM, fd, key, value);
}

int at_map_delete(int fd, uint32_t key)
{
	return on_element(BPF_MAP_DELETE_ELEM, fd, key, NULL);
}

/* `key` NULL: the first one. -ENOENT: that was the last. */
static int next_key(int fd, const uint32_t *key, uint32_t *next)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)fd;
	attr.key = (uintptr_t)key;
	attr.next_key = (uintptr_t)next;
	return call(BPF_MAP_GET_NEXT_KEY, &attr);
}

int at_map_clear(int fd)
{
	uint32_t key, next;
	int err = next_key(fd, NULL, &key), last = err;

	/* A key that somebody else deleted meanwhile makes the kernel begin anew. */
	for (int i = 0; i < AT_LINKS_MAX && last == 0; i++) {
		last = next_key(fd, &key, &next);
		err = at_map_delete(fd, key);
		if (err < 0 && err != -ENOENT)
			return err;
		key = next;
	}
	if (last == 0)
		return -EAGAIN;
	return last == -ENOENT ? 0 : last;
}

int at_map_entries(int fd, uint32_t *entries)
{
	struct bpf_map_info info;
	union bpf_attr attr;
	int err;

	memset(&info, 0, sizeof(info));
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uintptr_t)&info;
	err = call(BPF_OBJ_GET_INFO_BY_FD, &attr);
	*entries = info.max_entries;
	return err;
}

unsigned at_possible_cpus(void)
{
	char text[64]; /* "0-127", or "0,2-5": the last number is what counts */
	ssize_t size = -1;
	int fd = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
	char *last;

	if (fd >= 0) {
		size = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (size <= 0 || text[size - 1] != '\n')
		return CPUS_MAX;
	text[size] = 0;
	for (last = text + size - 1; last > text && !strchr("-,", last[-1]); last--)
		;
	return (unsigned)strtoul(last, NULL, 10) + 1;
}

struct spec {
	const char *name;
	uint32_t type, key, value, entries, flags;
	int inner;
};

static int create(const struct spec *spec)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = spec->type;
	attr.key_size = spec->key;
	attr.value_size = spec->value;
	attr.max_entries = spec->entries;
	attr.map_flags = spec->flags;
	attr.inner_map_fd = (uint32_t)spec->inner;
	strncpy(attr.map_name, spec->name, sizeof(attr.map_name) - 1);
	return call(BPF_MAP_CREATE, &attr);
}

static int create_all(struct at_bpf *b)
{
	struct {
		int *fd;
		struct spec spec;
	} maps[] = {
		{ &b->ring, { "at_ring", BPF_MAP_TYPE_RINGBUF, 0, 0, b->ring_bytes, 0, 0 } },
		{ &b->alarm,
		  { "at_alarm", BPF_MAP_TYPE_RINGBUF, 0, 0, (uint32_t)sysconf(_SC_PAGESIZE), 0,
		    0 } },
		{ &b->counts,
		  { "at_counts", BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct at_count), AT_TYPES, 0,
		    0 } },
		{ &b->shared,
		  { "at_shared", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct at_shared), 1, BPF_F_MMAPABLE,
		    0 } },
		{ &b->filter[0],
		  { "at_filter0", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct at_filter), 1, 0, 0 } },
		{ &b->filter[1],
		  { "at_filter1", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct at_filter), 1, 0, 0 } },
		{ &b->filters, { "at_filters", BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 1, 0, 0 } },
		{ &b->links,
		  { "at_links", BPF_MAP_TYPE_HASH, 4, sizeof(struct at_link), AT_LINKS_MAX,
		    BPF_F_NO_PREALLOC, 0 } },
		{ &b->watched,
		  { "at_watched", BPF_MAP_TYPE_HASH, 4, 4, AT_WATCHED_MAX, BPF_F_NO_PREALLOC, 0 } },
		{ &b->traced,
		  { "at_traced", BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct at_traced), 1, 0,
		    0 } },
	};
	size_t i;

	for (i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		if (maps[i].spec.type == BPF_MAP_TYPE_ARRAY_OF_MAPS)
			maps[i].spec.inner = b->filter[0];
		*maps[i].fd = create(&maps[i].spec);
		if (*maps[i].fd < 0)
			return *maps[i].fd;
	}
	return 0;
}

static void forget(struct at_bpf *b)
{
	b->prog = b->ring = b->alarm = b->counts = b->shared = b->filters = -1;
	b->filter[0] = b->filter[1] = b->links = b->watched = b->traced = -1;
}

int at_bpf_create(struct at_bpf *b, uint32_t ring_bytes)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	int err;

	b->ring_bytes = ring_bytes;
	forget(b);
	err = create_all(b);
	if (err == -EPERM && setrlimit(RLIMIT_MEMLOCK, &all) == 0) {
		at_bpf_close(b);
		err = create_all(b);
	}
	if (err < 0)
		at_bpf_close(b);
	return err;
}

int at_bpf_place(const struct at_bpf *b)
{
	return at_map_update(b->filters, 0, &b->filter[0]);
}

void at_bpf_close(struct at_bpf *b)
{
	int fds[] = { b->prog,	    b->ring,	  b->alarm, b->counts,	b->shared, b->filters,
		      b->filter[0], b->filter[1], b->links, b->watched, b->traced };
	size_t i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	forget(b);
}
