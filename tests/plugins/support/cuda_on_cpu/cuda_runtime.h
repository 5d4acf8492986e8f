// What the page guard's kernel needs of CUDA, on the CPU: one block at a time, its threads as real ones. It shows which
// cells each thread reads and that the answer is right; nothing about a GPU.

#ifndef CUDA_ON_CPU
#define CUDA_ON_CPU

#include <pthread.h>

#include <cstdint>
#include <thread>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __shared__ static

struct alignas(16) int4 {
    int32_t x, y, z, w;
};
struct Place {
    int32_t x;
};

inline thread_local Place threadIdx, blockIdx;
inline pthread_barrier_t block_barrier;

inline void __syncthreads() { pthread_barrier_wait(&block_barrier); }

inline void atomicMin(int32_t *at, int32_t value) {
    int32_t seen = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (value < seen && !__atomic_compare_exchange_n(at, &seen, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

template <class Kernel>
void launch(int32_t blocks, int32_t threads, Kernel kernel) {
    pthread_barrier_init(&block_barrier, nullptr, threads);
    std::vector<std::thread> running;
    for (int32_t thread = 0; thread < threads; thread++)
        running.emplace_back([=] {
            threadIdx.x = thread;
            for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) kernel();
        });
    for (std::thread &each : running) each.join();
    pthread_barrier_destroy(&block_barrier);
}

#endif
