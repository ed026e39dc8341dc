// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "loader.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAPPED	   (128 * 1024) /* bytes, which is what glibc begins with */
#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

/*
 * Stands for the kernel's BTF where it has none. libbpf wants BTF for every object that has CO-RE
 * relocations, also where those of the program that is loaded need none; from an empty one the
 * relocations of any other program fail. Returns a descriptor or -errno.
 */
static int empty_btf(void)
{
	struct btf *btf = btf__new_empty();
	const void *data;
	__u32 size;
	int fd, error = 0;

	if (!btf)
		return -errno;
	fd = memfd_create("btf", MFD_CLOEXEC);
	if (fd < 0)
		error = -errno;
	data = btf__raw_data(btf, &size);
	if (!error && (!data || write(fd, data, size) != (ssize_t)size))
		error = -EIO;
	btf__free(btf);
	if (!error)
		return fd;
	if (fd >= 0)
		close(fd);
	return error;
}

static int use_maps(struct bpf_object *object, const struct at_map_fd *maps, size_t n)
{
	struct bpf_map *map = NULL;

	while ((map = bpf_object__next_map(object, map))) {
		const char *name = bpf_map__name(map);
		size_t i = 0;
		int error;

		if (bpf_map__is_internal(map))
			continue;
		while (i < n && strcmp(maps[i].name, name))
			i++;
		if (i == n) {
			at_log("map %s: the object has one, the caller has none\n", name);
			return -EINVAL;
		}
		error = bpf_map__reuse_fd(map, maps[i].fd);
		if (error) {
			at_log("map %s: cannot be used: %s\n", name, strerror(-error));
			return error;
		}
	}
	return 0;
}

int at_object_open(const void *object, size_t size, const struct at_map_fd *maps, size_t n,
		   struct at_object *out)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "addrtracker");
	struct bpf_program *program = NULL;
	char path[32];

#ifdef __GLIBC__
	/* libbpf reads the kernel's types, 12 MB: they shall go when they are freed, where glibc
	 * learns from the first ones to keep what is as large, and for threads never gives it back. */
	mallopt(M_MMAP_THRESHOLD, MAPPED);
#endif
	*out = (struct at_object){ .btf = -1 };
	if (access(KERNEL_BTF, R_OK)) {
		out->btf = empty_btf();
		if (out->btf < 0)
			return out->btf;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", out->btf);
		options.btf_custom_path = path;
	}
	out->bpf = bpf_object__open_mem(object, size, &options);
	if (!out->bpf)
		return -errno;
	while ((program = bpf_object__next_program(out->bpf, program)))
		bpf_program__set_autoload(program, false);
	return use_maps(out->bpf, maps, n);
}

void at_object_close(struct at_object *object)
{
	bpf_object__close(object->bpf);
	if (object->btf >= 0)
		close(object->btf);
}

static int load(const struct at_object *object, const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object->bpf, name);
	int error, fd;

	if (!program) {
		at_log("program %s: the object has none of this name\n", name);
		return -ENOENT;
	}
	bpf_program__set_autoload(program, true);
	error = bpf_object__load(object->bpf);
	if (error)
		return error;
	/* The object takes its own with it. */
	fd = fcntl(bpf_program__fd(program), F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

int at_bpf_load(const void *object, size_t size, const char *program, const struct at_map_fd *maps,
		size_t n, char *log, size_t log_size)
{
	struct at_object opened;
	int result;

	at_log_begin(log, log_size);
	result = at_object_open(object, size, maps, n, &opened);
	if (!result)
		result = load(&opened, program);
	at_object_close(&opened);
	at_log_end();
	return result;
}

const char *at_libbpf_version(void)
{
	return libbpf_version_string();
}
