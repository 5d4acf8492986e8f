#include "linear.h"

#include <exception>

#include "attention.h"
#include "linear_bf16.h"
#include "linear_check.h"
#include "linear_int4.h"
#include "linear_int8.h"
#include "linear_pass.h"

namespace roundhouse {
namespace {

template <class Weights, class Element>
void run(const RhLinear &linear, const RhProduct &product) {
    const Output<Element> output{static_cast<Element *>(product.output), linear.outputs, static_cast<const Bf16 *>(product.bias)};
    const auto *input = static_cast<const Bf16 *>(product.input), *scale = static_cast<const Bf16 *>(product.input_scale);
    multiply_rows<Weights, Bf16, Element>({{Weights(linear), output}}, input, scale, product.rows);
}

template <class Weights>
void run(const RhLinear &linear, const RhProduct &product) {
    product.float_output ? run<Weights, float>(linear, product) : run<Weights, Bf16>(linear, product);
}

}  // namespace
}  // namespace roundhouse

int32_t rh_linear(const RhLinear *linear, const RhProduct *product) {
    using namespace roundhouse;
    if (product->rows < 0) return RH_BAD_GEOMETRY;
    if (const int32_t code = check_linear(*linear, product->int8_input)) return code;
    if (product->rows == 0) return RH_DONE;
    auto *const multiply = linear->kind == RH_LINEAR_BF16 ? run<Bf16Weights>
                           : product->int8_input          ? run<Int4ByInt8>
                                                          : run<Int4Weights>;
    try {
        multiply(*linear, *product);
    } catch (const std::exception &) {
        return RH_NO_MEMORY;
    }
    return RH_DONE;
}
