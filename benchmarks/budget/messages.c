// SPDX-License-Identifier: Apache-2.0
/* Netlink messages as the kernel writes them. */
#include <arpa/inet.h>
#include <string.h>

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "counted.h"

#define DUMPED 1 /* the number of a dump's request */

static uint8_t *end_of(struct message *m)
{
	return (uint8_t *)m->words + m->size;
}

static void grow(struct message *m, size_t size)
{
	struct nlmsghdr *head = (void *)m->words;

	must(m->size + NLMSG_ALIGN(size) <= sizeof(m->words), "a message has room");
	m->size += NLMSG_ALIGN(size);
	head->nlmsg_len = (uint32_t)m->size;
}

void message_begin(struct message *m, uint16_t type, const void *body, size_t size)
{
	struct nlmsghdr head = { .nlmsg_type = type, .nlmsg_seq = DUMPED };

	memset(m, 0, sizeof(*m));
	memcpy(m->words, &head, sizeof(head));
	m->size = sizeof(head);
	memcpy(end_of(m), body, size);
	grow(m, size);
}

void message_put(struct message *m, uint16_t type, const void *data, size_t size)
{
	struct nlattr attr = { .nla_len = (uint16_t)(NLA_HDRLEN + size), .nla_type = type };

	m->last = m->size;
	memcpy(end_of(m), &attr, sizeof(attr));
	memcpy(end_of(m) + sizeof(attr), data, size);
	grow(m, sizeof(attr) + size);
}

void message_spoil(struct message *m)
{
	struct nlattr *last = (void *)((uint8_t *)m->words + m->last);

	last->nla_len = (uint16_t)(m->size - m->last + 1);
}

static void put_u32(struct message *m, uint16_t type, uint32_t value)
{
	message_put(m, type, &value, sizeof(value));
}

/* The message of the record that addr() makes. */
void message_addr(struct message *m, int op, uint32_t ifindex, uint32_t number, uint32_t flags)
{
	struct ifaddrmsg ifa = {
		.ifa_family = AF_INET,
		.ifa_prefixlen = 24,
		.ifa_flags = (uint8_t)flags,
		.ifa_index = ifindex,
	};
	struct ifa_cacheinfo times = {
		.ifa_prefered = UINT32_MAX,
		.ifa_valid = UINT32_MAX,
		.cstamp = 100 + number,
		.tstamp = 100 + number,
	};
	uint32_t local = htonl(0x0a000000u + number);

	message_begin(m, op == AT_OP_NEW ? RTM_NEWADDR : RTM_DELADDR, &ifa, sizeof(ifa));
	message_put(m, IFA_ADDRESS, &local, sizeof(local));
	message_put(m, IFA_LOCAL, &local, sizeof(local));
	message_put(m, IFA_LABEL, "eth0", 5);
	put_u32(m, IFA_FLAGS, flags);
	message_put(m, IFA_CACHEINFO, &times, sizeof(times));
}

void message_default(struct message *m, uint32_t ifindex, uint32_t metric)
{
	struct rtmsg rtm = {
		.rtm_family = AF_INET,
		.rtm_table = MAIN_TABLE,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_type = RTN_UNICAST,
	};
	uint32_t gateway = htonl(0x0a000001u + ifindex * 256);

	message_begin(m, RTM_NEWROUTE, &rtm, sizeof(rtm));
	put_u32(m, RTA_TABLE, MAIN_TABLE);
	put_u32(m, RTA_PRIORITY, metric);
	message_put(m, RTA_GATEWAY, &gateway, sizeof(gateway));
	put_u32(m, RTA_OIF, ifindex);
}

/* A host route of the main table. */
void message_route(struct message *m, int family, uint32_t number)
{
	size_t length = family == AF_INET ? 4 : 16;
	struct rtmsg rtm = {
		.rtm_family = (uint8_t)family,
		.rtm_dst_len = (uint8_t)(length * 8),
		.rtm_table = MAIN_TABLE,
		.rtm_protocol = RTPROT_BGP,
		.rtm_type = RTN_UNICAST,
	};
	uint8_t dst[16] = { 172, 20 };
	uint32_t low = htonl(number);

	memcpy(dst + length - 3, (const uint8_t *)&low + 1, 3);
	message_begin(m, RTM_NEWROUTE, &rtm, sizeof(rtm));
	put_u32(m, RTA_TABLE, MAIN_TABLE);
	message_put(m, RTA_DST, dst, length);
	put_u32(m, RTA_PRIORITY, 20);
	message_put(m, RTA_GATEWAY, dst, length);
	put_u32(m, RTA_OIF, FIRST_LINK);
}
