// INT4 weights, 16 outputs side by side: every decoded vector meets one input of each row.

#ifndef ROUNDHOUSE_LINEAR_INT4_H
#define ROUNDHOUSE_LINEAR_INT4_H

#include <algorithm>

#include "linear_output.h"

namespace roundhouse {

// Where in its word the q of input k of 8 lies: the low nibbles of its bytes are the first four, the high ones the others.
constexpr int nibble_of(int k) { return k % 4 * 2 + k / 4; }

// The q in nibble j of 8, as floats times 16**j; the last one is shifted down, for up there it would meet the sign.
template <int j>
inline Floats decode(Words words) {
    const Words bits = j < 7 ? words & (15u << (4 * j)) : words >> 28;
    return __builtin_convertvector(bits_as<Ints>(bits), Floats);
}

constexpr float kNibbleFactor[8] = {1.0f, 0x1p-4f, 0x1p-8f, 0x1p-12f, 0x1p-16f, 0x1p-20f, 0x1p-24f, 1.0f};

class Int4Weights {
   public:
    static constexpr int kRows = 6;  // of a tile; they share what is decoded of the weights

    explicit Int4Weights(const RhLinear &linear)
        : words_(static_cast<const uint32_t *>(linear.weights)),
          scales_(linear.scales),
          blocks_(linear.outputs / kBlock),
          inputs_(linear.inputs),
          groups_(linear.inputs / linear.group),
          group_(linear.group) {}

    int32_t inputs() const { return inputs_; }
    int32_t outputs() const { return blocks_ * kBlock; }
    int32_t steps() const { return divide_up(blocks_, kStepBlocks); }

    // A tile holds [inputs][kRows] inputs, in the order of the nibbles and times their factor, then [groups][kRows] what q − 8
    // adds for the 8.
    int64_t tile_floats() const { return int64_t(inputs_ + groups_) * kRows; }

    template <class Input>
    void prepare(const Input *input, int32_t rows, const Bf16 *input_scale, float *tile) const {
        float *offsets = tile + int64_t(inputs_) * kRows;
        for (int32_t row = 0; row < rows; row++)
            for (int32_t group = 0; group < groups_; group++) {
                float sum = 0.0f;
                for (int32_t k = group * group_; k < (group + 1) * group_; k++) {
                    float value = widen_one(input[int64_t(row) * inputs_ + k]);
                    if (input_scale) value *= widen_one(input_scale[k]);
                    sum += value;
                    const int nibble = nibble_of(k % 8);
                    tile[int64_t(k - k % 8 + nibble) * kRows + row] = value * kNibbleFactor[nibble];
                }
                offsets[group * kRows + row] = -8.0f * sum;
            }
    }

    template <class Element>
    void multiply(int32_t step, const float *tile, int32_t rows, const Output<Element> &output) const {
        const int32_t first = step * kStepBlocks, last = std::min(first + kStepBlocks, blocks_);
        with_count<kRows>(rows, [&](auto count) {
            constexpr int tile_rows = decltype(count)::value;
            int32_t block = first;
            if constexpr (kStepBlocks * tile_rows * kParts <= kSumRegisters)
                for (; block + kStepBlocks <= last; block += kStepBlocks)
                    multiply_blocks<tile_rows, kStepBlocks>(block, tile, output);
            for (; block < last; block++) multiply_blocks<tile_rows, 1>(block, tile, output);
        });
    }

   private:
    static constexpr int kParts = kBlock / kLanes;
    static constexpr int kStepBlocks = 2;
    static constexpr int kSumRegisters = kLanes == 16 ? 24 : 12;  // of 32 or 16; the rest is for weights and inputs

    const uint32_t *const words_;
    const float *const scales_;
    const int32_t blocks_, inputs_, groups_, group_;

    template <int rows, int blocks, class Element>
    void multiply_blocks(int32_t first, const float *tile, const Output<Element> &output) const {
        const int64_t block_words = int64_t(inputs_ / 8) * kBlock, block_scales = int64_t(groups_) * kBlock;
        const uint32_t *words = words_ + first * block_words;
        const float *scales = scales_ + first * block_scales;
        const float *inputs = tile, *offsets = tile + int64_t(inputs_) * kRows;
        Floats total[rows][blocks * kParts] = {};
        for (int32_t group = 0; group < groups_; group++, scales += kBlock, offsets += kRows) {
            Floats sum[rows][blocks * kParts];
            for (int row = 0; row < rows; row++)
                for (int part = 0; part < blocks * kParts; part++) sum[row][part] = broadcast(offsets[row]);
            for (int32_t k = 0; k < group_; k += 8, words += kBlock, inputs += 8 * kRows)
                add_eight<rows, blocks>(words, block_words, inputs, sum, std::make_integer_sequence<int, 8>{});
            for (int part = 0; part < blocks * kParts; part++) {
                const Floats scale = load(scales + part / kParts * block_scales + part % kParts * kLanes);
                for (int row = 0; row < rows; row++) total[row][part] = fused(sum[row][part], scale, total[row][part]);
            }
        }
        for (int row = 0; row < rows; row++)
            for (int part = 0; part < blocks * kParts; part++)
                output.put_vector(row, first * kBlock + part * kLanes, total[row][part]);
    }

    template <int rows, int blocks, int... j>
    ROUNDHOUSE_INLINE static void add_eight(
        const uint32_t *words, int64_t block_words, const float *inputs, Floats (&sum)[rows][blocks * kParts],
        std::integer_sequence<int, j...>) {
        Words held[blocks * kParts];
        for (int part = 0; part < blocks * kParts; part++)
            held[part] = load_bits<Words>(words + part / kParts * block_words + part % kParts * kLanes);
        (add_one<rows, blocks * kParts, j>(held, inputs + j * kRows, sum), ...);
    }

    template <int rows, int parts, int j>
    ROUNDHOUSE_INLINE static void add_one(const Words (&held)[parts], const float *inputs, Floats (&sum)[rows][parts]) {
        Floats weights[parts];
        for (int part = 0; part < parts; part++) weights[part] = decode<j>(held[part]);
        for (int row = 0; row < rows; row++) {
            const Floats input = broadcast(inputs[row]);
            for (int part = 0; part < parts; part++) sum[row][part] = fused(input, weights[part], sum[row][part]);
        }
    }
};

}  // namespace roundhouse
#endif
