#include "step.h"

#include <omp.h>

#include <exception>
#include <initializer_list>

#include "attention_layer.h"
#include "checks.h"
#include "linear_bf16.h"
#include "linear_check.h"
#include "linear_int4.h"
#include "linear_int8.h"
#include "linear_pass.h"
#include "rows.h"

namespace roundhouse {
namespace {

constexpr int64_t kSerialRows = 16 * 1024;  // elements that are done sooner than a sleeping thread has begun

// A projection, and where its outputs go.
struct Target {
    const RhProjection &projection;
    float *output;
    int64_t stride;
};

template <class Weights>
void multiply_as(const std::vector<Target> &targets, const float *input, int32_t rows) {
    std::vector<Factor<Weights, float>> factors;
    for (const Target &each : targets) {
        const auto *bias = static_cast<const Bf16 *>(each.projection.bias);
        factors.push_back({Weights(each.projection.linear), {each.output, each.stride, bias}});
    }
    multiply_rows(factors, input, static_cast<const Bf16 *>(targets.front().projection.input_scale), rows);
}

// Projections whose rows are prepared in the same way are multiplied together.
bool alike(const RhProjection &a, const RhProjection &b) {
    return a.linear.kind == b.linear.kind && a.linear.group == b.linear.group && a.input_scale == b.input_scale;
}

// While it lives, time counts for a part of the step; nobody's clock is read where nobody asks.
class Clocked {
   public:
    Clocked(const RhStepTokens &tokens, int part) : to_(tokens.seconds ? tokens.seconds + part : nullptr) {
        if (to_) *to_ -= omp_get_wtime();
    }
    ~Clocked() {
        if (to_) *to_ += omp_get_wtime();
    }
    Clocked(const Clocked &) = delete;
    Clocked &operator=(const Clocked &) = delete;

   private:
    double *const to_;
};

template <class Stored>
class Step {
   public:
    Step(const RhModel &model, const RhPool &pool, const Rows &rows, const RhStepTokens &tokens)
        : model_(model),
          pool_(pool),
          rows_(rows),
          tokens_(tokens),
          count_(tokens.tokens),
          dim_(pool.head_dim),
          query_width_(model.heads * pool.head_dim),
          key_width_(pool.kv_heads * pool.head_dim),
          plan_(pool, rows, omp_get_max_threads()),
          positions_(count_) {
        for (int32_t row = 0; row < rows.batch.rows; row++)
            for (int32_t token = 0; token < rows.count(row); token++)
                positions_[rows.packed(row, token)] = rows.position(row, token);
        const int64_t widths = 3 * int64_t(model.hidden) + 2 * query_width_ + 2 * key_width_ + 2 * int64_t(model.intermediate);
        memory_ = reserve(widths * count_);
        float *next = memory_.get();
        const auto take = [&](int64_t width) {
            float *taken = next;
            next += width * count_;
            return taken;
        };
        residual_ = take(model.hidden), normed_ = take(model.hidden), added_ = take(model.hidden);
        qkv_ = take(query_width_ + 2 * key_width_), attended_ = take(query_width_);
        gate_ = take(model.intermediate), up_ = take(model.intermediate);
    }

    void run() {
        each_row(count_, model_.hidden, [&](int32_t token) {
            load_row(bf16(model_.embedding) + tokens_.token_ids[token] * model_.hidden, model_.hidden, residual(token));
        });
        for (int32_t layer = 0; layer < model_.layer_count; layer++) run_layer(model_.layers[layer], layer > 0);
        if (tokens_.samples == 0) return;
        const Memory asked = reserve(int64_t(tokens_.samples) * model_.hidden);
        each_row(tokens_.samples, model_.hidden, [&](int32_t sample) {
            const int64_t token = tokens_.sample_rows[sample];
            float *row = asked.get() + int64_t(sample) * model_.hidden;
            std::copy_n(residual(token), model_.hidden, row);
            add_row(row, added_ + token * model_.hidden, model_.hidden);
            normalize(row, bf16(model_.norm), model_.hidden, model_.epsilon, row);
        });
        multiply({{model_.head, tokens_.logits, model_.vocab}}, asked.get(), tokens_.samples, RH_PART_HEAD);
    }

