// Whole numbers of eight bits: how floats become them, and sums of their products. See vectors.h for how this is written.

#ifndef ROUNDHOUSE_BYTES_H
#define ROUNDHOUSE_BYTES_H

#include "vectors.h"

namespace roundhouse {

// The nearest whole numbers, ties to even, of floats between −2**22 and 2**22; anything for what is no number.
inline Ints to_whole(Floats values) {
    const Floats rounder = broadcast(0x1.8p23f);
    return bits_as<Ints>(values + rounder) - bits_as<Ints>(rounder);
}

inline void store_bytes(int8_t *to, Ints values) {
    const SignedBytes bytes = __builtin_convertvector(values, SignedBytes);
    std::memcpy(to, &bytes, sizeof bytes);
}

inline int32_t sum_of_lanes(Ints values) {
    int32_t total = 0;
    for (int lane = 0; lane < kLanes; lane++) total += values[lane];
    return total;
}

// The same four bytes in every lane.
inline Words four_bytes(const int8_t *from) { return load_bits<uint32_t>(from) + Words{}; }

// Sums of products of four bytes a lane: `small` are unsigned and at most 15, `bytes` signed. Where the CPU adds them up in
// 16 bits these hold eight additions, which is what 32 inputs take.
#if defined(__AVX512VNNI__) && ROUNDHOUSE_LANES == 16
typedef Ints ByteSums;

inline void add_bytes(ByteSums &sums, Words small, Words bytes) {
    sums = bits_as<Ints>(_mm512_dpbusd_epi32(bits_as<__m512i>(sums), bits_as<__m512i>(small), bits_as<__m512i>(bytes)));
}

inline Ints widened(ByteSums sums) { return sums; }

#elif defined(__AVX2__) && ROUNDHOUSE_LANES == 8
typedef int16_t ByteSums __attribute__((vector_size(4 * kLanes)));

inline void add_bytes(ByteSums &sums, Words small, Words bytes) {
    sums += bits_as<ByteSums>(_mm256_maddubs_epi16(bits_as<__m256i>(small), bits_as<__m256i>(bytes)));
}

inline Ints widened(ByteSums sums) {
    return bits_as<Ints>(_mm256_madd_epi16(bits_as<__m256i>(sums), _mm256_set1_epi16(1)));
}

#else
typedef Ints ByteSums;

inline void add_bytes(ByteSums &sums, Words small, Words bytes) {
    for (int place = 0; place < 32; place += 8)
        sums += bits_as<Ints>((small >> place) & 0xFFu) * (bits_as<Ints>(bytes << (24 - place)) >> 24);
}

inline Ints widened(ByteSums sums) { return sums; }
#endif

}  // namespace roundhouse
#endif
