// SPDX-License-Identifier: Apache-2.0
#include "trace.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

/* A probe is a link of libbpf, which needs neither the object nor the program any more. */

/* The one constant of the object. */
static int set_netns(const struct at_object *object, uint32_t netns)
{
	struct bpf_map *map = NULL;

	while ((map = bpf_object__next_map(object->bpf, map)))
		if (bpf_map__is_internal(map) && strstr(bpf_map__name(map), ".rodata"))
			return bpf_map__set_initial_value(map, &netns, sizeof(netns));
	at_log("the object has no constant for the network namespace\n");
	return -EINVAL;
}

static int attach(const struct at_object *object, const char *name, struct at_probe **out)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object->bpf, name);
	struct bpf_link *link;
	int error;

	if (!program) {
		at_log("program %s: the object has none of this name\n", name);
		return -ENOENT;
	}
	bpf_program__set_autoload(program, true);
	error = bpf_object__load(object->bpf);
	if (error)
		return error;
	link = bpf_program__attach(program);
	if (!link)
		return -errno;
	*out = (struct at_probe *)link;
	return 0;
}

int at_probe_attach(const void *object, size_t size, const char *program,
		    const struct at_map_fd *maps, size_t n, uint32_t netns, struct at_probe **out,
		    char *log, size_t log_size)
{
	struct at_object opened;
	int error;

	*out = NULL;
	at_log_begin(log, log_size);
	error = at_object_open(object, size, maps, n, &opened);
	if (!error)
		error = set_netns(&opened, netns);
	if (!error)
		error = attach(&opened, program, out);
	at_object_close(&opened);
	at_log_end();
	return error;
}

void at_probe_detach(struct at_probe *probe)
{
	bpf_link__destroy((struct bpf_link *)probe);
}
