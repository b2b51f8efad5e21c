/* SPDX-License-Identifier: MIT */
/* nodes.h - FIFOs, sockets and devices below the prefix: nodes.c, names.c, carry.c. */
#ifndef SHELF_RUN_PRELOAD_NODES_H
#define SHELF_RUN_PRELOAD_NODES_H

#include <sys/socket.h>
#include <sys/un.h>

#include "run/preload/paths.h"

/* ---- nodes.c: the kernel's half of a node ------------------------------------------------------- */

#define NODE_PATH 108 /* as sun_path */
#define NODE_FOLDER 72

/* The folder with hidden names of this shelf, made if `make`.  -ENAMETOOLONG, or what mkdir says. */
long nodes_folder(char out[NODE_FOLDER], bool make);
/* The token of inotify instance `id`: made, and its name. */
long token_make(char out[NODE_PATH], uint64_t id);
/* The hidden name of an inode. */
long node_path(char out[NODE_PATH], uint64_t ino, uint64_t btime, bool make_folder);
/* The shelf said ENXIO to an open: the kernel opens what the node stands for. */
long node_open(const struct route *rt, long flags);
void serve_nodes_init(void);

/* ---- names.c: addresses of sockets ---------------------------------------------------------------- */

struct name_in {
	struct sockaddr_un addr; /* for the kernel, if `ours` */
	socklen_t len;
	bool ours;
};
/* An address that a program gave, for a call that reaches another socket.  0 or -errno. */
long name_take(struct name_in *in, uint64_t user, uint64_t len);
/* An address that the kernel gave, in memory of the program's with room for ROOM bytes, becomes what the other one bound. */
void name_give(uint64_t user, uint32_t room, uint64_t user_len);
void serve_names_init(void);

/* ---- carry.c: numbers in messages ------------------------------------------------------------------- */

/* Number `fd` of ours as a descriptor of the kernel's that may travel. */
long carry_make(int fd);
/* Number `fd` came in a message: a carrier becomes the file it carries. */
void carry_take(int fd, bool cloexec);
void serve_carry_init(void);

#endif
