// The kernel, and its launch as a plain C function; this file is also what the PTX is made from.

#include "page_guard_launch.h"

#include "page_guard.cuh"

int32_t rh_page_guard_cuda(const RhPageGuard *guard, int32_t *first_bad, void *stream) {
    if (guard->rows < 0 || guard->columns < 0 || guard->pages < 0) return cudaErrorInvalidValue;
    if (guard->rows == 0) return cudaSuccess;
    rh_page_guard_kernel<<<guard->rows, roundhouse::kGuardThreads, 0, static_cast<cudaStream_t>(stream)>>>(
        guard->page_table, guard->page_count, guard->expected_tags, guard->page_tags, guard->columns, guard->pages, first_bad);
    return cudaGetLastError();
}
