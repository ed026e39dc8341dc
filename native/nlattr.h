/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks netlink attributes without ever reading beyond their buffer. Values are
 * copied out, because a message may come from anywhere and need not be aligned.
 */
#ifndef ADDRTRACKER_NLATTR_H
#define ADDRTRACKER_NLATTR_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/netlink.h>

struct at_attrs {
	const uint8_t *next;
	size_t left;
};

struct at_attr {
	const uint8_t *data;
	uint16_t len;  /* bytes of data */
	uint16_t type; /* without NLA_F_NESTED and NLA_F_NET_BYTEORDER */
};

/* 1: *attr is the next one; 0: no more; -EBADMSG: a length that does not fit. Up to three bytes
 * at the end are padding, as for the kernel. */
static inline int at_attr_next(struct at_attrs *attrs, struct at_attr *attr)
{
	struct nlattr head;
	size_t step;

	if (attrs->left < sizeof(head))
		return 0;
	memcpy(&head, attrs->next, sizeof(head));
	if (head.nla_len < sizeof(head) || head.nla_len > attrs->left)
		return -EBADMSG;
	attr->data = attrs->next + sizeof(head);
	attr->len = (uint16_t)(head.nla_len - sizeof(head));
	attr->type = head.nla_type & NLA_TYPE_MASK;
	step = NLA_ALIGN(head.nla_len);
	if (step > attrs->left)
		step = attrs->left;
	attrs->next += step;
	attrs->left -= step;
	return 1;
}

static inline struct at_attrs at_attr_nested(const struct at_attr *attr)
{
	return (struct at_attrs){ .next = attr->data, .left = attr->len };
}

/* Copies the first `size` bytes of the value; -EBADMSG where it is shorter. */
static inline int at_attr_get(const struct at_attr *attr, void *out, size_t size)
{
	if (attr->len < size)
		return -EBADMSG;
	memcpy(out, attr->data, size);
	return 0;
}

/* Copies a string, cut to `size` - 1 bytes; the rest of `out` is zero. */
static inline void at_attr_string(const struct at_attr *attr, char *out, size_t size)
{
	size_t len = strnlen((const char *)attr->data, attr->len);

	if (len > size - 1)
		len = size - 1;
	memset(out, 0, size);
	memcpy(out, attr->data, len);
}

#endif
