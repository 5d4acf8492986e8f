// Runs the native step on random small models and compares it with plain loops in double. Built with sanitizers by the tests:
// every buffer is as large as the interface says and no larger, so that a read or write beside it is caught.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <vector>

#include "numbers.h"
#include "step.h"

namespace {

using Row = std::vector<double>;

// A projection, and the weights that it means.
struct Matrix {
    RhProjection projection{};
    std::vector<uint16_t> halves, scale, bias;
    std::vector<uint32_t> words;
    std::vector<float> scales;
    std::vector<double> weights;

    Matrix(bool int4, int outputs, int inputs, int group) {
        projection.linear = {nullptr, nullptr, int4 ? RH_LINEAR_INT4 : RH_LINEAR_BF16, outputs, inputs, int4 ? group : 0};
        weights.resize(size_t(outputs) * inputs);
        int4 ? fill_int4() : fill_bf16();
        if (pick(0, 1)) projection.bias = fill(bias, outputs, 0.1f);
    }

    static const uint16_t *fill(std::vector<uint16_t> &numbers, int count, float size) {
        for (int i = 0; i < count; i++) numbers.push_back(to_bf16(normal() * size));
        return numbers.data();
    }

    void fill_bf16() {
        const float size = 1 / std::sqrt(float(projection.linear.inputs));
        projection.linear.weights = fill(halves, int(weights.size()), size);
        for (size_t i = 0; i < weights.size(); i++) weights[i] = from_bf16(halves[i]);
    }

    void fill_int4() {
        RhLinear &linear = projection.linear;
        const int groups = linear.inputs / linear.group;
        words.resize(weights.size() / 8), scales.resize(size_t(linear.outputs) * groups);
        for (float &each : scales) each = 0.03f * float(pick(1, 9)) / std::sqrt(float(linear.inputs));
        for (int output = 0; output < linear.outputs; output++)
            for (int k = 0; k < linear.inputs; k++) {
                const int q = pick(0, 15), place = 8 * (k % 4) + k % 8 / 4 * 4;
                words[(size_t(output / 16) * (linear.inputs / 8) + k / 8) * 16 + output % 16] |= uint32_t(q) << place;
                weights[size_t(output) * linear.inputs + k] =
                    (q - 8) * scales[(size_t(output / 16) * groups + k / linear.group) * 16 + output % 16];
            }
        linear.weights = words.data(), linear.scales = scales.data();
        for (int i = 0; i < linear.inputs; i++) scale.push_back(to_bf16(1 + 0.2f * std::abs(normal())));
        if (pick(0, 1)) projection.input_scale = scale.data();
    }

    Row times(const Row &input) const {
        const RhLinear &linear = projection.linear;
        Row out(linear.outputs);
        for (int output = 0; output < linear.outputs; output++) {
            out[output] = projection.bias ? from_bf16(bias[output]) : 0;
            for (int k = 0; k < linear.inputs; k++)
                out[output] += input[k] * (projection.input_scale ? from_bf16(scale[k]) : 1) *
                               weights[size_t(output) * linear.inputs + k];
        }
        return out;
    }
};

struct Problem {
    const int kv_heads = pick(1, 2), heads = kv_heads * pick(1, 3), dim = 16 * pick(1, 2), half = dim / 2;
    const int hidden = 32 * pick(1, 3), inner = 32 * pick(1, 3), vocab = pick(3, 40), page_tokens = pick(1, 5);
    const int length, positions = length + pick(0, 2), layers = pick(1, 2), pages = 2 * length + 2;
    const int group = heads * dim % 32 ? 16 : 32;
    const bool has_norms = pick(0, 1), int8 = group == 32 && pick(0, 1);
    std::list<Matrix> matrices;
    std::list<std::vector<uint16_t>> halves;
    std::vector<RhModelLayer> model_layers;
    std::vector<float> cosines, sines;
    std::vector<uint8_t> buffer;
    std::vector<int64_t> ids;
    RhModel model{};
    RhPool pool{};

