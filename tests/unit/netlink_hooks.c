// SPDX-License-Identifier: Apache-2.0
/*
 * Stands between the netlink source and the kernel: linked with --wrap, so that
 * a test can answer instead of it, with what the real one rarely says.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <linux/netlink.h>

#include "engine.h"

/* A test sets all of them. Results are as of the system call, or -errno. */
ssize_t (*hook_send)(const void *buf, size_t size);
ssize_t (*hook_receive)(int fd, void *buf, size_t size, uint32_t *portid);
int (*hook_option)(int level, int name);
int (*hook_apply)(int kind);
/* command: 'r' bytes of a ring, 'u' update, 'd' delete, 'c' clear. */
int (*hook_map)(int command, int fd, uint32_t key, const void *value);
/* What the kernel says of every look-up; NULL: the real one is asked. */
int (*hook_lookup)(void);

ssize_t __wrap_sendto(int fd, const void *buf, size_t size, int flags, const struct sockaddr *to,
		      socklen_t to_len);
ssize_t __wrap_recvfrom(int fd, void *buf, size_t size, int flags, struct sockaddr *from,
			socklen_t *from_len);
ssize_t __wrap_recv(int fd, void *buf, size_t size, int flags);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_at_engine_apply(struct at_engine *e, const void *buf, size_t size);
int __real_at_engine_apply(struct at_engine *e, const void *buf, size_t size);
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_at_map_entries(int fd, uint32_t *entries);
int __wrap_at_map_update(int fd, uint32_t key, const void *value);
int __wrap_at_map_delete(int fd, uint32_t key);
int __wrap_at_map_clear(int fd);
int __wrap_at_map_lookup(int fd, uint32_t key, void *value);
int __real_at_map_lookup(int fd, uint32_t key, void *value);

static ssize_t result(ssize_t value)
{
	if (value >= 0)
		return value;
	errno = (int)-value;
	return -1;
}

ssize_t __wrap_sendto(int fd, const void *buf, size_t size, int flags, const struct sockaddr *to,
		      socklen_t to_len)
{
	(void)fd;
	(void)flags;
	(void)to;
	(void)to_len;
	return result(hook_send(buf, size));
}

ssize_t __wrap_recvfrom(int fd, void *buf, size_t size, int flags, struct sockaddr *from,
			socklen_t *from_len)
{
	struct sockaddr_nl *sender = (void *)from;

	(void)flags;
	*from_len = sizeof(*sender);
	return result(hook_receive(fd, buf, size, &sender->nl_pid));
}

ssize_t __wrap_recv(int fd, void *buf, size_t size, int flags)
{
	uint32_t portid;

	(void)flags;
	return result(hook_receive(fd, buf, size, &portid));
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int err = hook_option(level, name);

	if (!err && level == SOL_SOCKET && name == SO_ATTACH_BPF)
		return 0; /* there is no program */
	return err ? (int)result(err) : __real_setsockopt(fd, level, name, value, len);
}

int __wrap_at_engine_apply(struct at_engine *e, const void *buf, size_t size)
{
	int err = hook_apply(((const struct at_header *)buf)->kind);

	return err ? err : __real_at_engine_apply(e, buf, size);
}

int __wrap_at_map_entries(int fd, uint32_t *entries)
{
	*entries = (uint32_t)hook_map('r', fd, 0, NULL);
	return 0;
}

int __wrap_at_map_update(int fd, uint32_t key, const void *value)
{
	return hook_map('u', fd, key, value);
}

int __wrap_at_map_delete(int fd, uint32_t key)
{
	return hook_map('d', fd, key, NULL);
}

int __wrap_at_map_clear(int fd)
{
	return hook_map('c', fd, 0, NULL);
}

int __wrap_at_map_lookup(int fd, uint32_t key, void *value)
{
	return hook_lookup ? hook_lookup() : __real_at_map_lookup(fd, key, value);
}
