// Rows in tiles, and where a tile's outputs go.

#ifndef ROUNDHOUSE_LINEAR_OUTPUT_H
#define ROUNDHOUSE_LINEAR_OUTPUT_H

#include "linear.h"
#include "vectors.h"

namespace roundhouse {

constexpr int kTile = 6;    // rows that share what is decoded of the weights
constexpr int kBlock = 16;  // outputs

inline float widen_one(Bf16 value) { return bits_as<float>(uint32_t(value.bits) << 16); }

inline void put(float *to, float value) { *to = value; }

inline void put(Bf16 *to, float value) {
    const uint32_t bits = bits_as<uint32_t>(value);
    *to = value == value ? Bf16{uint16_t((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)} : Bf16{0x7FC0};
}

template <class Element>
class Output {
   public:
    Output(const RhProduct &product, int32_t outputs, int64_t first_row)
        : to_(static_cast<Element *>(product.output) + first_row * outputs),
          bias_(static_cast<const Bf16 *>(product.bias)),
          outputs_(outputs) {}

    void put_vector(int32_t row, int32_t output, Floats values) const {
        if (bias_) values += load(bias_ + output);
        store(to_ + int64_t(row) * outputs_ + output, values);
    }

    void put_one(int32_t row, int32_t output, float value) const {
        put(to_ + int64_t(row) * outputs_ + output, bias_ ? value + widen_one(bias_[output]) : value);
    }

   private:
    Element *const to_;
    const Bf16 *const bias_;
    const int32_t outputs_;
};

}  // namespace roundhouse
#endif
