// SPDX-License-Identifier: Apache-2.0
/*
 * What is kept apart from the counts, linked with --wrap: a clock that ticks evenly, a kernel that
 * answers from memory, and plain loops for what libc does by the processor that it finds.
 * The loops are compiled without builtins, else the compiler would make calls of themselves.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/netlink.h>

#include "counted.h"
#include "map.h"

#define RING_BYTES (1u << 20)

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
ssize_t __wrap_sendto(int fd, const void *buf, size_t size, int flags, const struct sockaddr *to,
		      socklen_t to_len);
ssize_t __wrap_recv(int fd, void *buf, size_t size, int flags);
ssize_t __wrap_recvfrom(int fd, void *buf, size_t size, int flags, struct sockaddr *from,
			socklen_t *from_len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_at_map_lookup(int fd, uint32_t key, void *value);
int __wrap_at_map_update(int fd, uint32_t key, const void *value);
int __wrap_at_map_delete(int fd, uint32_t key);
int __wrap_at_map_clear(int fd);
int __wrap_at_map_entries(int fd, uint32_t *entries);
void *__wrap_memcpy(void *to, const void *from, size_t n);
void *__wrap_memmove(void *to, const void *from, size_t n);
void *__wrap_memset(void *to, int byte, size_t n);
int __wrap_memcmp(const void *one, const void *other, size_t n);
int __wrap_bcmp(const void *one, const void *other, size_t n);
void *__wrap_memchr(const void *in, int byte, size_t n);
size_t __wrap_strlen(const char *text);
size_t __wrap_strnlen(const char *text, size_t n);
int __wrap_strcmp(const char *one, const char *other);
int __wrap_strncmp(const char *one, const char *other, size_t n);
char *__wrap_strncpy(char *to, const char *from, size_t n);
char *__wrap_strchr(const char *text, int byte);
void __wrap_qsort(void *base, size_t n, size_t size, int (*compare)(const void *, const void *));
void __wrap_qsort_r(void *base, size_t n, size_t size,
		    int (*compare)(const void *, const void *, void *), void *arg);

typedef uint64_t word __attribute__((may_alias, aligned(1)));
typedef uint64_t wide __attribute__((vector_size(16), may_alias, aligned(1)));

static struct {
	int multicast;
	const struct datagram *events, *answer;
	size_t n_events, n_answer, next_event, next_answer;
} kernel;

void kernel_says(int multicast, const struct datagram *events, size_t n)
{
	kernel.multicast = multicast;
	kernel.events = events;
	kernel.n_events = n;
	kernel.next_event = 0;
}

void kernel_answers(const struct datagram *answer, size_t n)
{
	kernel.answer = answer;
	kernel.n_answer = n;
}

/* A microsecond later each time; records of host.c are older. */
int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	static uint64_t now = 3600ull * 1000000000;

	(void)id;
	now += 1000;
	ts->tv_sec = (time_t)(now / 1000000000);
	ts->tv_nsec = (long)(now % 1000000000);
	return 0;
}

ssize_t __wrap_sendto(int fd, const void *buf, size_t size, int flags, const struct sockaddr *to,
		      socklen_t to_len)
{
	(void)fd;
	(void)buf;
	(void)flags;
	(void)to;
	(void)to_len;
	kernel.next_answer = 0;
	return (ssize_t)size;
}

static ssize_t nothing(void)
{
	errno = EAGAIN;
	return -1;
}

ssize_t __wrap_recv(int fd, void *buf, size_t size, int flags)
{
	(void)fd;
	(void)buf;
	(void)size;
	(void)flags;
	return nothing();
}

ssize_t __wrap_recvfrom(int fd, void *buf, size_t size, int flags, struct sockaddr *from,
			socklen_t *from_len)
{
	const struct datagram *d;
	uint8_t *to = buf;

	(void)size;
	(void)flags;
	(void)from;
	(void)from_len;
	if (fd == kernel.multicast) {
		if (kernel.next_event == kernel.n_events)
			return nothing();
		d = &kernel.events[kernel.next_event++];
	} else {
		if (kernel.next_answer == kernel.n_answer)
			return nothing();
		d = &kernel.answer[kernel.next_answer++];
	}
	/* Not memcpy, which is counted. */
	for (size_t i = 0; i < d->size; i++)
		to[i] = d->data[i];
	return (ssize_t)d->size;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	(void)fd;
	(void)level;
	(void)name;
	(void)value;
	(void)len;
	return 0;
}

int __wrap_at_map_lookup(int fd, uint32_t key, void *value)
{
	(void)fd;
	(void)key;
	(void)value;
	return -ENOENT;
}

int __wrap_at_map_update(int fd, uint32_t key, const void *value)
{
	(void)fd;
	(void)key;
	(void)value;
	return 0;
}

int __wrap_at_map_delete(int fd, uint32_t key)
{
	(void)fd;
	(void)key;
	return 0;
}

