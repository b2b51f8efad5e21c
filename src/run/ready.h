/* SPDX-License-Identifier: MIT */
/*
 * ready.h - a library whose system calls are rewritten already: a file made once, whose text each process maps over
 * that of the library it was made from.  No page becomes a copy of the process's own, where patching makes one of
 * each page with a site, and nothing is decoded or compared.
 *
 * The file is the library's own, byte for byte, but for the jumps in its text; behind it the slots (slots.h), in whole
 * pages, and struct ready_tail.  Debuggers and profilers that look into it find the symbols of the original.
 *
 * The same text in every process leaves it no distance that differs between them.  So a site jumps through a word of
 * memory of the process's own at a fixed distance from the library, READY_DISTANCE behind its text, and slots find
 * their way by struct run_links.  READY_DISTANCE makes the last byte of the jump's six 0x0f: with `mov $nr,%eax;
 * syscall` that is where the syscall instruction begins, which so stays in place as it does behind a jump of five.
 *
 * What a process maps is what it would have made itself: the file was compared byte by byte, when it was made, with the
 * text in memory and with the table; it counts only for the same build id, the same size and time of the library's
 * file, the same numbers wanted and the same place for the slots, which all are in its name; and only where the text in
 * memory is the file's still, no page of it written to by a debugger, a probe or another library.  In any other case, and
 * where a map is refused (a folder mounted noexec, no room at the distance), the caller patches (patch.h).
 */
#ifndef SHELF_RUN_READY_H
#define SHELF_RUN_READY_H

#include "run/patch.h"

#define READY_DISTANCE 0x0f000000u

/*
 * Maps the copy that is kept in DIR.  0, or an error with nothing changed: -ENOENT or -EBADMSG, there is none that holds; -EACCES:
 * there is one that this user may not read or not trust.  Then he has one of his OWN.
 */
int ready_map(const struct run_image *im, const char *dir, const uint8_t *wanted, bool own, struct patch_count *n);

/* After the last one: closes what they share. */
void ready_end(void);

/*
 * Makes it.  C is where table_open left it; the text is as it was loaded.  -ENOTSUP: a site cannot take the longer jump,
 * or refers to its surroundings; -ESTALE: memory, table and file are not of one library.  BAD: one that does not hold is in its
 * place.  Nothing is begun where no file can be made.
 */
int ready_make(const struct run_image *im, struct table_cursor c, const char *dir, const uint8_t *wanted, bool own, bool bad);

#endif
