/* SPDX-License-Identifier: MIT */
/*
 * program.h - what a file is that is to be run: would the library be loaded into it?
 *
 * For the runtime's exec, whose files may lie in the shelf, and for `shelf run`, which starts the first program.
 */
#ifndef SHELF_RUN_PROGRAM_H
#define SHELF_RUN_PROGRAM_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define PROGRAM_FRONT_NOTE "shelf" /* the name of a note in the command `shelf`, which has no loader and is let through */

enum program_kind {
	PROGRAM_PLAIN,
	PROGRAM_SCRIPT, /* "#!" */
	PROGRAM_OTHER, /* no ELF file: the kernel knows */
	PROGRAM_STATIC, /* no loader, so no preloaded library: run/static/static.h */
	PROGRAM_BARE, /* nor does it tell where its functions are */
	PROGRAM_RIGHTS, /* set-ID, with capabilities, or started with ids that are not the real ones: the loader would leave the library out */
	PROGRAM_FOREIGN, /* another machine's */
};

/* An open file.  `read` as pread(2), `stat` as fstat(2), `attribute` as fgetxattr(2), but with -errno. */
struct program_file {
	long (*read)(const struct program_file *f, void *buf, size_t n, off_t at);
	long (*stat)(const struct program_file *f, struct stat *st);
	long (*attribute)(const struct program_file *f, const char *name, void *buf, size_t n);
	bool (*gives_rights)(const struct program_file *f); /* set-ID bits and capabilities count where it lies */
	int fd;
};

/* One of the kernel's, by a descriptor. */
struct program_file program_kernels(int fd);
/* Opened for that, if only as a path where it may not be read.  Or -errno. */
long program_open(int dirfd, const char *path);

/* Where the kernel has what is open as FD; the length, or -errno. */
long program_path(int fd, char *buf, size_t size);
/* Of the kernel's: may this process run it?  -EACCES, also where nothing may be run. */
long program_may_run(const struct program_file *f);

/* The first bytes: the kernel looks at as many.  NUL behind them. */
struct program_head {
	long len;
	_Alignas(8) char bytes[256];
};

/* "#!interpreter argument": both are cut out of the head; no argument: NULL.  False: there is no interpreter, or its name is cut off. */
bool program_script(struct program_head *head, char **interpreter, char **argument);

enum program_kind program_look(const struct program_file *f, const char *path, struct program_head *head);
/* Why it is not started, to be said behind its name; NULL: it may be. */
const char *program_refusal(enum program_kind kind);

/* Header I of an ELF file; false: there is none. */
bool program_header(const struct program_file *f, const struct program_head *head, unsigned i, Elf64_Phdr *ph);
/* The section called NAME. */
bool program_section(const struct program_file *f, const struct program_head *head, const char *name, Elf64_Shdr *sh);
/* Is PATH the loader itself, to be run by its name? */
bool program_is_loader(const char *path);

#endif
