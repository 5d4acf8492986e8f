// Runs the CUDA kernel's source on the CPU on random tables. Built with sanitizers by the tests: a load of four cells that is
// not aligned is caught too.

#include <cstdio>
#include <cstdlib>

#include "cuda/page_guard.cuh"
#include "guard_problem.h"

int main(int count, char **arguments) {
    random_bits.seed(count > 1 ? std::atoi(arguments[1]) : 1);
    for (int round = 0; round < 40; round++) {
        GuardProblem problem;
        launch(problem.rows, roundhouse::kGuardThreads, [&] {
            const RhPageGuard guard = problem.guard();
            rh_page_guard_kernel(guard.page_table, guard.page_count, guard.expected_tags, guard.page_tags, guard.columns,
                                 guard.pages, problem.first_bad.data());
        });
        if (const int row = problem.wrong_row(); row >= 0) return std::printf("round %d: row %d\n", round, row), 1;
    }
    std::puts("agreed");
}
