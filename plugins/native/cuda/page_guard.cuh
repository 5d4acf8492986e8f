// The page guard on CUDA: a block of threads for each row, and one launch for the whole batch.
//
// Included by whoever compiles the kernel into something: the library, the PTX of ahead-of-time plugins, the TensorRT plugin.

#ifndef ROUNDHOUSE_PAGE_GUARD_CUH
#define ROUNDHOUSE_PAGE_GUARD_CUH

#include <cuda_runtime.h>

#include "../page_guard.h"

namespace roundhouse {

constexpr int32_t kGuardThreads = 256;

// What a row's threads compare, and where the lowest bad column of them is kept.
struct GuardedRow {
    const int32_t *cells;
    const int32_t *expected;
    const int32_t *page_tags;
    int32_t pages;
    int32_t *first_bad;  // in shared memory

    // Mismatches are rare: while all agree nothing is written.
    __device__ __forceinline__ void compare(int32_t column, int32_t page, int32_t tag) const {
        if (!cell_agrees(page, tag, page_tags, pages)) atomicMin(first_bad, column);
    }
    __device__ __forceinline__ void compare_one_by_one(int32_t first, int32_t last) const {
        for (int32_t column = first + threadIdx.x; column < last; column += kGuardThreads)
            compare(column, cells[column], expected[column]);
    }
    // From a column where both rows are aligned to 16 bytes: neighbouring threads load neighbouring fours.
    __device__ __forceinline__ void compare_by_fours(int32_t first, int32_t fours) const {
        const int4 *const pages4 = reinterpret_cast<const int4 *>(cells + first);
        const int4 *const tags4 = reinterpret_cast<const int4 *>(expected + first);
        for (int32_t four = threadIdx.x; four < fours; four += kGuardThreads) {
            const int4 page = pages4[four], tag = tags4[four];
            const int32_t column = first + 4 * four;
            compare(column, page.x, tag.x);
            compare(column + 1, page.y, tag.y);
            compare(column + 2, page.z, tag.z);
            compare(column + 3, page.w, tag.w);
        }
    }
};

// Columns to go until a row is aligned to 16 bytes.
__device__ __forceinline__ int32_t columns_to_alignment(const int32_t *row) {
    return int32_t(-(reinterpret_cast<uintptr_t>(row) / sizeof(int32_t)) & 3);
}

}  // namespace roundhouse

// Launch with `rows` blocks of kGuardThreads threads. The order of the arguments is what TensorRT's ahead-of-time plugins
// pass: inputs, numbers, outputs.
extern "C" __global__ void __launch_bounds__(roundhouse::kGuardThreads) rh_page_guard_kernel(
    const int32_t *__restrict__ page_table, const int32_t *__restrict__ page_count,
    const int32_t *__restrict__ expected_tags, const int32_t *__restrict__ page_tags, int32_t columns, int32_t pages,
    int32_t *__restrict__ first_bad) {
    using namespace roundhouse;
    __shared__ int32_t lowest;
    const int64_t start = int64_t(blockIdx.x) * columns;
    const int32_t count = page_count[blockIdx.x], cells = compared_cells(count, columns);
    const GuardedRow row{page_table + start, expected_tags + start, page_tags, pages, &lowest};
    if (threadIdx.x == 0) lowest = cells;
    __syncthreads();

    const int32_t head = columns_to_alignment(row.cells);
    if (head == columns_to_alignment(row.expected) && head < cells) {
        const int32_t fours = (cells - head) / 4;
        row.compare_one_by_one(0, head);
        row.compare_by_fours(head, fours);
        row.compare_one_by_one(head + 4 * fours, cells);
    } else {
        row.compare_one_by_one(0, cells);
    }

    __syncthreads();
    if (threadIdx.x == 0) first_bad[blockIdx.x] = row_verdict(lowest, count, columns);
}

#endif
