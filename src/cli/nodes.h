/* SPDX-License-Identifier: MIT */
/* nodes.h - what `shelf run` has beside a shelf: the kernel's half of its FIFOs and sockets, and of messages in flight. */
#ifndef SHELF_CLI_NODES_H
#define SHELF_CLI_NODES_H

/* shelf_remove(), and what is beside the shelf. */
int cli_remove_shelf(const char *name, char *why);
/* Of messages that were in flight when this `shelf run` ended. */
void cli_remove_carriers(const char *name);

#endif
