/* SPDX-License-Identifier: Apache-2.0 */
/* What the parsers of messages share. */
#ifndef ADDRTRACKER_PARSE_H
#define ADDRTRACKER_PARSE_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <linux/netlink.h>
#include <sys/socket.h>

#include "../bpf/records.h"
#include "nlattr.h"

/* An attribute that is wrong makes the whole message malformed. */
#define AT_TRY(expr)                                                                               \
	do {                                                                                       \
		int err_ = (expr);                                                                 \
		if (err_ < 0)                                                                      \
			return err_;                                                               \
	} while (0)

/* A message of whole length. */
struct at_message {
	struct nlmsghdr head;
	const uint8_t *body;
	size_t len; /* bytes of body */
};

static inline size_t at_address_len(int family)
{
	return family == AF_INET ? 4 : 16;
}

static inline int at_is_ip(int family)
{
	return family == AF_INET || family == AF_INET6;
}

/* Copies the family header and leaves the attributes behind it. */
static inline int at_body(const struct at_message *msg, void *out, size_t size,
			  struct at_attrs *attrs)
{
	size_t aligned = NLMSG_ALIGN(size);

	if (msg->len < size)
		return -EBADMSG;
	memcpy(out, msg->body, size);
	if (aligned > msg->len)
		aligned = msg->len;
	attrs->next = msg->body + aligned;
	attrs->left = msg->len - aligned;
	return 0;
}

static inline int at_get_address(const struct at_attr *attr, int family, uint8_t *out)
{
	return at_attr_get(attr, out, at_address_len(family));
}

/* parse_route.c: RTM_NEWROUTE, RTM_DELROUTE. The size of the payload, 0: it is not for us, -EBADMSG.
 * *truncated: there were more legs than the record holds. */
int at_parse_route(const struct at_message *msg, struct at_route *route, int *truncated);

#endif
