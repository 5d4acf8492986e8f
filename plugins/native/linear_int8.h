// INT4 weights times inputs that are rounded to int8: whole numbers within a group, floats between groups.

#ifndef ROUNDHOUSE_LINEAR_INT8_H
#define ROUNDHOUSE_LINEAR_INT8_H

#include <algorithm>

#include "bytes.h"
#include "linear_output.h"

namespace roundhouse {

constexpr int kByteStep = 32;  // inputs whose products are added up before they are widened

class Int4ByInt8 {
   public:
    static constexpr int kRows = kLanes == 16 ? 8 : 4;  // of a tile; they share what is decoded of the weights

    explicit Int4ByInt8(const RhLinear &linear)
        : words_(static_cast<const uint32_t *>(linear.weights)),
          scales_(linear.scales),
          blocks_(linear.outputs / kBlock),
          inputs_(linear.inputs),
          groups_(linear.inputs / linear.group),
          group_(linear.group) {}

    int32_t inputs() const { return inputs_; }
    int32_t outputs() const { return blocks_ * kBlock; }
    int32_t steps() const { return blocks_; }

    // A tile holds int8 [kRows][inputs], then [kRows][groups] of the steps' sizes, then int32 [kRows][groups] of what q − 8 adds
    // for the 8.
    int64_t tile_floats() const { return int64_t(inputs_ / 4 + 2 * groups_) * kRows; }

    template <class Input>
    void prepare(const Input *input, int32_t rows, const Bf16 *input_scale, float *tile) const {
        const Tile to(tile, inputs_, groups_);
        for (int32_t row = 0; row < rows; row++)
            for (int32_t group = 0; group < groups_; group++) {
                const int32_t k = group * group_;
                round_group(input + int64_t(row) * inputs_ + k, input_scale ? input_scale + k : nullptr,
                            to.values + int64_t(row) * inputs_ + k, to.sizes[row * groups_ + group],
                            to.offsets[row * groups_ + group]);
            }
    }

    template <class Element>
    void multiply(int32_t block, float *tile, int32_t rows, const Output<Element> &output) const {
        with_count<kRows>(rows, [&](auto count) { multiply_block<decltype(count)::value>(block, tile, output); });
    }

   private:
    static constexpr float kLeast = 1e-35f;  // 127 over less than this is more than a float holds
    static constexpr int kParts = kBlock / kLanes;

    struct Tile {
        int8_t *values;
        float *sizes;
        int32_t *offsets;

        Tile(float *tile, int32_t inputs, int32_t groups)
            : values(reinterpret_cast<int8_t *>(tile)),
              sizes(tile + int64_t(inputs / 4) * kRows),
              offsets(reinterpret_cast<int32_t *>(sizes + int64_t(groups) * kRows)) {}
    };

    const uint32_t *const words_;
    const float *const scales_;
    const int32_t blocks_, inputs_, groups_, group_;

    // Round a group to whole numbers of −127 … 127. What is no number spoils the size of its steps, and so every output; what
    // the whole numbers are does not matter then. Groups of next to nothing are nothing.
    template <class Input>
    void round_group(const Input *input, const Bf16 *input_scale, int8_t *to, float &size, int32_t &offset) const {
        const auto value = [&](int32_t k) {
            const Floats each = load(input + k);
            return input_scale ? each * load(input_scale + k) : each;
        };
        Floats most = {}, spoiled = {};
        for (int32_t k = 0; k < group_; k += kLanes) {
            const Floats each = value(k), positive = bits_as<Floats>(bits_as<Words>(each) & 0x7FFFFFFFu);
            most = positive > most ? positive : most;
            spoiled += each * 0.0f;
        }
        const float top = largest(most);
        const float spoils = sum(spoiled);
        const bool counts = top > kLeast && spoils == 0.0f;
        const Floats steps = broadcast(counts ? 127.0f / top : 0.0f);
        Words total = {};
        for (int32_t k = 0; k < group_; k += kLanes) {
            const Ints whole = to_whole(value(k) * steps);
            total += bits_as<Words>(whole);
            store_bytes(to + k, whole);
        }
        size = counts ? top / 127.0f : spoils;
        offset = counts ? -8 * sum_of_lanes(bits_as<Ints>(total)) : 0;
    }

    template <int rows, class Element>
    void multiply_block(int32_t block, float *tile, const Output<Element> &output) const {
        const Tile from(tile, inputs_, groups_);
        const uint32_t *words = words_ + int64_t(block) * (inputs_ / 8) * kBlock;
        const float *scales = scales_ + int64_t(block) * groups_ * kBlock;
        Floats total[rows][kParts] = {};
        for (int32_t group = 0; group < groups_; group++, scales += kBlock) {
            Ints whole[rows][kParts];
            for (int row = 0; row < rows; row++)
                for (int part = 0; part < kParts; part++) whole[row][part] = from.offsets[row * groups_ + group] + Ints{};
            const int8_t *values = from.values + int64_t(group) * group_;
            for (int32_t k = 0; k < group_; k += kByteStep, words += kByteStep / 8 * kBlock)
                add_step<rows>(words, values + k, whole);
            for (int part = 0; part < kParts; part++) {
                const Floats scale = load(scales + part * kLanes);
                for (int row = 0; row < rows; row++) {
                    const Floats factor = scale * broadcast(from.sizes[row * groups_ + group]);
                    total[row][part] = fused(__builtin_convertvector(whole[row][part], Floats), factor, total[row][part]);
                }
            }
        }
        for (int row = 0; row < rows; row++)
            for (int part = 0; part < kParts; part++)
                output.put_vector(row, block * kBlock + part * kLanes, total[row][part]);
    }

    template <int rows, int shift>
    ROUNDHOUSE_INLINE void add_half(const uint32_t *words, const int8_t *values, ByteSums (&sums)[rows][kParts]) const {
        Words weights[kParts];
        for (int part = 0; part < kParts; part++)
            weights[part] = (load_bits<Words>(words + part * kLanes) >> shift) & 0x0F0F0F0Fu;
        for (int row = 0; row < rows; row++) {
            const Words input = four_bytes(values + int64_t(row) * inputs_);
            for (int part = 0; part < kParts; part++) add_bytes(sums[row][part], weights[part], input);
        }
    }

    template <int rows>
    ROUNDHOUSE_INLINE void add_step(const uint32_t *words, const int8_t *values, Ints (&whole)[rows][kParts]) const {
        ByteSums sums[rows][kParts] = {};
        // One half of the words after the other: the sums and both would not fit into the registers together.
#pragma GCC unroll 1
        for (int eight = 0; eight < kByteStep / 8; eight++, words += kBlock, values += 8) {
            add_half<rows, 0>(words, values, sums);
            add_half<rows, 4>(words, values + 4, sums);
        }
        for (int row = 0; row < rows; row++)
            for (int part = 0; part < kParts; part++) whole[row][part] += widened(sums[row][part]);
    }
};

}  // namespace roundhouse
#endif
