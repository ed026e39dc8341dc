/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reader saw: which addresses of a network came and went, and when it knew that. At SIGTERM
 * it prints one JSON object of it and ends the process:
 * {"messages": n | null, "lost": n | null, "sights": [[boot_ns, "+192.0.2.10"], ...]}
 */
#ifndef BENCHMARKS_SIGHTS_H
#define BENCHMARKS_SIGHTS_H

#include <stdbool.h>

#include "requests.h"

#define UNCOUNTED UINT64_MAX

extern uint64_t messages; /* that were read, or UNCOUNTED */

/* First of all: before there are threads. "192.0.2.0/24". */
void sights_of(const char *network);
/* An address came or went. What was known before is no sight. */
void sights_saw(int family, const void *address, bool there);
/* Of those that came and are in no list since the last call of sights_listed: they went. */
void sights_list(int family, const void *address);
void sights_listed(void);
/* Prints the line that says so; messages lost are those of the socket, -1: it has none. */
void sights_ready(const char *line, int sock);

#endif
