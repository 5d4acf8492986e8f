// Scratch memory of one call.

#ifndef ROUNDHOUSE_MEMORY_H
#define ROUNDHOUSE_MEMORY_H

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace roundhouse {

struct FreeMemory {
    void operator()(float *memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<float, FreeMemory>;

inline Memory reserve(int64_t floats) {
    Memory memory(static_cast<float *>(std::aligned_alloc(64, (sizeof(float) * size_t(floats) / 64 + 1) * 64)));
    if (!memory) throw std::bad_alloc();
    return memory;
}

}  // namespace roundhouse
#endif
