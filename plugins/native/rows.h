// What is done to rows of activations between the products, row by row: norms, rotation, the gate.

#ifndef ROUNDHOUSE_ROWS_H
#define ROUNDHOUSE_ROWS_H

#include <cmath>

#include "vectors.h"

namespace roundhouse {

inline void load_row(const Bf16 *from, int32_t width, float *to) {
    for (int32_t at = 0; at < width; at += kLanes) store(to + at, load(from + at));
}

inline void add_row(float *to, const float *from, int32_t width) {
    for (int32_t at = 0; at < width; at += kLanes) store(to + at, load(to + at) + load(from + at));
}

// A row over the root of its mean square, times a weight for each element. May be done in place.
inline void normalize(const float *from, const Bf16 *weight, int32_t width, float epsilon, float *to) {
    Floats squares = {};
    for (int32_t at = 0; at < width; at += kLanes) squares = fused(load(from + at), load(from + at), squares);
    const Floats factor = broadcast(1.0f / std::sqrt(sum(squares) / float(width) + epsilon));
    for (int32_t at = 0; at < width; at += kLanes) store(to + at, load(from + at) * factor * load(weight + at));
}

// Rotate the elements of a head, the first half of which belong to those of the second. Half a head is a multiple of 8.
inline void rotate(float *head, const float *cosines, const float *sines, int32_t half) {
    constexpr int lanes = kLanes < 8 ? kLanes : 8;
    for (int32_t at = 0; at < half; at += lanes)
        for (int32_t i = at; i < at + lanes; i++) {
            const float first = head[i], second = head[i + half];
            head[i] = first * cosines[i] - second * sines[i];
            head[i + half] = second * cosines[i] + first * sines[i];
        }
}

// gate = gate * sigmoid(gate) * up.
inline void gate_row(float *gate, const float *up, int32_t width) {
    constexpr float log2_e = 1.44269504f;
    for (int32_t at = 0; at < width; at += kLanes) {
        const Floats x = load(gate + at);
        const Floats size = bits_as<Floats>(bits_as<Words>(x) & 0x7FFFFFFFu);
        const Floats small = power_of_two(size * -log2_e);  // of the two powers the one that cannot overflow
        const Floats share = (x < 0.0f ? small : broadcast(1.0f)) / (1.0f + small);
        store(gate + at, x * share * load(up + at));
    }
}

}  // namespace roundhouse
#endif
