// SPDX-License-Identifier: Apache-2.0
/*
 * Changes a network namespace as fast as the kernel lets one, and says what each change took.
 *
 *   load routes LINK COUNT ADDRESS/LENGTH MS [ROUNDS]
 *                                              COUNT host routes added, then deleted, BATCH
 *                                              requests a message, ROUNDS times (1); ADDRESS comes
 *                                              or goes every MS milliseconds meanwhile (0: never)
 *   load rate LINK PER_SECOND SECONDS ADDRESS/LENGTH MS
 *                                              host routes added and deleted at that pace, the
 *                                              address as above
 *   load flips LINK COUNT ADDRESS/LENGTH MS    ADDRESS comes or goes COUNT times, every MS
 *   load links NAME COUNT NETNS [LINK ADDRESS/LENGTH MS]
 *                                              COUNT veth pairs: made, one end moved into the
 *                                              namespace at that path, both up; every BATCH
 *                                              deleted; the address as above
 *   load promotions LINK COUNT NETWORK/LENGTH HOSTS
 *                                              HOSTS addresses added, then COUNT times the one
 *                                              that is primary is deleted; it comes back as the
 *                                              last one HOSTS/10 deletions later
 *   load fill NAME LINKS ADDRESSES ROUTES      so many veth pairs, and over them so many addresses
 *                                              and host routes, half of each IPv6
 *
 * The family of routes is that of ADDRESS, which is another one each time (see changes.h). Prints
 * one JSON object: seconds of each phase, "messages": how many routes came or went where there is
 * nothing else, and "changes": of each address that is watched the CLOCK_BOOTTIME in nanoseconds
 * right before the request. A flipping address is not on the link before, nor behind.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <net/if.h>

#include "changes.h"
#include "loads.h"

#define WINDOW 1000    /* routes that come before they go, at a pace */
#define TICK   1000000 /* ns between two looks at the clock */

const char *const program = "load";

static int sock;

static unsigned index_of(const char *link)
{
	unsigned found = if_nametoindex(link);

	if (!found)
		die(link, errno);
	return found;
}

/* Seconds for all routes; flips between two messages count as well, and are few. */
static double routes(bool add, int family, unsigned ifindex, unsigned count)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	for (unsigned done = 0; done < count;) {
		struct nlmsghdr *last = NULL;

		for (unsigned n = 0; n < BATCH && done < count; n++)
			last = route(add, family, ifindex, done++);
		send_checked(sock, last, "route");
		flip_if_due(sock);
	}
	return since(start);
}

static void load_routes(const char *link, unsigned count, const char *address, unsigned rounds)
{
	int family = parse_inet(address).family;
	double add = 0, del = 0;

	for (unsigned n = 0; n < rounds; n++) {
		add += routes(true, family, index_of(link), count);
		del += routes(false, family, index_of(link), count);
	}
	flips_end(sock);
	printf("\"add_seconds\": %.6f, \"delete_seconds\": %.6f, \"messages\": %llu, ", add, del,
	       2ull * count * rounds);
}

static void load_flips(unsigned count)
{
	for (unsigned n = 0; n < count; n++)
		flip_when_due(sock);
}

static void sleep_tick(void)
{
	struct timespec tick = { .tv_nsec = TICK };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &tick, NULL);
}

/* WINDOW routes come, the same ones go, and again. */
static struct nlmsghdr *next_route(int family, unsigned ifindex, uint64_t n)
{
	return route(n / WINDOW % 2 == 0, family, ifindex, n % WINDOW);
}

static void load_rate(const char *link, unsigned per_second, unsigned seconds, const char *address)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), sent = 0, messages;
	int family = parse_inet(address).family;
	unsigned ifindex = index_of(link);
	double taken;

	for (;;) {
		uint64_t passed = clock_ns(CLOCK_MONOTONIC) - start;
		uint64_t due = (uint64_t)(passed / 1e9 * per_second);
		struct nlmsghdr *last = NULL;

		if (passed >= seconds * 1000000000ull)
			break;
		for (unsigned n = 0; n < BATCH && sent < due; n++)
			last = next_route(family, ifindex, sent++);
		if (last)
			send_checked(sock, last, "route");
		flip_if_due(sock);
		if (sent == due)
			sleep_tick();
	}
	taken = since(start);
	flips_end(sock);
	for (messages = sent; messages % (2 * WINDOW);)
		send_checked(sock, next_route(family, ifindex, messages++), "route");
	printf("\"sent\": %llu, \"seconds\": %.6f, \"messages\": %llu, ", (unsigned long long)sent,
	       taken, (unsigned long long)messages);
}

/* Whether it knew what to do. */
static bool run(const char *what, int n, char **arg)
{
	if (!strcmp(what, "routes") && (n == 4 || n == 5)) {
		flips_plan(arg[0], arg[2], number(arg[3]));
		load_routes(arg[0], number(arg[1]), arg[2], n == 5 ? number(arg[4]) : 1);
	} else if (!strcmp(what, "rate") && n == 5) {
		flips_plan(arg[0], arg[3], number(arg[4]));
		load_rate(arg[0], number(arg[1]), number(arg[2]), arg[3]);
	} else if (!strcmp(what, "flips") && n == 4) {
		flips_plan(arg[0], arg[2], number(arg[3]));
		load_flips(number(arg[1]));
	} else if (!strcmp(what, "links") && (n == 3 || n == 6)) {
		if (n == 6)
			flips_plan(arg[3], arg[4], number(arg[5]));
		load_links(sock, arg[0], number(arg[1]), arg[2]);
	} else if (!strcmp(what, "promotions") && n == 4) {
		load_promotions(sock, arg[0], number(arg[1]), arg[2], number(arg[3]));
	} else if (!strcmp(what, "fill") && n == 4) {
		load_fill(sock, arg[0], number(arg[1]), number(arg[2]), number(arg[3]));
	} else {
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	sock = request_socket();
	printf("{");
	if (argc < 2 || !run(argv[1], argc - 2, argv + 2)) {
		fprintf(stderr,
			"usage: load routes|rate|flips|links|promotions|fill ...: see load.c\n");
		return 2;
	}
	changes_print();
	printf("}\n");
	return 0;
}
