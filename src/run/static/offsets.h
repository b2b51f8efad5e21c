/* SPDX-License-Identifier: MIT */
/* offsets.h - for enter.S and static.h. */
#ifndef SHELF_RUN_STATIC_OFFSETS_H
#define SHELF_RUN_STATIC_OFFSETS_H

#define STATIC_CHILD 8 /* of struct static_thread */
#define ARCH_SET_GS 0x1001
#define SYS_ARCH_PRCTL 158

#endif
