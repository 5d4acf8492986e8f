// Products are done in passes over some rows: prepare the rows for the kernel, then multiply them with all weights.

#ifndef ROUNDHOUSE_LINEAR_PASS_H
#define ROUNDHOUSE_LINEAR_PASS_H

#include <algorithm>
#include <vector>

#include "linear_output.h"
#include "memory.h"

namespace roundhouse {

constexpr int64_t kPassFloats = 96 * 1024;      // of prepared rows in a pass: they stay in a core's second cache
constexpr int64_t kSerialProduct = 200 * 1000;  // multiplications that are done sooner than a sleeping thread has begun
constexpr int64_t kSerialPrepare = 50 * 1000;

// One matrix of several that the same rows are multiplied with, and where its outputs go.
//
// Weights is Bf16Weights, Int4Weights or Int4ByInt8: how rows are prepared, in tiles of kRows, and how a step of outputs is
// computed from a tile.
template <class Weights, class Element>
struct Factor {
    Weights weights;
    Output<Element> output;
};

// Multiply rows, [rows][inputs] without gaps, with matrices of the same inputs, groups and input scale.
template <class Weights, class Input, class Element>
void multiply_rows(
    const std::vector<Factor<Weights, Element>> &factors, const Input *input, const Bf16 *input_scale, int32_t rows) {
    const Weights &any = factors.front().weights;
    const int32_t tiles = divide_up(rows, Weights::kRows), inputs = any.inputs();
    const int64_t tile_floats = any.tile_floats();
    const int32_t pass = int32_t(std::clamp<int64_t>(kPassFloats / tile_floats, 1, tiles));
    const Memory prepared = reserve(pass * tile_floats);
    int64_t outputs = 0;
    int32_t steps = 0;
    for (const auto &factor : factors) outputs += factor.weights.outputs(), steps += factor.weights.steps();
    for (int32_t first = 0; first < tiles; first += pass) {
        const int32_t last = std::min(first + pass, tiles);
        const int64_t taken = std::min(last * Weights::kRows, rows) - first * Weights::kRows;
        const auto rows_of = [&](int32_t tile) { return std::min(Weights::kRows, rows - tile * Weights::kRows); };
        const auto tile_at = [&](int32_t tile) { return prepared.get() + (tile - first) * tile_floats; };
#pragma omp parallel for if (taken * inputs > kSerialPrepare)
        for (int32_t tile = first; tile < last; tile++)
            any.prepare(input + int64_t(tile) * Weights::kRows * inputs, rows_of(tile), input_scale, tile_at(tile));
#pragma omp parallel for if (taken * inputs * outputs > kSerialProduct)
        for (int32_t at = 0; at < steps; at++) {
            int32_t step = at;
            auto factor = factors.begin();
            for (; step >= factor->weights.steps(); factor++) step -= factor->weights.steps();
            for (int32_t tile = first; tile < last; tile++)
                factor->weights.multiply(step, tile_at(tile), rows_of(tile), factor->output.from_row(int64_t(tile) * Weights::kRows));
        }
    }
}

}  // namespace roundhouse
#endif
