/* SPDX-License-Identifier: MIT */
/* strict.h - `shelf run --strict`: strict.c. */
#ifndef SHELF_RUN_PRELOAD_STRICT_H
#define SHELF_RUN_PRELOAD_STRICT_H

#include "run/preload/serve.h"

void strict_start(void); /* ends the process if the kernel cannot do it */
void strict_call(void); /* each call that comes by the dispatcher */

#endif
