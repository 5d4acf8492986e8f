// Where the outputs of some rows go.

#ifndef ROUNDHOUSE_LINEAR_OUTPUT_H
#define ROUNDHOUSE_LINEAR_OUTPUT_H

#include <type_traits>

#include "linear.h"
#include "vectors.h"

namespace roundhouse {

constexpr int kBlock = 16;  // outputs

inline float widen_one(Bf16 value) { return bits_as<float>(uint32_t(value.bits) << 16); }
inline float widen_one(float value) { return value; }

inline void put(float *to, float value) { *to = value; }

inline void put(Bf16 *to, float value) {
    const uint32_t bits = bits_as<uint32_t>(value);
    *to = value == value ? Bf16{uint16_t((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)} : Bf16{0x7FC0};
}

// Rows of outputs, `stride` elements apart.
template <class Element>
struct Output {
    Element *to;
    int64_t stride;
    const Bf16 *bias;  // or null

    Output from_row(int64_t row) const { return {to + row * stride, stride, bias}; }

    void put_vector(int32_t row, int32_t output, Floats values) const {
        if (bias) values += load(bias + output);
        store(to + row * stride + output, values);
    }

    void put_one(int32_t row, int32_t output, float value) const {
        put(to + row * stride + output, bias ? value + widen_one(bias[output]) : value);
    }
};

// Calls with the number of rows as a constant, 1 … count.
template <int count, class Call>
inline void with_count(int32_t rows, const Call &call) {
    if constexpr (count > 0) {
        if (rows == count)
            call(std::integral_constant<int, count>{});
        else
            with_count<count - 1>(rows, call);
    }
}

}  // namespace roundhouse
#endif
