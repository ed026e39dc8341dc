/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * One rtnetlink message in an skb, and a walk over its attributes.
 *
 * For the verifier: a walk remembers where a value lies as one unknown number,
 * which no branch chooses and no size depends on. So the ways through a loop are
 * alike and are not followed one by one, and it needs no CAP_PERFMON, as a pointer
 * that moves by a variable would.
 */
#ifndef ADDRTRACKER_MESSAGE_H
#define ADDRTRACKER_MESSAGE_H

#include "records.h"
#include "wire.h"

/* What becomes of a message. */
enum verdict {
	DROP = 0, /* concerns nobody, or says nothing new */
	WRITTEN,
	LOST,
	RAW, /* for user space to judge */
};

struct message {
	struct __sk_buff *skb;
	struct wire_nlmsg head;
	__u64 boot_ns; /* when it was seen */
};

struct attrs {
	__u32 next;
	__u32 end;
};

/* Of a value: the offset in the low half, its length in the high one; 0 = there is none. */
typedef __u64 place_t;

struct attr {
	place_t place;
	__u32 type;
};

static __always_inline __u32 offset_of(place_t place)
{
	return (__u32)place;
}

static __always_inline __u32 length_of(place_t place)
{
	return place >> 32;
}

/* False: it is not all there, and *to is zero. */
static __always_inline bool load(const struct message *msg, __u32 at, void *to, __u32 size)
{
	return bpf_skb_load_bytes(msg->skb, at, to, size) == 0;
}

/* Up to three bytes at the end are padding. */
static __always_inline bool more_attrs(const struct attrs *attrs)
{
	return attrs->next + sizeof(struct wire_attr) <= attrs->end;
}

/* False: a length that does not fit. */
static __always_inline bool next_attr(const struct message *msg, struct attrs *attrs,
				      struct attr *attr)
{
	struct wire_attr head;

	if (!load(msg, attrs->next, &head, sizeof(head)))
		return false;
	if (head.len < sizeof(head) || head.len > attrs->end - attrs->next)
		return false;
	attr->place = (__u64)(head.len - sizeof(head)) << 32 | (attrs->next + sizeof(head));
	attr->type = head.type & WIRE_ATTR_TYPE_MASK;
	attrs->next += WIRE_ALIGN(head.len);
	return true;
}

/* Remembers an attribute of this type: the last one counts. */
static __always_inline void keep(const struct attr *attr, __u32 type, place_t *place)
{
	__u64 mask = (__s64)((__u64)(attr->type ^ type) - 1) >> 63; /* all ones, or none */

	asm volatile("" : "+r"(mask));
	*place ^= (*place ^ attr->place) & mask;
}

/* A number that may be missing, which then stays as it is; false: it is too short. */
static __always_inline bool load_number(const struct message *msg, place_t place, void *to,
					__u32 size)
{
	return !place || (length_of(place) >= size && load(msg, offset_of(place), to, size));
}

static __always_inline bool is_ip(__u8 family)
{
	return family == WIRE_AF_INET || family == WIRE_AF_INET6;
}

/* Moves a pointer on by a constant; hides from the compiler that an index would do. */
#define STEP(pointer)                                                                              \
	do {                                                                                       \
		(pointer)++;                                                                       \
		asm volatile("" : "+r"(pointer));                                                  \
	} while (0)

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NETWORK_ORDER(word)  __builtin_bswap64(word)
#define FIRST_BYTE_LOW(word) (word)
#else
#define NETWORK_ORDER(word)  (word)
#define FIRST_BYTE_LOW(word) __builtin_bswap64(word)
#endif

#endif