int __wrap_at_map_clear(int fd)
{
	(void)fd;
	return 0;
}

int __wrap_at_map_entries(int fd, uint32_t *entries)
{
	(void)fd;
	*entries = RING_BYTES;
	return 0;
}

/* As wide as one that a compiler puts in place: which of the two it takes is up to it. */
void *__wrap_memcpy(void *to, const void *from, size_t n)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	for (; n >= 64; n -= 64, t += 64, f += 64) {
		*(wide *)t = *(const wide *)f;
		*(wide *)(t + 16) = *(const wide *)(f + 16);
		*(wide *)(t + 32) = *(const wide *)(f + 32);
		*(wide *)(t + 48) = *(const wide *)(f + 48);
	}
	for (; n >= 8; n -= 8, t += 8, f += 8)
		*(word *)t = *(const word *)f;
	while (n--)
		*t++ = *f++;
	return to;
}

void *__wrap_memmove(void *to, const void *from, size_t n)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	if ((uintptr_t)t - (uintptr_t)f >= n)
		return __wrap_memcpy(to, from, n);
	for (; n >= 8; n -= 8)
		*(word *)(t + n - 8) = *(const word *)(f + n - 8);
	while (n--)
		t[n] = f[n];
	return to;
}

void *__wrap_memset(void *to, int byte, size_t n)
{
	uint64_t bytes = 0x0101010101010101ull * (uint8_t)byte;
	uint8_t *t = to;

	for (; n >= 8; n -= 8, t += 8)
		*(word *)t = bytes;
	while (n--)
		*t++ = (uint8_t)byte;
	return to;
}

int __wrap_memcmp(const void *one, const void *other, size_t n)
{
	const uint8_t *a = one, *b = other;

	for (; n >= 8 && *(const word *)a == *(const word *)b; n -= 8)
		a += 8, b += 8;
	for (; n; n--, a++, b++) {
		if (*a != *b)
			return *a - *b;
	}
	return 0;
}

int __wrap_bcmp(const void *one, const void *other, size_t n)
{
	return __wrap_memcmp(one, other, n);
}

void *__wrap_memchr(const void *in, int byte, size_t n)
{
	const uint8_t *a = in;

	for (; n; n--, a++) {
		if (*a == (uint8_t)byte)
			return (void *)a;
	}
	return NULL;
}

size_t __wrap_strnlen(const char *text, size_t n)
{
	size_t i = 0;

	while (i < n && text[i])
		i++;
	return i;
}

size_t __wrap_strlen(const char *text)
{
	return __wrap_strnlen(text, SIZE_MAX);
}

int __wrap_strncmp(const char *one, const char *other, size_t n)
{
	for (; n && *one && *one == *other; n--)
		one++, other++;
	return n ? (uint8_t)*one - (uint8_t)*other : 0;
}

int __wrap_strcmp(const char *one, const char *other)
{
	return __wrap_strncmp(one, other, SIZE_MAX);
}

char *__wrap_strncpy(char *to, const char *from, size_t n)
{
	size_t i = 0;

	for (; i < n && from[i]; i++)
		to[i] = from[i];
	for (; i < n; i++)
		to[i] = 0;
	return to;
}

char *__wrap_strchr(const char *text, int byte)
{
	for (; *text; text++) {
		if (*text == (char)byte)
			return (char *)text;
	}
	return byte ? NULL : (char *)text;
}

struct order {
	size_t size;
	int (*compare)(const void *one, const void *other, void *arg);
	void *arg;
};

/* Heapsort: at most 2 n log n comparisons, and no memory. */
static void sift(uint8_t *base, size_t root, size_t n, const struct order *o)
{
	for (size_t child; (child = 2 * root + 1) < n; root = child) {
		uint8_t *at = base + root * o->size, *to = base + child * o->size;

		if (child + 1 < n && o->compare(to, to + o->size, o->arg) < 0) {
			child++;
			to += o->size;
		}
		if (o->compare(at, to, o->arg) >= 0)
			return;
		for (size_t i = 0; i < o->size; i++) {
			uint8_t byte = at[i];

			at[i] = to[i];
			to[i] = byte;
		}
	}
}

void __wrap_qsort_r(void *base, size_t n, size_t size,
		    int (*compare)(const void *, const void *, void *), void *arg)
{
	struct order o = { size, compare, arg };
	uint8_t *at = base;

	for (size_t i = n / 2; i--;)
		sift(at, i, n, &o);
	while (n-- > 1) {
		for (size_t i = 0; i < size; i++) {
			uint8_t byte = at[i];

			at[i] = at[n * size + i];
			at[n * size + i] = byte;
		}
		sift(at, 0, n, &o);
	}
}

static int compare_plain(const void *one, const void *other, void *arg)
{
	int (*const *compare)(const void *, const void *) = arg;

	return (*compare)(one, other);
}

void __wrap_qsort(void *base, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	__wrap_qsort_r(base, n, size, compare_plain, &compare);
}
