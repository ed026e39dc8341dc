/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The filter's maps for libbpf, which puts those that the reader made in their place. */
#ifndef ADDRTRACKER_MAPS_H
#define ADDRTRACKER_MAPS_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "filter.h"

#define AT_MAP(name) ((void *)&(name))

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} alarm SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AT_TYPES);
	__type(key, __u32);
	__type(value, struct at_count);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct at_shared);
} shared SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(__u32));
			/* Sizes: the BTF that clang writes of a type in here has no members. */
			__uint(value_size, sizeof(struct at_filter));
		});
} filters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, AT_LINKS_MAX);
	__type(key, __u32);
	__type(value, struct at_link);
} links SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, AT_WATCHED_MAX);
	__type(key, __u32);
	__type(value, __u32);
} watched SEC(".maps");

#endif
