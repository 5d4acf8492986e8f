// The page guard on a GPU, as a plain C interface like page_guard.h's, on pointers into the GPU's memory.

#ifndef ROUNDHOUSE_PAGE_GUARD_LAUNCH_H
#define ROUNDHOUSE_PAGE_GUARD_LAUNCH_H

#include "../page_guard.h"

#define RH_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// Launches the comparison on a cudaStream_t of the current device and returns at once. The cudaError_t of the launch: 0
// when it was launched.
RH_EXPORT int32_t rh_page_guard_cuda(const RhPageGuard *guard, int32_t *first_bad, void *stream);

#ifdef __cplusplus
}
#endif
#endif
