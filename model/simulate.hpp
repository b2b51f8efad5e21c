/* SPDX-License-Identifier: MIT */
/* simulate.hpp - how each relacy model is run: random schedules, so many.  Exit status: 0 it holds, 1 it breaks. */
#ifndef MODEL_SIMULATE_HPP
#define MODEL_SIMULATE_HPP

#include <relacy/relacy.hpp>

template <class Test> int simulate(unsigned schedules)
{
	rl::test_params params;

	params.search_type = rl::random_scheduler_type;
	params.iteration_count = schedules;
	return rl::simulate<Test>(params) ? 0 : 1;
}

#endif
