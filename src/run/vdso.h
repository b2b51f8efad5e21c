/* SPDX-License-Identifier: MIT */
/* vdso.h - a function of the page that the kernel maps into each process. */
#ifndef SHELF_RUN_VDSO_H
#define SHELF_RUN_VDSO_H

#include <elf.h>

/* Function NAME in PAGE, as the auxiliary vector's AT_SYSINFO_EHDR has it; NULL: there is none. */
const void *vdso_find(const Elf64_Ehdr *page, const char *name);

#endif