    explicit Problem(int tokens) : length(tokens) {
        const int64_t field = int64_t(page_tokens) * kv_heads * dim * 2;
        buffer.resize(2 * layers * field * pages);
        pool = {buffer.data(), 2 * layers * field, pages, page_tokens, kv_heads, dim, 0};
        for (int layer = 0; layer < layers; layer++) {
            const auto project = [&](int outputs, int inputs) { return matrix(pick(0, 1) && outputs % 16 == 0, outputs, inputs); };
            const void *query_norm = has_norms ? near_one(dim) : nullptr, *key_norm = has_norms ? near_one(dim) : nullptr;
            model_layers.push_back({near_one(hidden), near_one(hidden), query_norm, key_norm,
                                    project(heads * dim, hidden), project(kv_heads * dim, hidden),
                                    project(kv_heads * dim, hidden), project(hidden, heads * dim), project(inner, hidden),
                                    project(inner, hidden), project(hidden, inner),
                                    {2 * layer * field, (2 * layer + 1) * field, 1, 1}});
        }
        for (int at = 0; at < positions * half; at++) {
            const double angle = at / half * std::pow(0.01, double(at % half) / half);
            cosines.push_back(float(std::cos(angle))), sines.push_back(float(std::sin(angle)));
        }
        model = {model_layers.data(), numbers(vocab * hidden, 1), near_one(hidden), matrix(false, vocab, hidden), cosines.data(),
                 sines.data(), layers, hidden, heads, inner, vocab, positions, int8, 1e-5f, 1 / std::sqrt(float(dim))};
        for (int i = 0; i < length; i++) ids.push_back(pick(0, vocab - 1));
    }

    // Inputs of a bfloat16 matrix are multiples of 32; where attention is narrower, it is INT4.
    RhProjection matrix(bool int4, int outputs, int inputs) {
        return matrices.emplace_back(int4 || inputs % 32, outputs, inputs, group).projection;
    }

    const uint16_t *numbers(int count, float size) { return Matrix::fill(halves.emplace_back(), count, size); }

    const uint16_t *near_one(int count) {
        auto &made = halves.emplace_back();
        for (int i = 0; i < count; i++) made.push_back(to_bf16(1 + 0.1f * normal()));
        return made.data();
    }

    // Run the prompt in chunks of some tokens, on pages from `page` on; logits of every token.
    std::vector<float> run(int page, int chunk) {
        std::vector<float> logits(size_t(length) * vocab);
        const int columns = (length + page_tokens - 1) / page_tokens;
        std::vector<int32_t> table(columns);
        for (int column = 0; column < columns; column++) table[column] = page + columns - 1 - column;
        for (int begin = 0; begin < length; begin += chunk) {
            const int end = std::min(begin + chunk, length), count = end - begin;
            const std::vector<int32_t> start{0, count}, context{end};
            const std::vector<int64_t> some(ids.begin() + begin, ids.begin() + end);
            std::vector<int64_t> rows(count);
            for (int i = 0; i < count; i++) rows[i] = i;
            std::vector<float> out(size_t(count) * vocab);
            const RhBatch batch{table.data(), start.data(), context.data(), 1, columns};
            const RhStepTokens tokens{some.data(), rows.data(), out.data(), nullptr, count, count};
            RhFault fault;
            if (const int code = rh_step(&model, &pool, &batch, &tokens, &fault)) std::printf("code %d\n", code), std::exit(1);
            std::copy(out.begin(), out.end(), logits.begin() + size_t(begin) * vocab);
        }
        return logits;
    }

    static Row normalized(const Row &from, const void *weight, int begin, int width) {
        double squares = 0;
        for (int i = 0; i < width; i++) squares += from[begin + i] * from[begin + i];
        Row out(width);
        for (int i = 0; i < width; i++)
            out[i] = from[begin + i] / std::sqrt(squares / width + 1e-5) * from_bf16(static_cast<const uint16_t *>(weight)[i]);
        return out;
    }

