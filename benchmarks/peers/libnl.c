// SPDX-License-Identifier: Apache-2.0
/*
 * libnl's cache manager, used as its documentation says: caches of links, addresses and routes that
 * it keeps up to date by events, and a function that it calls for changes of addresses. Where it
 * says that events were lost, the caches are synchronised anew.
 *
 *   peer-libnl WATCH [BYTES]
 *
 * BYTES of the socket's buffer; otherwise as libnl has it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <netlink/cache.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include "sights.h"

const char *const program = "peer-libnl";

#define CACHES 3
static const char *const names[CACHES] = { "route/link", "route/addr", "route/route" };
static struct nl_cache *caches[CACHES];

static void check(const char *what, int error)
{
	if (error >= 0)
		return;
	fprintf(stderr, "%s: %s: %s\n", program, what, nl_geterror(error));
	exit(1);
}

static void tell(struct nl_object *object, bool there)
{
	struct nl_addr *local = rtnl_addr_get_local((struct rtnl_addr *)object);

	if (local)
		sights_saw(nl_addr_get_family(local), nl_addr_get_binary_addr(local), there);
}

static void is_there(struct nl_object *object, void *unused)
{
	(void)unused;
	tell(object, true);
}

static void changed(struct nl_cache *cache, struct nl_object *object, int action, void *unused)
{
	(void)unused;
	if (cache == caches[1])
		tell(object, action != NL_ACT_DEL);
}

static struct nl_sock *open_socket(void)
{
	struct nl_sock *made = nl_socket_alloc();

	if (!made)
		die("socket", ENOMEM);
	return made;
}

static struct nl_cache_mngr *follow(struct nl_sock *events, int bytes)
{
	struct nl_cache_mngr *manager;

	check("manager", nl_cache_mngr_alloc(events, NETLINK_ROUTE, NL_AUTO_PROVIDE, &manager));
	if (bytes && setsockopt(nl_socket_get_fd(events), SOL_SOCKET, SO_RCVBUFFORCE, &bytes,
				sizeof(bytes)) < 0)
		die("SO_RCVBUFFORCE", errno);
	for (int i = 0; i < CACHES; i++)
		check(names[i], nl_cache_mngr_add(manager, names[i], changed, NULL, &caches[i]));
	nl_cache_foreach(caches[1], is_there, NULL);
	return manager;
}

/* The manager goes on with what comes, but what was lost is in none of its caches. */
static void synchronise(struct nl_sock *asking)
{
	for (int i = 0; i < CACHES; i++)
		check(names[i], nl_cache_resync(asking, caches[i], changed, NULL));
}

int main(int argc, char **argv)
{
	struct nl_sock *events, *asking;
	struct nl_cache_mngr *manager;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: %s WATCH [BYTES]\n", program);
		return 2;
	}
	sights_of(argv[1]);
	messages = UNCOUNTED;
	asking = open_socket();
	check("connect", nl_connect(asking, NETLINK_ROUTE));
	events = open_socket();
	manager = follow(events, argc == 3 ? (int)number(argv[2]) : 0);
	sights_ready("ready", nl_socket_get_fd(events));
	for (;;) {
		int error = nl_cache_mngr_poll(manager, -1);

		/* What recv says with ENOBUFS. */
		if (error == -NLE_NOMEM)
			synchronise(asking);
		else
			check("poll", error);
	}
}
