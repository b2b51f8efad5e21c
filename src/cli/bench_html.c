#include "bench.h"
#include "cli.h"
int bench_html(int argc, char **argv) { (void)argc;(void)argv; cli_error("x"); return 1; }
