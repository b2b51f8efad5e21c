/* SPDX-License-Identifier: MIT */
/* doctor.h - the two halves of `shelf doctor`. */
#ifndef SHELF_CLI_DOCTOR_H
#define SHELF_CLI_DOCTOR_H

/* On a shelf that is shown at DIR: are calls caught?  Prints one line; the exit status. */
int doctor_self_check(const char *dir);

#endif
