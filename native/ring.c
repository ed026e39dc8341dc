// SPDX-License-Identifier: Apache-2.0
/* Reading of a BPF ring buffer (kernel/bpf/ringbuf.c), without a system call. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "../bpf/records.h"
#include "ring.h"

static size_t page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int at_ring_map(struct at_ring *r, int fd, size_t size)
{
	void *at = mmap(NULL, page(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	r->consumer = at;
	r->size = size;
	at = mmap(NULL, page() + 2 * size, PROT_READ, MAP_SHARED, fd, (off_t)page());
	if (at == MAP_FAILED)
		return -errno;
	r->producer = at;
	r->data = (const uint8_t *)at + page();
	return 0;
}

void at_ring_unmap(struct at_ring *r)
{
	if (r->consumer)
		munmap(r->consumer, page());
	if (r->producer)
		munmap((void *)r->producer, page() + 2 * r->size);
	memset(r, 0, sizeof(*r));
}

/* The record at *at if it is committed, and *at moves behind it; 0: there is none (yet). */
static int next(const struct at_ring *r, unsigned long *at, struct at_sample *s, int *discarded)
{
	const uint8_t *head = r->data + (*at & (r->size - 1));
	uint32_t length;

	/* The producer is published after the head of its record, which then is busy. */
	if (*at == __atomic_load_n(r->producer, __ATOMIC_ACQUIRE))
		return 0;
	length = __atomic_load_n((const uint32_t *)head, __ATOMIC_ACQUIRE);
	if (length & BPF_RINGBUF_BUSY_BIT)
		return 0;
	*discarded = !!(length & BPF_RINGBUF_DISCARD_BIT);
	s->record = head + BPF_RINGBUF_HDR_SZ;
	s->size = length & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
	*at += (s->size + BPF_RINGBUF_HDR_SZ + 7) & ~7ul;
	return 1;
}

/* Behind all that are not newer. */
static void insert(struct at_window *w, const struct at_sample *s)
{
	size_t i = w->n++;

	for (; i > 0 && w->sample[i - 1].boot_ns > s->boot_ns; i--)
		w->sample[i] = w->sample[i - 1];
	w->sample[i] = *s;
}

/*
 * The program takes the time when it starts, and room in the ring when it knows that it needs some,
 * so programs on two CPUs can do the one in one order and the other in the other. What a window
 * does not put right is applied late, which is no harm: such records never concern the same key.
 * The kernel changes a key and announces it under one lock (RTNL, or that of the table), which it
 * holds while the program runs.
 */
size_t at_ring_window(const struct at_ring *r, struct at_window *w, uint64_t *newest)
{
	struct at_sample s;
	size_t late = 0;
	int discarded;

	w->n = 0;
	w->end = *r->consumer; /* nobody else writes it */
	while (w->n < AT_WINDOW && next(r, &w->end, &s, &discarded)) {
		if (discarded)
			continue;
		s.boot_ns = 0;
		if (s.size >= sizeof(struct at_header))
			s.boot_ns = ((const struct at_header *)s.record)->boot_ns;
		if (s.boot_ns < *newest)
			late++;
		else
			*newest = s.boot_ns;
		insert(w, &s);
	}
	return late;
}

void at_ring_release(struct at_ring *r, const struct at_window *w)
{
	if (*r->consumer != w->end)
		__atomic_store_n(r->consumer, w->end, __ATOMIC_RELEASE);
}

void at_ring_skip(struct at_ring *r)
{
	struct at_window end = { .end = *r->consumer };
	struct at_sample s;
	int discarded;

	while (next(r, &end.end, &s, &discarded))
		;
	at_ring_release(r, &end);
	/*
	 * A program adds to the losses and then looks for room in the ring of alarms; the reader
	 * makes room and then looks at the losses. Of two who do so at once, one has to see what
	 * the other did, else a loss is told to nobody until the next one.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
