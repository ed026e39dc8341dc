/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Ways into the ring, and what is said where there is none. */
#ifndef ADDRTRACKER_BPF_RING_H
#define ADDRTRACKER_BPF_RING_H

#include "filter.h"
#include "message.h"
#ifdef AT_TASKS
#include "task.h"
#endif

#define ALL_SCOPES ((1u << AT_SCOPES) - 1)
#define RULES	   (1u << AT_SCOPES) /* not a scope of the state: see at_shared */

/* Not merged with others by the compiler, which would make one addition to a chosen pointer. */
static __always_inline void add(__u64 *counter)
{
	asm volatile("" : "+r"(counter));
	__sync_fetch_and_add(counter, 1);
}

static __always_inline void fill_head(const struct message *msg, struct at_header *head, __u8 kind,
				      __u16 size, __u32 flags)
{
	*head = (struct at_header){
		.size = size,
		.version = AT_RECORD_VERSION,
		.kind = kind,
		/* Of every kind the new message has an even type, the deletion the next one. */
		.op = msg->head.type & 1 ? AT_OP_DEL : AT_OP_NEW,
		.nl_flags = msg->head.flags,
		.flags = flags,
		.boot_ns = msg->boot_ns,
		.portid = msg->head.pid,
	};
}

/*
 * A reader that sleeps over records which woke nobody is not woken by an adaptive
 * wake-up: that is for the record which the reader waits for, and there are others
 * in front of it. So the wake-up is forced.
 */
static __always_inline __u64 wake_up(bool quiet)
{
	if (quiet && bpf_ringbuf_query(AT_MAP(ring), BPF_RB_AVAIL_DATA) <=
			     bpf_ringbuf_query(AT_MAP(ring), BPF_RB_RING_SIZE) / 4)
		return BPF_RB_NO_WAKEUP;
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline enum verdict
write_link(const struct message *msg, const struct at_link *link, bool quiet, const bool tasks)
{
	struct {
		struct at_header head;
		struct at_link link;
		struct at_task task;
	} *record;
	const __u32 size = sizeof(*record) - (tasks ? 0 : sizeof(record->task));
	__u32 flags = 0;

	record = bpf_ringbuf_reserve(AT_MAP(ring), size, 0);
	if (!record)
		return LOST;
#ifdef AT_TASKS
	if (tasks)
		flags = read_task(&record->task);
#endif
	fill_head(msg, &record->head, AT_KIND_LINK, size, flags);
	record->link = *link;
	bpf_ringbuf_submit(record, wake_up(quiet));
	return WRITTEN;
}

/* `room` bytes, a power of two, are enough for the message. */
static __always_inline enum verdict copy_message(const struct message *msg, const __u32 room,
						 bool quiet, const bool tasks)
{
	__u32 last = msg->head.len - 1, flags = 0;
	struct {
		struct at_header head;
		struct at_raw raw;
	} *record;

	record = bpf_ringbuf_reserve(AT_MAP(ring), sizeof(*record) + room, 0);
	if (!record)
		return LOST;
#ifdef AT_TASKS
	if (tasks)
		flags = read_task(&record->raw.task);
	else
#endif
		record->raw.task = (struct at_task){};
	fill_head(msg, &record->head, AT_KIND_RAW, sizeof(*record) + msg->head.len, flags);
	/* The verifier has to see that the size is neither 0 nor too large. */
	asm volatile("" : "+r"(last));
	load(msg, 0, record + 1, (last & (room - 1)) + 1);
	bpf_ringbuf_submit(record, wake_up(quiet));
	return WRITTEN;
}

static __always_inline enum verdict write_raw(const struct message *msg, bool quiet,
					      const bool tasks)
{
	if (msg->head.len <= 256)
		return copy_message(msg, 256, quiet, tasks);
	if (msg->head.len <= 2048)
		return copy_message(msg, 2048, quiet, tasks);
	if (msg->head.len <= 16384)
		return copy_message(msg, 16384, quiet, tasks);
	return LOST;
}

/* What a message that got lost was about. */
static __always_inline __u32 scopes_of(const struct message *msg)
{
	__u8 family = 0;

	/* The first byte of every one of these messages. */
	load(msg, sizeof(msg->head), &family, sizeof(family));
	switch (msg->head.type) {
	case WIRE_RTM_NEWLINK:
	case WIRE_RTM_DELLINK:
		return 1u << AT_SCOPE_LINK;
	case WIRE_RTM_NEWADDR:
	case WIRE_RTM_DELADDR:
		return family == WIRE_AF_INET  ? 1u << AT_SCOPE_ADDR4 :
		       family == WIRE_AF_INET6 ? 1u << AT_SCOPE_ADDR6 :
						 1u << AT_SCOPE_ADDR4 | 1u << AT_SCOPE_ADDR6;
	case WIRE_RTM_NEWROUTE:
	case WIRE_RTM_DELROUTE:
		return family == WIRE_AF_INET  ? 1u << AT_SCOPE_ROUTE4 :
		       family == WIRE_AF_INET6 ? 1u << AT_SCOPE_ROUTE6 :
						 1u << AT_SCOPE_ROUTE4 | 1u << AT_SCOPE_ROUTE6;
	case WIRE_RTM_NEWRULE:
	case WIRE_RTM_DELRULE:
		return RULES;
	default:
		return 1u << AT_SCOPE_NEXTHOP;
	}
}

/* There was no room in the ring, or its lock was not to be had: say so beside it. */
static __always_inline void lose(__u32 scopes)
{
	struct at_shared *losses;
	__u64 nothing = 0;
	__u32 zero = 0;

	losses = bpf_map_lookup_elem(AT_MAP(shared), &zero);
	if (!losses)
		return;
#pragma clang loop unroll(full)
	for (int scope = 0; scope <= AT_SCOPES; scope++) {
		if (scopes & 1u << scope)
			add(&losses->lost[scope]);
	}
	/* Where there is no room either, the reader has been woken and has not come yet. */
	bpf_ringbuf_output(AT_MAP(alarm), &nothing, sizeof(nothing), BPF_RB_FORCE_WAKEUP);
}

#endif
