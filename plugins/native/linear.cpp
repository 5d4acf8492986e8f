// A product is done in passes over some rows: widen the rows to float, then multiply them with all weights.

#include "linear.h"

#include <algorithm>
#include <exception>

#include "attention.h"
#include "linear_bf16.h"
#include "linear_int4.h"
#include "memory.h"

namespace roundhouse {
namespace {

constexpr int64_t kPassFloats = 96 * 1024;     // of widened rows in a pass: they stay in a core's second cache
constexpr int64_t kSerialProduct = 200 * 1000;  // multiplications that are done sooner than a sleeping thread has begun
constexpr int64_t kSerialWiden = 50 * 1000;

// Weights is Bf16Weights or Int4Weights: how rows are widened, and how a block of outputs is computed.
template <class Weights, class Element>
void run(const RhLinear &linear, const RhProduct &product) {
    const Weights weights(linear);
    const int32_t tiles = divide_up(product.rows, kTile);
    const int64_t tile_floats = weights.tile_floats();
    const int32_t pass = int32_t(std::clamp<int64_t>(kPassFloats / tile_floats, 1, tiles));
    const Memory widened = reserve(pass * tile_floats);
    const auto *input = static_cast<const Bf16 *>(product.input), *scale = static_cast<const Bf16 *>(product.input_scale);
    for (int32_t first = 0; first < tiles; first += pass) {
        const int32_t last = std::min(first + pass, tiles);
        const int32_t rows = std::min(last * kTile, product.rows) - first * kTile;
        const auto rows_of = [&](int32_t tile) { return std::min(kTile, product.rows - tile * kTile); };
#pragma omp parallel for if (int64_t(rows) * linear.inputs > kSerialWiden)
        for (int32_t tile = first; tile < last; tile++)
            weights.widen(input + int64_t(tile) * kTile * linear.inputs, rows_of(tile), scale,
                          widened.get() + (tile - first) * tile_floats);
#pragma omp parallel for if (int64_t(rows) * linear.inputs * linear.outputs > kSerialProduct)
        for (int32_t step = 0; step < weights.steps(); step++)
            for (int32_t tile = first; tile < last; tile++) {
                const Output<Element> output(product, linear.outputs, int64_t(tile) * kTile);
                weights.multiply(step, widened.get() + (tile - first) * tile_floats, rows_of(tile), output);
            }
    }
}

int32_t check(const RhLinear &linear, const RhProduct &product) {
    if (linear.outputs <= 0 || linear.inputs <= 0 || product.rows < 0) return RH_BAD_GEOMETRY;
    if (linear.kind == RH_LINEAR_BF16) return linear.inputs % 32 ? RH_BAD_GEOMETRY : RH_DONE;
    const bool whole = linear.group > 0 && linear.group % 8 == 0 && linear.inputs % linear.group == 0;
    return linear.kind == RH_LINEAR_INT4 && whole && linear.outputs % kBlock == 0 ? RH_DONE : RH_BAD_GEOMETRY;
}

}  // namespace
}  // namespace roundhouse

int32_t rh_linear(const RhLinear *linear, const RhProduct *product) {
    using namespace roundhouse;
    if (const int32_t code = check(*linear, *product)) return code;
    if (product->rows == 0) return RH_DONE;
    const bool int4 = linear->kind == RH_LINEAR_INT4;
    auto *const to_bf16 = int4 ? run<Int4Weights, Bf16> : run<Bf16Weights, Bf16>;
    auto *const to_float = int4 ? run<Int4Weights, float> : run<Bf16Weights, float>;
    try {
        (product->float_output ? to_float : to_bf16)(*linear, *product);
    } catch (const std::exception &) {
        return RH_NO_MEMORY;
    }
    return RH_DONE;
}
