// Runs the native attention on random steps and compares it with plain loops. Built with sanitizers by the tests: every
// buffer is as large as the interface says and no larger, so that a read or write beside it is caught.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "attention.h"
#include "numbers.h"

namespace {

double from_fp8(uint8_t bits) {
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const double size = exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9);
    return bits & 128 ? -size : size;
}

struct Row {
    int count, context;
};

struct Step {
    RhPool pool{};
    RhLayer layer{};
    RhBatch batch{};
    RhTokens tokens{};
    std::vector<uint8_t> pages;
    std::vector<int32_t> table, starts{0}, contexts;
    std::vector<float> numbers[3], output;
    std::vector<uint16_t> halves[3], half_output;

    Step() {
        pool.page_count = 1, pool.page_tokens = pick(1, 40), pool.kv_heads = pick(1, 3), pool.head_dim = 16 * pick(1, 9);
        pool.is_fp8 = pick(0, 1), tokens.heads = pool.kv_heads * pick(1, 5), tokens.is_bfloat16 = pick(0, 1);
        for (int row = 0, rows = pick(1, 4); row < rows; row++) add_row(pick(0, 2) ? 1 : pick(1, 70), pick(0, 200));
        const int64_t field = int64_t(pool.page_tokens) * pool.kv_heads * pool.head_dim * (pool.is_fp8 ? 1 : 2);
        pool.page_bytes = 2 * field, layer = {0, field, 0.5f, 2.0f};
        fill_table();
        pages.resize(pool.page_count * pool.page_bytes);
        for (auto &byte : pages) byte = uint8_t(pick(0, 255));
        for (int64_t at = 0; at < int64_t(pages.size()); at++)  // small and finite numbers
            pages[at] = pool.is_fp8 ? pages[at] & 0xB7 : (at % 2 ? (pages[at] & 0x80) | 0x3F : pages[at]);
        tokens.tokens = starts.back(), tokens.scaling = 0.2f;
        const int heads[3] = {tokens.heads, pool.kv_heads, pool.kv_heads};
        for (int i = 0; i < 3; i++) {
            numbers[i].resize(size_t(tokens.tokens) * heads[i] * pool.head_dim);
            for (float &number : numbers[i]) halves[i].push_back(to_bf16(normal())), number = from_bf16(halves[i].back());
        }
        output.resize(numbers[0].size()), half_output.resize(numbers[0].size());
        point();
    }

    void add_row(int count, int before) {
        starts.push_back(starts.back() + count);
        contexts.push_back(before + count);
    }

    void fill_table() {
        for (int context : contexts) batch.columns = std::max(batch.columns, (context - 1) / pool.page_tokens + 1);
        for (int context : contexts)
            for (int column = 0; column < batch.columns; column++)
                table.push_back(column * pool.page_tokens < context ? pool.page_count++ - 1 : -1);
        pool.page_count--;
    }

    void point() {
        pool.pages = pages.data();
        batch.page_table = table.data(), batch.query_start = starts.data(), batch.context_len = contexts.data();
        batch.rows = int32_t(contexts.size());
        const bool half = tokens.is_bfloat16;
        const auto from = [&](int i) -> const void * { return half ? (void *)halves[i].data() : (void *)numbers[i].data(); };
        tokens.queries = from(0), tokens.keys = from(1), tokens.values = from(2);
        tokens.output = half ? (void *)half_output.data() : (void *)output.data();
        tokens.query_head_stride = tokens.key_head_stride = tokens.value_head_stride = pool.head_dim;
        tokens.query_token_stride = int64_t(tokens.heads) * pool.head_dim;
        tokens.key_token_stride = tokens.value_token_stride = int64_t(pool.kv_heads) * pool.head_dim;
    }

    double stored(int row, int position, int head, int at, int64_t offset, float scale) const {
        const int page = table[size_t(row) * batch.columns + position / pool.page_tokens];
        const int64_t element = (int64_t(position % pool.page_tokens) * pool.kv_heads + head) * pool.head_dim + at;
        const uint8_t *field = pages.data() + page * pool.page_bytes + offset;
        if (pool.is_fp8) return from_fp8(field[element]) * scale;
        uint16_t bits;
        std::memcpy(&bits, field + 2 * element, sizeof bits);
        return from_bf16(bits);
    }

    // The largest error of a token's head, relative to what bfloat16 or float32 can hold.
    double error(int row, int token, int head) const {
        const int kv_head = head / (tokens.heads / pool.kv_heads), packed = starts[row] + token, dim = pool.head_dim;
        const int seen = contexts[row] - (starts[row + 1] - starts[row]) + token + 1;
        const size_t at_query = (size_t(packed) * tokens.heads + head) * dim;
        std::vector<double> weights(seen), expected(dim);
        double sum = 0, worst = 0;
        for (int key = 0; key < seen; key++) {
            for (int at = 0; at < dim; at++)
                weights[key] += numbers[0][at_query + at] * stored(row, key, kv_head, at, layer.key_offset, layer.key_scale);
            sum += weights[key] = std::exp(weights[key] * tokens.scaling);
        }
        for (int at = 0; at < dim; at++) {
            for (int key = 0; key < seen; key++)
                expected[at] += weights[key] / sum * stored(row, key, kv_head, at, layer.value_offset, layer.value_scale);
            const float got = tokens.is_bfloat16 ? from_bf16(half_output[at_query + at]) : output[at_query + at];
            const double allowed = tokens.is_bfloat16 ? std::abs(expected[at]) / 256 + 2e-5 : std::abs(expected[at]) * 1e-5 + 2e-5;
            const double off = std::abs(got - expected[at]) / allowed;
            worst = off <= worst ? worst : off;  // a NaN becomes the worst
        }
        return worst;
    }
};

}  // namespace

int main(int count, char **arguments) {
    random_bits.seed(count > 1 ? std::atoi(arguments[1]) : 1);
    for (int round = 0; round < 16; round++) {
        Step step;
        RhFault fault;
        if (round % 5 == 4) {  // a page that is not there
            const int cell = pick(0, (step.contexts[0] - 1) / step.pool.page_tokens);
            step.table[cell] = pick(0, 1) ? -1 : step.pool.page_count;
            const int code = rh_paged_attention(&step.pool, &step.layer, &step.batch, &step.tokens, &fault);
            if (code == RH_BAD_PAGE && fault.row == 0 && fault.column == cell) continue;
            return std::printf("round %d: code %d for a page out of range\n", round, code), 1;
        }
        const int code = rh_paged_attention(&step.pool, &step.layer, &step.batch, &step.tokens, &fault);
        if (code) return std::printf("round %d: code %d, row %d, column %d\n", round, code, fault.row, fault.column), 1;
        for (int row = 0; row < step.batch.rows; row++)
            for (int token = 0; token < step.starts[row + 1] - step.starts[row]; token++) {
                const int head = pick(0, step.tokens.heads - 1);
                const double error = step.error(row, token, head);
                if (!(error <= 1)) return std::printf("round %d: row %d, token %d: error %g\n", round, row, token, error), 1;
            }
    }
    std::puts("agreed");
}
