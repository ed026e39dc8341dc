/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF tier in user space: the maps that the kernel's filter works on, what it
 * is told of the policies, and the capabilities that this takes. Needs libc only;
 * programs are loaded elsewhere (native/loader).
 */
#ifndef ADDRTRACKER_BPF_H
#define ADDRTRACKER_BPF_H

#include "../bpf/filter.h"
#include "engine.h"

/* File descriptors, -1 = none; the maps by their names in bpf/filter.h. */
struct at_bpf {
	int prog;
	int ring, alarm, counts, shared, filters, filter[2], links, watched, traced;
	uint32_t ring_bytes; /* a power of two, at least a page */
};

/* Makes all maps; prog is -1. Before Linux 5.11 their memory counts against RLIMIT_MEMLOCK, which is
 * raised where that is why a map is refused. 0, or -errno and nothing is left open. */
int at_bpf_create(struct at_bpf *b, uint32_t ring_bytes);
/* Puts the first filter in its place, before any program runs. The kernel waits for a grace period
 * at that, which takes it tens of milliseconds while it is busy. 0 or -errno. */
int at_bpf_place(const struct at_bpf *b);
void at_bpf_close(struct at_bpf *b);

/* What the filter in the kernel has to know of the engine's policies. */
void at_engine_filter(const struct at_engine *e, struct at_filter *out);
/* The links that a choice depends on, whatever they are called: by ifindex, each once. How many
 * there are; -ENOMEM. */
int at_engine_watched(const struct at_engine *e, uint32_t *out, size_t max);
/* Counts what may have changed the latter: compare it with an earlier one. */
uint32_t at_engine_moves(const struct at_engine *e);

/* Takes the capabilities that only opening a source needs from the calling thread, for good: a bit
 * for each one that it had, by number. CAP_BPF, or CAP_SYS_ADMIN without it, stays where the kernel wants one for maps.
 * 0 or -errno. */
int at_caps_drop(uint64_t *given_up);

#endif
