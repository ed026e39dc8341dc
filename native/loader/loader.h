/* SPDX-License-Identifier: Apache-2.0 */
/* Loads our BPF objects through the shared libbpf. */
#ifndef ADDRTRACKER_LOADER_H
#define ADDRTRACKER_LOADER_H

#include <stddef.h>

/* A map that the caller made, and what the object calls it. */
struct at_map_fd {
	const char *name;
	int fd;
};

/*
 * Loads one program of an object (the bytes of an ELF file) onto maps that there are already.
 * Returns a descriptor of the program, or -errno: -ENOENT for a program that the object has not,
 * -EINVAL for a map that the caller has not. What libbpf and the verifier say goes into `log`, as
 * text with a final 0; what does not fit goes at its beginning.
 */
int at_bpf_load(const void *object, size_t size, const char *program, const struct at_map_fd *maps,
		size_t n, char *log, size_t log_size);

/* "1.1", for a report. */
const char *at_libbpf_version(void);

/* Within the extension. What this thread's calls of libbpf say goes into `log` from at_log_begin()
 * to at_log_end(). */
void at_log_begin(char *log, size_t size);
void at_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
void at_log_end(void);

struct at_object {
	struct bpf_object *bpf;
	int btf; /* what libbpf reads in place of the kernel's BTF, or -1 */
};

/* Opens an object with nothing loaded, none of its programs chosen, and its maps replaced by the
 * caller's. 0 or -errno; what it leaves is to be closed in both cases. */
int at_object_open(const void *object, size_t size, const struct at_map_fd *maps, size_t n,
		   struct at_object *out);
void at_object_close(struct at_object *object);

#endif
