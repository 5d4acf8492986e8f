// BF16 weights as a checkpoint stores them: an output's weights lie side by side and meet a row's inputs in vectors.

#ifndef ROUNDHOUSE_LINEAR_BF16_H
#define ROUNDHOUSE_LINEAR_BF16_H

#include <algorithm>

#include "linear_output.h"

namespace roundhouse {

class Bf16Weights {
   public:
    static constexpr int kRows = 6;  // of a tile

    explicit Bf16Weights(const RhLinear &linear)
        : weights_(static_cast<const Bf16 *>(linear.weights)), outputs_(linear.outputs), inputs_(linear.inputs) {}

    int32_t inputs() const { return inputs_; }
    int32_t outputs() const { return outputs_; }
    int32_t steps() const { return divide_up(outputs_, kBlock); }

    // A tile holds [kRows][inputs] inputs; of every two vectors of them first those at even places, then those at odd ones.
    int64_t tile_floats() const { return int64_t(inputs_) * kRows; }

    template <class Input>
    void prepare(const Input *input, int32_t rows, const Bf16 *input_scale, float *tile) const {
        for (int32_t row = 0; row < rows; row++, input += inputs_, tile += inputs_)
            for (int32_t k = 0; k < inputs_; k++) {
                const float value = widen_one(input[k]);
                const int32_t at = k % kPair / 2 + k % 2 * kLanes;
                tile[k - k % kPair + at] = input_scale ? value * widen_one(input_scale[k]) : value;
            }
    }

    template <class Element>
    void multiply(int32_t step, const float *tile, int32_t rows, const Output<Element> &output) const {
        const int32_t first = step * kBlock, last = std::min(first + kBlock, outputs_);
        int32_t row = 0;
        for (; row + 3 <= rows; row += 3) multiply_rows<3, 4>(first, last, tile, row, output);
        for (; row < rows; row++) multiply_rows<1, 8>(first, last, tile, row, output);
    }

   private:
    enum class Place { even, odd };
    static constexpr int kPair = 2 * kLanes;

    const Bf16 *const weights_;
    const int32_t outputs_, inputs_;

    // Two weights lie in a word. Put at its top, either is the upper half of a float.
    template <int rows, int columns, Place place>
    ROUNDHOUSE_INLINE void add_half(const Bf16 *weights, const float *inputs, Floats (&products)[rows * columns]) const {
        Floats input[rows];
        for (int row = 0; row < rows; row++) input[row] = load(inputs + int64_t(row) * inputs_);
        for (int column = 0; column < columns; column++) {
            const Words words = load_bits<Words>(weights + int64_t(column) * inputs_);
            const Floats weight = bits_as<Floats>(place == Place::even ? words << 16 : words & 0xFFFF0000u);
            for (int row = 0; row < rows; row++)
                products[row * columns + column] = fused(input[row], weight, products[row * columns + column]);
        }
    }

    template <int rows, int columns, class Element>
    void multiply_rows(int32_t first, int32_t last, const float *tile, int32_t row, const Output<Element> &output) const {
        for (; first + columns <= last; first += columns) multiply_some<rows, columns>(first, tile, row, output);
        for (; first < last; first++) multiply_some<rows, 1>(first, tile, row, output);
    }

    template <int rows, int columns, class Element>
    void multiply_some(int32_t first, const float *tile, int32_t row, const Output<Element> &output) const {
        const Bf16 *weights = weights_ + int64_t(first) * inputs_;
        const float *inputs = tile + int64_t(row) * inputs_;
        Floats products[rows * columns] = {};
        for (int32_t k = 0; k < inputs_; k += kPair) {
            add_half<rows, columns, Place::even>(weights + k, inputs + k, products);
            add_half<rows, columns, Place::odd>(weights + k, inputs + k + kLanes, products);
        }
        for (int at = 0; at < rows; at++)
            for (int column = 0; column < columns; column++)
                output.put_one(row + at, first + column, sum(products[at * columns + column]));
    }
};

}  // namespace roundhouse
#endif
