// SPDX-License-Identifier: Apache-2.0
/*
 * counted [GROUP...]: runs the paths of these groups, or of all, and tells of each in a line of
 * JSON, in the order of what callgrind dumps.
 */
#include <stdio.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include "counted.h"

void count(const struct path *p, void (*run)(void *arg), void *arg)
{
	/* Before, callgrind sees nothing at all: it would add up how often functions were called. */
	CALLGRIND_START_INSTRUMENTATION;
	run(arg);
	CALLGRIND_DUMP_STATS;
	CALLGRIND_STOP_INSTRUMENTATION;
	printf("{\"name\": \"%s%s%s\", \"n\": %u, \"units\": %u, \"event\": %s}\n", p->name,
	       p->mode ? ", " : "", p->mode ? p->mode : "", p->n, p->units,
	       p->event ? "true" : "false");
}

/* Of hosts, of links, of what looks at everything; the default mode, which is 0, has all of them. */
static const uint32_t hosts[] = { 1000, 100000, 10 }, links[] = { 1000, 100, 10000 };
static const uint32_t wholes[] = { 1000, 10000 }, dumps[] = { 1000, 10000 };

static bool wanted(const char *group, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], group))
			return true;
	}
	return argc == 1;
}

int main(int argc, char **argv)
{
	char name[64];

	if (wanted("parse", argc, argv))
		parse_paths();
	for (unsigned mode = 0; mode < host_modes(); mode++) {
		for (size_t i = 0; i < (mode ? 2 : 3); i++) {
			snprintf(name, sizeof(name), "changes %s %u", host_mode(mode), hosts[i]);
			if (wanted(name, argc, argv))
				change_paths(mode, hosts[i]);
		}
		for (size_t i = 0; i < (mode ? 1 : 3); i++) {
			snprintf(name, sizeof(name), "links %s %u", host_mode(mode), links[i]);
			if (wanted(name, argc, argv))
				bulk_paths(mode, links[i]);
		}
	}
	for (size_t i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "whole %u", wholes[i]);
		if (wanted(name, argc, argv))
			whole_paths(wholes[i]);
		snprintf(name, sizeof(name), "dumps %u", dumps[i]);
		if (wanted(name, argc, argv))
			dump_paths(dumps[i]);
	}
	if (wanted("defaults", argc, argv))
		default_paths();
	if (wanted("events", argc, argv))
		event_paths();
	if (wanted("ring", argc, argv))
		ring_paths();
	return 0;
}