   private:
    const RhModel &model_;
    const RhPool &pool_;
    const Rows &rows_;
    const RhStepTokens &tokens_;
    const int32_t count_, dim_, query_width_, key_width_;
    const Plan plan_;
    std::vector<int32_t> positions_;
    Memory memory_;
    float *residual_, *normed_, *added_, *qkv_, *attended_, *gate_, *up_;

    static const Bf16 *bf16(const void *from) { return static_cast<const Bf16 *>(from); }

    float *residual(int64_t token) const { return residual_ + token * model_.hidden; }

    template <class Call>
    static void each_row(int32_t rows, int64_t width, const Call &call) {
#pragma omp parallel for if (rows * width > kSerialRows)
        for (int32_t row = 0; row < rows; row++) call(row);
    }

    // `follows`: what the layer before gave is still to be added.
    void run_layer(const RhModelLayer &layer, bool follows) const {
        const int64_t stride = query_width_ + 2 * key_width_;
        normalize_all(layer.attention_norm, follows);
        multiply({{layer.query, qkv_, stride},
                  {layer.key, qkv_ + query_width_, stride},
                  {layer.value, qkv_ + query_width_ + key_width_, stride}},
                 normed_, count_);
        each_row(count_, query_width_ + key_width_, [&](int32_t token) { turn_heads(layer, token, qkv_ + token * stride); });
        attend(layer, stride);
        multiply({{layer.output, added_, model_.hidden}}, attended_, count_);
        normalize_all(layer.mlp_norm, true);
        multiply({{layer.gate, gate_, model_.intermediate}, {layer.up, up_, model_.intermediate}}, normed_, count_);
        each_row(count_, model_.intermediate, [&](int32_t token) {
            const int64_t at = int64_t(token) * model_.intermediate;
            gate_row(gate_ + at, up_ + at, model_.intermediate);
        });
        multiply({{layer.down, added_, model_.hidden}}, gate_, count_);
    }

    void normalize_all(const void *weight, bool add) const {
        each_row(count_, model_.hidden, [&](int32_t token) {
            const int64_t at = int64_t(token) * model_.hidden;
            if (add) add_row(residual(token), added_ + at, model_.hidden);
            normalize(residual(token), bf16(weight), model_.hidden, model_.epsilon, normed_ + at);
        });
    }

    // Queries and keys of a token lie head by head.
    void turn_heads(const RhModelLayer &layer, int32_t token, float *heads) const {
        const int32_t half = dim_ / 2, count = model_.heads + pool_.kv_heads;
        const int64_t at = int64_t(positions_[token]) * half;
        for (int32_t head = 0; head < count; head++, heads += dim_) {
            const void *norm = head < model_.heads ? layer.query_norm : layer.key_norm;
            if (norm) normalize(heads, bf16(norm), dim_, model_.epsilon, heads);
            rotate(heads, model_.cosines + at, model_.sines + at, half);
        }
    }

    void attend(const RhModelLayer &layer, int64_t stride) const {
        const Clocked clocked(tokens_, RH_PART_ATTENTION);
        const float *keys = qkv_ + query_width_, *values = keys + key_width_;
        const RhTokens tokens{qkv_,   keys, values, attended_, stride,       dim_, stride,        dim_,
                              stride, dim_, count_, model_.heads, 0, model_.scaling};
        LayerAttention<Stored, float>(pool_, layer.place, rows_, tokens, plan_).run();
    }

