/* SPDX-License-Identifier: MIT */
/*
 * key.h - what `shelf run` and its programs agree upon, so that one that gave up its rights can attach after an exec.
 *
 * The segment belongs to who started `shelf run`, and nobody else may open it.  A program started as root may become
 * another user, as su, servers and tests do; its next image could not attach.  It asks the process `shelf run`, which
 * waits for it anyway, and gets an open descriptor of the segment: over a sequenced socket of abstract name
 * "shelf-run-NAME", for the secret.  NAME and secret are random, and in the variable SHELF_RUN, which only the
 * program's own users can read: who has it has the shelf, as with an inherited descriptor.
 *
 * Giving up rights is therefore no border: who can open the segment, or has it open, has all of the shelf.  Modes, owners and
 * capabilities are looked at by the code that runs in the process itself, and keep an honest program from mistakes; a
 * hostile one stores to the segment what it likes, to files of other users and to what is opened by root's processes too.
 * Programs that do not trust each other want a shelf each, or the kernel's tmpfs.
 * Only root can become another user, so others' `shelf run` has no such socket.
 */
#ifndef SHELF_RUN_KEY_H
#define SHELF_RUN_KEY_H

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define RUN_KEY_NAME 16 /* hexadecimal digits */
#define RUN_KEY_SECRET 32
#define RUN_KEY (RUN_KEY_NAME + RUN_KEY_SECRET)

/* The socket's address.  Its length. */
static inline size_t run_key_address(const char *key, struct sockaddr_un *address)
{
	static const char prefix[] = "shelf-run-";
	size_t n = sizeof(prefix) - 1;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path + 1, prefix, n);
	memcpy(address->sun_path + 1 + n, key, RUN_KEY_NAME);
	return offsetof(struct sockaddr_un, sun_path) + 1 + n + RUN_KEY_NAME;
}

/* Room for one descriptor in a message. */
union run_key_control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

#endif
