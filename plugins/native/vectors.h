// Vectors of floats as wide as the CPU's registers, and the few operations that attention needs.
//
// Written with the vector extensions that g++ and clang++ share; intrinsics appear only where those have no word:
// a fused multiply-add and the conversion of half floats. Compile with -ffp-contract=off: what is fused is written so,
// and every number is the same whichever loop it was computed in.

#ifndef ROUNDHOUSE_VECTORS_H
#define ROUNDHOUSE_VECTORS_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// Tests set ROUNDHOUSE_LANES to run another width's code on the CPU they have.
#if defined(ROUNDHOUSE_LANES)
#elif defined(__AVX512F__)
#define ROUNDHOUSE_LANES 16
#elif defined(__AVX2__)
#define ROUNDHOUSE_LANES 8
#else
#define ROUNDHOUSE_LANES 4
#endif

// For the body of a loop that keeps its sums in registers.
#define ROUNDHOUSE_INLINE __attribute__((always_inline)) inline

namespace roundhouse {

constexpr int kLanes = ROUNDHOUSE_LANES;

typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef uint16_t Shorts __attribute__((vector_size(2 * kLanes)));
typedef uint8_t Bytes __attribute__((vector_size(kLanes)));
typedef int8_t SignedBytes __attribute__((vector_size(kLanes)));

// Elements as they lie in memory.
struct Bf16 {
    uint16_t bits;
};
struct Fp8 {
    uint8_t bits;
};

constexpr float kFp8LoadFactor = 256.0f;  // what a loaded Fp8 still has to be multiplied by: attention folds it into a scale

template <class To, class From>
inline To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits under another name");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

template <class Vector>
inline Vector load_bits(const void *from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

constexpr int32_t divide_up(int32_t a, int32_t b) { return a / b + (a % b != 0); }

constexpr int round_to_lanes(int count) { return (count + kLanes - 1) / kLanes * kLanes; }

inline Floats broadcast(float value) { return value - Floats{}; }

// a * b + c, rounded once where the CPU can.
inline Floats fused(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__) && ROUNDHOUSE_LANES == 16
    return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__) && ROUNDHOUSE_LANES == 8
    return _mm256_fmadd_ps(a, b, c);
#elif defined(__aarch64__) && ROUNDHOUSE_LANES == 4
    return vfmaq_f32(c, a, b);
#else
    return a * b + c;
#endif
}

inline Floats load(const float *from) { return load_bits<Floats>(from); }

inline Floats load(const Bf16 *from) {
#if defined(__AVX512F__) && ROUNDHOUSE_LANES == 16
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_bits<__m256i>(from)), 16));
#elif defined(__AVX2__) && ROUNDHOUSE_LANES == 8
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_bits<__m128i>(from)), 16));
#else
    return bits_as<Floats>(__builtin_convertvector(load_bits<Shorts>(from), Words) << 16);
#endif
}

// e4m3 bits put in the same places of a wider float are the value divided by two to the difference of the exponent
// biases: 7 here, 15 in a half, 127 in a float. Exact, subnormals included. The two NaN patterns become ±480: they are
// stored only for a NaN, and the request that produced one has failed by then.
inline Floats load(const Fp8 *from) {
#if defined(__AVX512F__) && ROUNDHOUSE_LANES == 16
    const __m256i wide = _mm256_slli_epi16(_mm256_cvtepi8_epi16(load_bits<__m128i>(from)), 7);
    return _mm512_cvtph_ps(_mm256_and_si256(wide, _mm256_set1_epi16(static_cast<int16_t>(0xBFFF))));
#elif defined(__F16C__) && ROUNDHOUSE_LANES == 8
    const __m128i wide = _mm_slli_epi16(_mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(from))), 7);
    return _mm256_cvtph_ps(_mm_and_si128(wide, _mm_set1_epi16(static_cast<int16_t>(0xBFFF))));
#else
    const Words wide = bits_as<Words>(__builtin_convertvector(load_bits<SignedBytes>(from), Ints)) << 20;
    return bits_as<Floats>(wide & 0x87F00000u) * 0x1p112f;
#endif
}

inline void store(float *to, Floats values) { std::memcpy(to, &values, sizeof values); }

// To the nearest, ties to even, as torch rounds; NaN stays NaN.
inline void store(Bf16 *to, Floats values) {
    const Words bits = bits_as<Words>(values);
    const Words rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    const Words nan = Words{} + 0x7FC0u;
    const Shorts stored = __builtin_convertvector(values == values ? rounded : nan, Shorts);
    std::memcpy(to, &stored, sizeof stored);
}

