/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * RTM_NEWLINK, RTM_DELLINK: the one kind of message that is read here and not in
 * user space. The kernel sends 1.4 KB for whatever changes, most of which is
 * counters; what was said before is known from `links`.
 */
#ifndef ADDRTRACKER_LINK_H
#define ADDRTRACKER_LINK_H

#include "message.h"

/* The kernel sends some 50. */
#define LINK_ATTRS_MAX 64
#define INFO_ATTRS_MAX 8

struct link_places {
	place_t name, mtu, lower, master, operstate, info, wireless;
};

/* Zeroes all but the first `length` bytes, and what follows a zero byte; returns all ones where
 * there was neither, else 0. */
static __always_inline __u64 end_word(__u64 *word, __u32 length)
{
	const __u64 ones = 0x0101010101010101, tops = ones << 7;
	__u64 bytes = FIRST_BYTE_LOW(*word);
	__u64 zeros;

	if (length < sizeof(*word))
		bytes &= (1ull << 8 * length) - 1;
	zeros = (bytes - ones) & ~bytes & tops; /* exact up to its lowest bit */
	*word = FIRST_BYTE_LOW(bytes & ((zeros & -zeros) - 1));
	return ((zeros | -zeros) >> 63) - 1;
}

/* A string with no more than 15 bytes; false: it is not, or ends with the message. */
static __always_inline bool load_text(const struct message *msg, place_t place, char *text)
{
	__u64 *word = (void *)text;
	__u32 length = length_of(place);

	if (!load(msg, offset_of(place), text, AT_NAME_LEN))
		return false;
	word[1] &= end_word(&word[0], length);
	return end_word(&word[1], length < sizeof(*word) ? 0 : length - sizeof(*word)) == 0;
}

static __always_inline bool find_link(const struct message *msg, struct link_places *at)
{
	struct attrs attrs = { sizeof(msg->head) + sizeof(struct wire_ifinfo), msg->head.len };
	struct attr attr;

	*at = (struct link_places){};
	for (int i = 0; i < LINK_ATTRS_MAX && more_attrs(&attrs); i++) {
		if (!next_attr(msg, &attrs, &attr))
			return false;
		keep(&attr, WIRE_IFLA_IFNAME, &at->name);
		keep(&attr, WIRE_IFLA_MTU, &at->mtu);
		keep(&attr, WIRE_IFLA_LINK, &at->lower);
		keep(&attr, WIRE_IFLA_MASTER, &at->master);
		keep(&attr, WIRE_IFLA_OPERSTATE, &at->operstate);
		keep(&attr, WIRE_IFLA_LINKINFO, &at->info);
		keep(&attr, WIRE_IFLA_WIRELESS, &at->wireless);
	}
	return !more_attrs(&attrs);
}

static __always_inline bool is_vrf(const char *kind)
{
	return kind[0] == 'v' && kind[1] == 'r' && kind[2] == 'f' && kind[3] == 0;
}

static __always_inline bool read_kind(const struct message *msg, place_t info, char *text)
{
	struct attrs attrs = { offset_of(info), offset_of(info) + length_of(info) };
	place_t kind = 0;
	struct attr attr;

	for (int i = 0; i < INFO_ATTRS_MAX && more_attrs(&attrs); i++) {
		if (!next_attr(msg, &attrs, &attr))
			return false;
		keep(&attr, WIRE_IFLA_INFO_KIND, &kind);
	}
	if (more_attrs(&attrs))
		return false;
	return !kind || load_text(msg, kind, text);
}

/*
 * False: user space has to see for itself. *link has the ifindex all the same.
 *
 * Every member is loaded where it belongs: to a verifier up to Linux 6.8 a number that
 * is stored in front of others of its eight bytes is a pointer perhaps, and storing the
 * others then takes CAP_PERFMON.
 */
static __always_inline bool read_link(const struct message *msg, struct at_link *link)
{
	const __u32 body = sizeof(msg->head);
	struct link_places at;

	__builtin_memset(link, 0, sizeof(*link));
	asm volatile("" ::: "memory");
	load(msg, body + offsetof(struct wire_ifinfo, index), &link->ifindex,
	     sizeof(link->ifindex));
	load(msg, body + offsetof(struct wire_ifinfo, flags), &link->flags, sizeof(link->flags));
	load(msg, body + offsetof(struct wire_ifinfo, type), &link->type, sizeof(link->type));
	/* An event of a wireless driver says nothing but the name. A VRF has a table. */
	return find_link(msg, &at) && !at.wireless && at.name &&
	       load_number(msg, at.mtu, &link->mtu, sizeof(link->mtu)) &&
	       load_number(msg, at.lower, &link->lower, sizeof(link->lower)) &&
	       load_number(msg, at.master, &link->master, sizeof(link->master)) &&
	       load_number(msg, at.operstate, &link->operstate, sizeof(link->operstate)) &&
	       load_text(msg, at.name, link->name) && read_kind(msg, at.info, link->kind) &&
	       !is_vrf(link->kind);
}

#endif
