/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Whether a route may matter. A full BGP table passes here: most are told by their header. */
#ifndef ADDRTRACKER_ROUTE_H
#define ADDRTRACKER_ROUTE_H

#include "filter.h"
#include "message.h"

/* Loops are unrolled here: see struct variant. */
#define UNROLL _Pragma("clang loop unroll(full)")

/* The kernel writes RTA_TABLE first and RTA_DST next to it. */
#define DST_WITHIN 4

static __always_inline bool is_wanted_table(const struct at_filter *filter, __u32 table)
{
	UNROLL
	for (int i = 0; i < AT_TABLES_MAX; i++) {
		if (i >= filter->n_tables)
			break;
		if (filter->tables[i] == table)
			return true;
	}
	return false;
}

/* The bits of an address that a prefix of this length compares, as words in memory's order. */
static __always_inline void mask_of(__u32 length, __u64 mask[2])
{
	__u64 first = length >= 64 ? ~0ull : ~(~0ull >> (length & 63));
	__u64 second = length >= 128 ? ~0ull : length > 64 ? ~(~0ull >> (length & 63)) : 0;

	mask[0] = NETWORK_ORDER(first);
	mask[1] = NETWORK_ORDER(second);
}

static __always_inline bool covers_target(const struct message *msg, const struct at_filter *filter,
					  const struct wire_rtmsg *rtm)
{
	struct attrs attrs = { sizeof(msg->head) + sizeof(*rtm), msg->head.len };
	__u32 length = rtm->family == WIRE_AF_INET ? 4 : 16;
	__u64 dst[2] = {}, mask[2];
	struct attr attr;
	place_t at = 0;

	UNROLL
	for (int i = 0; i < DST_WITHIN && more_attrs(&attrs); i++) {
		if (!next_attr(msg, &attrs, &attr))
			return true;
		keep(&attr, WIRE_RTA_DST, &at);
	}
	if (rtm->dst_len) {
		/* Not where it is looked for, or not as long: user space will see. */
		if (length_of(at) < length || !load(msg, offset_of(at), dst, length))
			return true;
	}
	mask_of(rtm->dst_len, mask);
	UNROLL
	for (int i = 0; i < AT_TARGETS_MAX; i++) {
		const struct at_target *target = &filter->targets[i];
		const __u64 *address = (const void *)target->address;

		if (i >= filter->n_targets)
			break;
		if (target->family == rtm->family && ((address[0] ^ dst[0]) & mask[0]) == 0 &&
		    ((address[1] ^ dst[1]) & mask[1]) == 0)
			return true;
	}
	return false;
}

static __always_inline bool may_matter(const struct message *msg, const struct at_filter *filter)
{
	struct wire_rtmsg rtm;
	struct {
		struct wire_attr attr;
		__u32 value;
	} table;

	if (!load(msg, sizeof(msg->head), &rtm, sizeof(rtm)))
		return true; /* the parser will say that it is malformed */
	if (!is_ip(rtm.family) || rtm.src_len || rtm.flags & WIRE_RTM_F_CLONED)
		return false;
	if (rtm.dst_len && !filter->n_targets)
		return false;
	load(msg, sizeof(msg->head) + sizeof(rtm), &table, sizeof(table));
	if (table.attr.type != WIRE_RTA_TABLE || table.attr.len != sizeof(table))
		return true;
	if (table.value == WIRE_RT_TABLE_LOCAL)
		return false;
	if (rtm.dst_len == 0 && is_wanted_table(filter, table.value))
		return true;
	return filter->n_targets && covers_target(msg, filter, &rtm);
}

#endif
