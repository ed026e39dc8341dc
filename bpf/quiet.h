/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Which links say something new, and which of them wake nobody. */
#ifndef ADDRTRACKER_QUIET_H
#define ADDRTRACKER_QUIET_H

#include "filter.h"
#include "link.h"

/* In the padding of what `links` holds: the record woke nobody. */
#define QUIET pad1

/* The sign of the result: whether the words of a name are as a mask says. */
static __always_inline __u64 matches(const __u64 name[2], const struct at_name_mask *mask)
{
	__u64 differ = ((name[0] & mask->mask[0]) ^ mask->value[0]) |
		       ((name[1] & mask->mask[1]) ^ mask->value[1]);

	return ~(differ | -differ);
}

/*
 * No branch within, and no end but that of the array: as many ways through it as
 * entries would be too many for the verifier. What lies behind the last entry in use
 * is masked by the sign of i - n.
 */
static __always_inline bool matches_name(const struct at_name_mask *mask, __u64 n, const char *name)
{
	__u64 any = 0;

#pragma clang loop unroll(disable)
	for (__u64 i = 0; i < AT_QUIET_NAMES_MAX; i++) {
		any |= matches((const void *)name, mask) & (i - n);
		STEP(mask);
	}
	return (__s64)any < 0;
}

static __always_inline bool matches_kind(const struct at_filter *filter, const char *kind)
{
	const __u64(*quiet)[2] = (const void *)filter->quiet_kinds;
	const __u64 *word = (const void *)kind;
	__u64 any = 0, n = filter->n_quiet_kinds;

#pragma clang loop unroll(disable)
	for (__u64 i = 0; i < AT_QUIET_KINDS_MAX; i++) {
		__u64 differ = (word[0] ^ (*quiet)[0]) | (word[1] ^ (*quiet)[1]);

		any |= ~(differ | -differ) & (i - n);
		/* Without CAP_PERFMON no pointer may point behind the map, if only to stop there. */
		if (i + 1 < AT_QUIET_KINDS_MAX)
			STEP(quiet);
	}
	return (__s64)any < 0;
}

/* No selection can choose it, and no choice depends on it. */
static __always_inline bool is_quiet(const struct at_filter *filter, const struct at_link *link)
{
	return (matches_name(filter->quiet_names, filter->n_quiet_names, link->name) ||
		matches_kind(filter, link->kind)) &&
	       !matches_name(filter->loud_names, filter->n_loud_names, link->name) &&
	       !bpf_map_lookup_elem(AT_MAP(watched), &link->ifindex);
}

/*
 * An address of a link that woke nobody when it was written last, and is not watched
 * since. A route that names the address comes after it, and wakes.
 */
static __always_inline bool is_quiet_address(const struct message *msg)
{
	struct wire_ifaddr ifa = {};
	const struct at_link *link;

	load(msg, sizeof(msg->head), &ifa, sizeof(ifa));
	link = bpf_map_lookup_elem(AT_MAP(links), &ifa.index);
	return link && link->QUIET && !bpf_map_lookup_elem(AT_MAP(watched), &ifa.index);
}

/* mtu and lower decide nothing. */
static __always_inline bool same_link(const struct at_link *a, const struct at_link *b)
{
	const __u64 *x = (const void *)a->name, *y = (const void *)b->name;

	return a->flags == b->flags && a->master == b->master && a->type == b->type &&
	       a->operstate == b->operstate && x[0] == y[0] && x[1] == y[1] && x[2] == y[2] &&
	       x[3] == y[3];
}

#endif
