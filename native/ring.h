/* SPDX-License-Identifier: Apache-2.0 */
/* A BPF ring buffer as its only reader sees it. */
#ifndef ADDRTRACKER_RING_H
#define ADDRTRACKER_RING_H

#include <stddef.h>
#include <stdint.h>

#define AT_WINDOW 64 /* records that are put in order before they are applied */

struct at_ring {
	size_t size;		       /* bytes of data, a power of two */
	unsigned long *consumer;       /* a page of its own, ours to write */
	const unsigned long *producer; /* a page, then the data twice in a row */
	const uint8_t *data;
};

/* Records that are next, the oldest first. */
struct at_window {
	size_t n;
	unsigned long end; /* where the reader is when all of them are done with */
	struct at_sample {
		const uint8_t *record;
		size_t size;	  /* bytes that the ring says it has */
		uint64_t boot_ns; /* 0: too short to have one */
	} sample[AT_WINDOW];
};

/* 0 or -errno; unmap what was zero, or mapped in part, does no harm. */
int at_ring_map(struct at_ring *r, int fd, size_t size);
void at_ring_unmap(struct at_ring *r);
/* What is committed, at most AT_WINDOW records, by boot_ns. *newest is the largest one that was
 * seen; how many of them came behind a newer one. */
size_t at_ring_window(const struct at_ring *r, struct at_window *w, uint64_t *newest);
/* Gives the room of a window back to the kernel. */
void at_ring_release(struct at_ring *r, const struct at_window *w);
/* Releases all that is committed, unread. */
void at_ring_skip(struct at_ring *r);

#endif