    void turn(Row &row, int count, const void *norm, int position) const {
        for (int head = 0; head < count; head++) {
            double *const at = row.data() + head * dim;
            if (norm) std::copy_n(normalized(row, norm, head * dim, dim).begin(), dim, at);
            for (int i = 0; i < half; i++) {
                const double c = cosines[position * half + i], s = sines[position * half + i], a = at[i], b = at[i + half];
                at[i] = a * c - b * s, at[i + half] = b * c + a * s;
            }
        }
    }

    // Logits of every token; keys and values are rounded to bfloat16 as pages hold them.
    std::vector<Row> expected() const {
        std::vector<Row> stream;
        for (int64_t id : ids) {
            const auto *from = static_cast<const uint16_t *>(model.embedding) + id * hidden;
            Row &row = stream.emplace_back();
            for (int i = 0; i < hidden; i++) row.push_back(from_bf16(from[i]));
        }
        auto next = matrices.begin();
        for (const RhModelLayer &layer : model_layers) {
            const Matrix &query = *next++, &key = *next++, &value = *next++, &output = *next++;
            const Matrix &gate = *next++, &up = *next++, &down = *next++;
            std::vector<Row> keys, values;
            for (int token = 0; token < length; token++) {
                const Row normed = normalized(stream[token], layer.attention_norm, 0, hidden);
                Row q = query.times(normed), k = key.times(normed), v = value.times(normed), attended(heads * dim);
                turn(q, heads, layer.query_norm, token), turn(k, kv_heads, layer.key_norm, token);
                for (double &each : k) each = from_bf16(to_bf16(float(each)));
                for (double &each : v) each = from_bf16(to_bf16(float(each)));
                keys.push_back(k), values.push_back(v);
                for (int head = 0; head < heads; head++) attend(q, keys, values, head, attended);
                add(stream[token], output.times(attended));
                const Row again = normalized(stream[token], layer.mlp_norm, 0, hidden);
                Row g = gate.times(again);
                const Row u = up.times(again);
                for (int i = 0; i < inner; i++) g[i] *= u[i] / (1 + std::exp(-g[i]));
                add(stream[token], down.times(g));
            }
        }
        for (Row &row : stream) row = next->times(normalized(row, model.norm, 0, hidden));
        return stream;
    }

    void attend(const Row &query, const std::vector<Row> &keys, const std::vector<Row> &values, int head, Row &out) const {
        const int from = head / (heads / kv_heads) * dim;
        Row weights;
        double total = 0;
        for (const Row &key : keys) {
            double score = 0;
            for (int i = 0; i < dim; i++) score += query[head * dim + i] * key[from + i];
            weights.push_back(std::exp(score / std::sqrt(double(dim)))), total += weights.back();
        }
        for (size_t token = 0; token < keys.size(); token++)
            for (int i = 0; i < dim; i++) out[head * dim + i] += weights[token] / total * values[token][from + i];
    }

    static void add(Row &to, const Row &from) {
        for (size_t i = 0; i < to.size(); i++) to[i] += from[i];
    }
};

}  // namespace

int main(int count, char **arguments) {
    random_bits.seed(count > 1 ? std::atoi(arguments[1]) : 1);
    for (int round = 0; round < 12; round++) {
        Problem problem(round ? pick(1, 30) : 300);  // the first one is work for several threads
        const int columns = (problem.length + problem.page_tokens - 1) / problem.page_tokens;
        const std::vector<float> whole = problem.run(0, problem.length), parts = problem.run(columns, pick(1, 7));
        if (whole != parts) return std::printf("round %d: chunks change what comes out\n", round), 1;
        const std::vector<Row> expected = problem.expected();
        for (int token = 0; token < problem.length; token++)
            for (int id = 0; id < problem.vocab; id++) {
                const double error = std::abs(whole[size_t(token) * problem.vocab + id] - expected[token][id]);
                // A key that lies between two bfloat16 may be rounded either way; int8 inputs are what they are.
                if (!(error <= (problem.int8 ? 1 : 0.02))) return std::printf("round %d: token %d, id %d: error %g\n", round, token, id, error), 1;
            }
    }
    std::puts("agreed");
}
