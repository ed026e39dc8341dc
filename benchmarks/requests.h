/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Netlink requests, built one behind the other in one message and sent together: the kernel works
 * through all of them before the send returns.
 */
#ifndef BENCHMARKS_REQUESTS_H
#define BENCHMARKS_REQUESTS_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#define BATCH 100 /* requests of one message */

struct inet {
	int family;
	uint8_t bytes[16]; /* network order */
	uint8_t prefixlen;
};

/* What a program calls itself where it dies. */
extern const char *const program;
_Noreturn void die(const char *what, int error);
uint64_t clock_ns(clockid_t clock);
unsigned number(const char *text);
/* "ADDRESS/LENGTH", or "ADDRESS" for one alone. */
struct inet parse_inet(const char *text);
size_t inet_size(int family);

int request_socket(void);
struct nlmsghdr *request(uint16_t type, uint16_t flags, const void *body, size_t size);
struct rtattr *put(struct nlmsghdr *head, uint16_t type, const void *value, size_t size);
void put_u32(struct nlmsghdr *head, uint16_t type, uint32_t value);
void end_nest(struct nlmsghdr *head, struct rtattr *attr);
/* Ends a request; another one may follow it. */
void finish(const struct nlmsghdr *head);
/* Sends all that is finished. */
void send_requests(int sock);
/* The same, and waits for the answer to the last one, which alone is acknowledged. */
void send_checked(int sock, struct nlmsghdr *last, const char *what);

#endif
