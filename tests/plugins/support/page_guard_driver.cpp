// Runs the CPU's page guard on random tables. Built with sanitizers by the tests.

#include <cstdio>
#include <cstdlib>

#include "attention.h"
#include "guard_problem.h"

int main(int count, char **arguments) {
    random_bits.seed(count > 1 ? std::atoi(arguments[1]) : 1);
    for (int round = 0; round < 400; round++) {
        GuardProblem problem;
        const RhPageGuard guard = problem.guard();
        if (const int code = rh_page_guard(&guard, problem.first_bad.data()))
            return std::printf("round %d: code %d\n", round, code), 1;
        if (const int row = problem.wrong_row(); row >= 0) return std::printf("round %d: row %d\n", round, row), 1;
    }
    for (const RhPageGuard &guard : {RhPageGuard{0, 0, 0, 0, -1, 1, 1}, {0, 0, 0, 0, 1, -1, 1}, {0, 0, 0, 0, 1, 1, -1}})
        if (rh_page_guard(&guard, nullptr) != RH_BAD_GEOMETRY) return std::puts("a negative size was taken"), 1;
    std::puts("agreed");
}