// To the nearest, ties to even, saturating at ±448; NaN stays NaN: the bits that torch stores for a clamped row.
inline void store(Fp8 *to, Floats values) {
    constexpr uint32_t smallest_normal = 121u << 23;  // 2**-6
    constexpr uint32_t unit_512 = 141u << 23;         // 2**14: next to it a float's last place is 2**-9, e4m3's smallest step
    const Words bits = bits_as<Words>(values), sign = (bits >> 24) & 0x80u;
    const Floats size = bits_as<Floats>(bits & 0x7FFFFFFFu), largest = broadcast(448.0f);
    const Floats clamped = size > largest ? largest : size;
    const Words placed = bits_as<Words>(clamped);
    const Words normal = ((placed + 0x7FFFFu + ((placed >> 20) & 1u)) >> 20) - (120u << 3);
    const Words subnormal = bits_as<Words>(clamped + 0x1p14f) - unit_512;
    const Words finite = placed < smallest_normal ? subnormal : normal;
    const Words nan = Words{} + 0x7Fu;
    const Shorts narrowed = __builtin_convertvector((values == values ? finite : nan) | sign, Shorts);
    const Bytes stored = __builtin_convertvector(narrowed, Bytes);
    std::memcpy(to, &stored, sizeof stored);
}

// 2**x for x ≤ 0, within 2 units in the last place; 0 below 2**-126, NaN for NaN.
inline Floats power_of_two(Floats x) {
    const Floats lowest = broadcast(-126.0f), rounder = broadcast(0x1.8p23f);
    const auto vanishes = x < lowest;
    const Floats kept = vanishes ? lowest : x;  // NaN compares as false and is kept
    const Floats shifted = kept + rounder;      // its last places now hold the nearest whole number
    const Floats rest = kept - (shifted - rounder);
    Floats power = broadcast(1.5403530e-4f);  // the series of 2**rest: ln(2)**n / n!
    power = fused(power, rest, broadcast(1.3333558e-3f));
    power = fused(power, rest, broadcast(9.6181291e-3f));
    power = fused(power, rest, broadcast(5.5504109e-2f));
    power = fused(power, rest, broadcast(2.4022651e-1f));
    power = fused(power, rest, broadcast(6.9314718e-1f));
    power = fused(power, rest, broadcast(1.0f));
    const Words exponent = (bits_as<Words>(shifted) + 127u) << 23;
    return vanishes ? Floats{} : power * bits_as<Floats>(exponent);
}

// Where a lane of `pick` comes from: every second group of `group` adjacent elements of a, then those of b. Single
// elements are picked within each 128-bit part of a register, where shuffles are cheap.
template <int group, bool second>
constexpr int source_of(int lane) {
    const int part = group == 1 ? 4 : kLanes, at = lane % part, half = part / 2;
    const int within = at % half / group * 2 * group + at % group + (second ? group : 0);
    return lane - at + within + (at < half ? 0 : kLanes);
}

template <int group, bool second, int... lane>
inline Floats pick(Floats a, Floats b, std::integer_sequence<int, lane...>) {
#if defined(__clang__)
    return __builtin_shufflevector(a, b, source_of<group, second>(lane)...);
#else
    return __builtin_shuffle(a, b, Ints{source_of<group, second>(lane)...});
#endif
}

template <int group>
inline Floats add_neighbours(Floats a, Floats b) {
    constexpr auto lanes = std::make_integer_sequence<int, kLanes>{};
    return pick<group, false>(a, b, lanes) + pick<group, true>(a, b, lanes);
}

// The sums over each of `count` vectors, side by side; over kLanes of them, one a lane.
template <int count = kLanes>
inline Floats sums(const Floats *vectors) {
    if constexpr (count == 1)
        return vectors[0];
    else
        return add_neighbours<count <= 4 ? 1 : 4>(sums<count / 2>(vectors), sums<count / 2>(vectors + count / 2));
}

// A vector's lanes put together pair by pair, which is the shortest chain.
template <int count = kLanes>
inline float sum(Floats values, int first = 0) {
    if constexpr (count == 1)
        return values[first];
    else
        return sum<count / 2>(values, first) + sum<count / 2>(values, first + count / 2);
}

template <int count = kLanes>
inline float largest(Floats values, int first = 0) {
    if constexpr (count == 1) {
        return values[first];
    } else {
        const float a = largest<count / 2>(values, first), b = largest<count / 2>(values, first + count / 2);
        return b > a ? b : a;
    }
}

}  // namespace roundhouse
#endif
