// SPDX-License-Identifier: Apache-2.0
/*
 * What a program does that asks again and again, as the kubelet does every 10 s for its node's
 * address: reads all IPv4 and IPv6 routes as text from /proc, and where there is a default route,
 * asks for all links and all addresses.
 *
 *   peer-poll WATCH PERIOD_MS
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lists.h"
#include "sights.h"

#define FIELDS_MAX 11

const char *const program = "peer-poll";

static size_t split(char *line, char *fields[FIELDS_MAX])
{
	size_t n = 0;
	char *at = strtok(line, " \t\n");

	for (; at && n < FIELDS_MAX; at = strtok(NULL, " \t\n"))
		fields[n++] = at;
	return n;
}

/* Default routes in a table of /proc/net; which fields are destination and its length or mask. */
static unsigned default_routes(const char *path, size_t to, size_t length)
{
	/* Each read makes the kernel walk the table anew up to where it was: by default 1 KiB. */
	static char buffer[4096];
	FILE *file = fopen(path, "r");
	char *line = NULL, *fields[FIELDS_MAX];
	unsigned found = 0;
	size_t room = 0;

	if (!file && errno == ENOENT)
		return 0; /* a kernel without IPv6 */
	if (!file)
		die(path, errno);
	setvbuf(file, buffer, _IOFBF, sizeof(buffer));
	while (getline(&line, &room, file) >= 0) {
		size_t n = split(line, fields);

		found += n > to && n > length && strspn(fields[to], "0") == strlen(fields[to]) &&
			 strspn(fields[length], "0") == strlen(fields[length]);
	}
	free(line);
	fclose(file);
	return found;
}

static void look(int asking)
{
	static struct lists lists;
	const struct address_row *rows;

	if (default_routes("/proc/net/route", 1, 7) +
		    default_routes("/proc/net/ipv6_route", 0, 1) ==
	    0)
		return;
	lists_clear(&lists);
	if (!list_links(asking, &lists) || !list_addresses(asking, &lists, AF_UNSPEC))
		return; /* not what the host had at any time: the next look is due soon */
	rows = lists.addresses.rows;
	for (size_t i = 0; i < lists.addresses.n; i++)
		sights_list(rows[i].inet.family, rows[i].inet.bytes);
	sights_listed();
}

int main(int argc, char **argv)
{
	struct timespec next;
	unsigned period;
	int asking;

	if (argc != 3) {
		fprintf(stderr, "usage: %s WATCH PERIOD_MS\n", program);
		return 2;
	}
	sights_of(argv[1]);
	period = number(argv[2]);
	messages = UNCOUNTED;
	asking = list_socket();
	look(asking);
	sights_ready("ready", -1);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		next.tv_nsec += period % 1000 * 1000000l;
		next.tv_sec += period / 1000 + next.tv_nsec / 1000000000l;
		next.tv_nsec %= 1000000000l;
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) == EINTR)
			;
		look(asking);
	}
}
