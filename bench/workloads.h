/* SPDX-License-Identifier: MIT */
/* workloads.h - the file workloads; each file offers a list that ends with a NULL name. */
#ifndef SHELF_BENCH_WORKLOADS_H
#define SHELF_BENCH_WORKLOADS_H

#include "crew.h"

struct bench_options {
	unsigned threads;
	uint64_t file_bytes; /* tiobench: of each thread's file */
};
extern struct bench_options bench_options;

extern const struct workload pread_workloads[];
extern const struct workload threadperf_workloads[];
extern const struct workload tiobench_workloads[];
extern const struct workload names_workloads[];

#endif
