// SPDX-License-Identifier: Apache-2.0
/* Network namespaces, by the names that `ip netns` gives them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "netlink.h"

int at_netns_enter(const char *name)
{
	const char *format = strchr(name, '/') ? "%s" : "/run/netns/%s";
	char path[4096];
	int fd, err = 0;

	if ((size_t)snprintf(path, sizeof(path), format, name) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (setns(fd, CLONE_NEWNET) < 0)
		err = -errno;
	close(fd);
	return err;
}
