// SPDX-License-Identifier: Apache-2.0
#include "requests.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/socket.h>

static uint8_t message[64 * 1024] __attribute__((aligned(NLMSG_ALIGNTO)));
static size_t used;
static uint32_t sequence;

void die(const char *what, int error)
{
	fprintf(stderr, "%s: %s: %s\n", program, what, strerror(error));
	exit(1);
}

uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

unsigned number(const char *text)
{
	char *end;
	unsigned long found = strtoul(text, &end, 10);

	if (end == text || *end || found > UINT32_MAX)
		die(text, EINVAL);
	return found;
}

struct inet parse_inet(const char *text)
{
	struct inet found = { .family = strchr(text, ':') ? AF_INET6 : AF_INET };
	char address[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);

	if (length >= sizeof(address))
		die(text, EINVAL);
	memcpy(address, text, length);
	address[length] = '\0';
	if (inet_pton(found.family, address, found.bytes) != 1)
		die(text, EINVAL);
	found.prefixlen = slash ? number(slash + 1) : 8 * inet_size(found.family);
	return found;
}

size_t inet_size(int family)
{
	return family == AF_INET6 ? 16 : 4;
}

int request_socket(void)
{
	struct sockaddr_nl local = { .nl_family = AF_NETLINK };
	int made = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (made < 0 || bind(made, (struct sockaddr *)&local, sizeof(local)) < 0)
		die("socket", errno);
	return made;
}

struct nlmsghdr *request(uint16_t type, uint16_t flags, const void *body, size_t size)
{
	struct nlmsghdr *head = (struct nlmsghdr *)(message + used);

	*head = (struct nlmsghdr){
		.nlmsg_len = NLMSG_LENGTH(size),
		.nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | flags,
		.nlmsg_seq = ++sequence,
	};
	memcpy(NLMSG_DATA(head), body, size);
	return head;
}

struct rtattr *put(struct nlmsghdr *head, uint16_t type, const void *value, size_t size)
{
	struct rtattr *attr =
		(struct rtattr *)((uint8_t *)head + NLMSG_ALIGN((size_t)head->nlmsg_len));

	attr->rta_type = type;
	attr->rta_len = RTA_LENGTH(size);
	if (size)
		memcpy(RTA_DATA(attr), value, size);
	head->nlmsg_len = NLMSG_ALIGN(head->nlmsg_len) + RTA_ALIGN(attr->rta_len);
	return attr;
}

void put_u32(struct nlmsghdr *head, uint16_t type, uint32_t value)
{
	put(head, type, &value, sizeof(value));
}

void end_nest(struct nlmsghdr *head, struct rtattr *attr)
{
	attr->rta_len = (uint8_t *)head + head->nlmsg_len - (uint8_t *)attr;
}

void finish(const struct nlmsghdr *head)
{
	used += NLMSG_ALIGN((size_t)head->nlmsg_len);
}

void send_requests(int sock)
{
	size_t size = used;

	used = 0;
	if (send(sock, message, size, 0) < 0)
		die("send", errno);
}

void send_checked(int sock, struct nlmsghdr *last, const char *what)
{
	static uint8_t answer[64 * 1024] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *head = (const struct nlmsghdr *)answer;
	const struct nlmsgerr *error = NLMSG_DATA(head);

	last->nlmsg_flags |= NLM_F_ACK;
	send_requests(sock);
	do {
		if (recv(sock, answer, sizeof(answer), 0) < 0)
			die(what, errno);
		if (head->nlmsg_type == NLMSG_ERROR && error->error)
			die(what, -error->error);
	} while (head->nlmsg_type != NLMSG_ERROR || head->nlmsg_seq != sequence);
}