    void multiply(
        std::initializer_list<Target> targets, const float *input, int32_t rows, int part = RH_PART_LINEARS) const {
        const Clocked clocked(tokens_, part);
        for (auto first = targets.begin(); first != targets.end();) {
            std::vector<Target> together;
            auto last = first;
            for (; last != targets.end() && alike(first->projection, last->projection); last++) together.push_back(*last);
            if (first->projection.linear.kind == RH_LINEAR_BF16)
                multiply_as<Bf16Weights>(together, input, rows);
            else if (model_.int8_inputs)
                multiply_as<Int4ByInt8>(together, input, rows);
            else
                multiply_as<Int4Weights>(together, input, rows);
            first = last;
        }
    }
};

int32_t check_projection(const RhModel &model, const RhProjection &projection, int64_t outputs, int64_t inputs) {
    const RhLinear &linear = projection.linear;
    if (linear.outputs != outputs || linear.inputs != inputs) return RH_BAD_GEOMETRY;
    return check_linear(linear, model.int8_inputs && linear.kind == RH_LINEAR_INT4);
}

int32_t check_model(const RhModel &model, const RhPool &pool) {
    if (const int32_t code = check_pool(pool, model.heads)) return code;
    const bool positive = model.layer_count > 0 && model.hidden > 0 && model.intermediate > 0 && model.vocab > 0;
    if (!positive || model.hidden % 16 || model.intermediate % 16) return RH_BAD_GEOMETRY;
    const int64_t hidden = model.hidden, inner = model.intermediate;
    const int64_t query = int64_t(model.heads) * pool.head_dim, key = int64_t(pool.kv_heads) * pool.head_dim;
    int32_t code = check_projection(model, model.head, model.vocab, hidden);
    for (int32_t at = 0; at < model.layer_count && !code; at++) {
        const RhModelLayer &layer = model.layers[at];
        for (const int32_t found : {check_layer(pool, layer.place), check_projection(model, layer.query, query, hidden),
                                    check_projection(model, layer.key, key, hidden),
                                    check_projection(model, layer.value, key, hidden),
                                    check_projection(model, layer.output, hidden, query),
                                    check_projection(model, layer.gate, inner, hidden),
                                    check_projection(model, layer.up, inner, hidden),
                                    check_projection(model, layer.down, hidden, inner)})
            code = code ? code : found;
    }
    return code;
}

int32_t check_tokens(const RhModel &model, const RhStepTokens &tokens, const RhBatch &batch, RhFault &fault) {
    for (int32_t token = 0; token < tokens.tokens; token++)
        if (tokens.token_ids[token] < 0 || tokens.token_ids[token] >= model.vocab) return RH_BAD_TOKEN;
    for (int32_t sample = 0; sample < tokens.samples; sample++)
        if (tokens.sample_rows[sample] < 0 || tokens.sample_rows[sample] >= tokens.tokens) return RH_BAD_TOKEN;
    for (int32_t row = 0; row < batch.rows; row++)
        if (batch.context_len[row] > model.positions) return fault.row = row, RH_BAD_ROW;
    return RH_DONE;
}

}  // namespace
}  // namespace roundhouse

int32_t rh_step(
    const RhModel *model, const RhPool *pool, const RhBatch *batch, const RhStepTokens *tokens, RhFault *fault) {
    using namespace roundhouse;
    *fault = {-1, -1};
    if (tokens->tokens < 0 || tokens->samples < 0) return RH_BAD_GEOMETRY;
    if (const int32_t code = check_model(*model, *pool)) return code;
    const Rows rows{*batch, tokens->tokens, model->heads, model->heads / pool->kv_heads};
    if (const int32_t code = check_rows(*pool, rows, *fault)) return code;
    if (const int32_t code = check_tokens(*model, *tokens, *batch, *fault)) return code;
    if (tokens->tokens == 0) return RH_DONE;
    try {
        if (pool->is_fp8)
            Step<Fp8>(*model, *pool, rows, *tokens).run();
        else
            Step<Bf16>(*model, *pool, rows, *tokens).run();
    } catch (const std::exception &) {
        return RH_NO_MEMORY;
    }
    return RH_DONE;
}
