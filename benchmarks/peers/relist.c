// SPDX-License-Identifier: Apache-2.0
/*
 * What agents do that hold no state of their own from events: an event only says that something
 * changed. All that waits is read away, then links, addresses and routes are listed anew and
 * compared with what was there before. A lost event does no harm but that the next list is due.
 *
 *   peer-relist WATCH BYTES [PAUSE_MS]
 *
 * BYTES of the socket's buffer, 0: the kernel's default. PAUSE_MS: so long it gathers events before
 * it lists, as some do so that they do not list all the time; 0, the default: not at all.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include <sys/socket.h>

#include "lists.h"
#include "sights.h"

#define ATTEMPTS 5 /* behind the last one what it gave is not compared: another event is due */

const char *const program = "peer-relist";

static int follow(int bytes)
{
	static const int groups[] = { RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
				      RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE };
	int sock = request_socket();

	if (bytes && setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		die("SO_RCVBUFFORCE", errno);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (setsockopt(sock, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i],
			       sizeof(groups[i])) < 0)
			die("group", errno);
	return sock;
}

static bool list_all(int sock, struct lists *lists)
{
	lists_clear(lists);
	return list_links(sock, lists) && list_addresses(sock, lists, AF_UNSPEC);
}

static void list_and_compare(int sock)
{
	static struct lists lists;
	const struct address_row *rows;
	int attempts = ATTEMPTS;
	bool whole;

	do
		whole = list_all(sock, &lists);
	while (!whole && --attempts);
	/* Routes that change meanwhile make no address wrong. */
	list_routes(sock, &lists, AF_INET);
	list_routes(sock, &lists, AF_INET6);
	if (!whole)
		return;
	rows = lists.addresses.rows;
	for (size_t i = 0; i < lists.addresses.n; i++)
		sights_list(rows[i].inet.family, rows[i].inet.bytes);
	sights_listed();
}

static void read_away(int sock)
{
	static uint8_t buffer[64 * 1024] __attribute__((aligned(NLMSG_ALIGNTO)));

	for (;;) {
		ssize_t size = recv(sock, buffer, sizeof(buffer), MSG_DONTWAIT);
		unsigned left = size > 0 ? (unsigned)size : 0;

		if (size < 0 && errno == EAGAIN)
			return;
		if (size < 0 && errno != ENOBUFS)
			die("recv", errno);
		for (struct nlmsghdr *head = (void *)buffer; NLMSG_OK(head, left);
		     head = NLMSG_NEXT(head, left))
			messages++;
	}
}

int main(int argc, char **argv)
{
	struct timespec pause = { 0 };
	struct pollfd event = { .events = POLLIN };
	int asking;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: %s WATCH BYTES [PAUSE_MS]\n", program);
		return 2;
	}
	sights_of(argv[1]);
	event.fd = follow(number(argv[2]));
	if (argc == 4)
		pause = (struct timespec){ number(argv[3]) / 1000,
					   number(argv[3]) % 1000 * 1000000l };
	asking = list_socket();
	list_and_compare(asking);
	sights_ready("ready", event.fd);
	for (;;) {
		if (poll(&event, 1, -1) < 0)
			die("poll", errno);
		nanosleep(&pause, NULL);
		read_away(event.fd);
		list_and_compare(asking);
	}
}
