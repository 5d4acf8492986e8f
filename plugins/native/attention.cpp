#include "attention.h"

#include <omp.h>

#include <exception>

#include "attention_layer.h"
#include "checks.h"

namespace roundhouse {
namespace {

template <class Stored, class Element>
void run(const RhPool &pool, const RhLayer &layer, const RhBatch &batch, const RhTokens &tokens) {
    const Rows rows{batch, tokens.tokens, tokens.heads, tokens.heads / pool.kv_heads};
    const Plan plan(pool, rows, omp_get_max_threads());
    LayerAttention<Stored, Element>(pool, layer, rows, tokens, plan).run();
}

}  // namespace
}  // namespace roundhouse

int32_t rh_paged_attention(
    const RhPool *pool, const RhLayer *layer, const RhBatch *batch, const RhTokens *tokens, RhFault *fault) {
    using namespace roundhouse;
    *fault = {-1, -1};
    if (tokens->tokens < 0) return RH_BAD_GEOMETRY;
    if (const int32_t code = check_pool(*pool, tokens->heads)) return code;
    if (const int32_t code = check_layer(*pool, *layer)) return code;
    if (const int32_t code = check_rows(*pool, {*batch, tokens->tokens, tokens->heads, 1}, *fault)) return code;
    auto *const with_bf16_tokens = pool->is_fp8 ? run<Fp8, Bf16> : run<Bf16, Bf16>;
    auto *const with_float_tokens = pool->is_fp8 ? run<Fp8, float> : run<Bf16, float>;
    try {
        (tokens->is_bfloat16 ? with_bf16_tokens : with_float_tokens)(*pool, *layer, *batch, *tokens);
    } catch (const std::exception &) {
        return RH_NO_MEMORY;
    }
    return RH_DONE;
}

int32_t rh_threads(void) { return omp_get_max_threads(); }
