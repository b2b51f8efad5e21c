/* SPDX-License-Identifier: MIT */
/* start.h - a program without libc behind it begins here. */
#ifndef SHELF_RUN_ALONE_START_H
#define SHELF_RUN_ALONE_START_H

/* Its exit status. */
int alone_main(int argc, char **argv, char **envp);

#endif
