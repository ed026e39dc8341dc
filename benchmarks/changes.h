/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that come and go, and when each did. */
#ifndef BENCHMARKS_CHANGES_H
#define BENCHMARKS_CHANGES_H

#include <stdbool.h>

#include "requests.h"

/* Asks for an address to come or go; returns behind the kernel's answer. */
void change_address(int sock, unsigned ifindex, const struct inet *inet, bool add);
/* The same, with its time right before the request in "changes". */
void change_told(int sock, unsigned ifindex, const struct inet *inet, bool add);

/*
 * One address of a link comes or goes every `ms` milliseconds; 0: never. It is another one each
 * time it comes: the same host of the next network, so that a change is told apart from the next
 * one by whoever comes late, or sees networks alone. After ROTATION it is the first one again.
 */
#define ROTATION 200
void flips_plan(const char *link, const char *address, unsigned ms);
void flip_if_due(int sock);
/* Waits until the next one is due, and does it. */
void flip_when_due(int sock);
/* Takes the address away again, where one is there. */
void flips_end(int sock);

/* "changes": [[boot_ns, "+192.0.2.10"], ...] */
void changes_print(void);

#endif
