// Runs the native linears on random products and compares them with plain loops. Built with sanitizers by the tests: every
// buffer is as large as the interface says and no larger, so that a read or write beside it is caught.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "linear.h"
#include "numbers.h"

namespace {

struct Problem {
    RhLinear linear{};
    RhProduct product{};
    bool spoiled = false;  // the first row
    std::vector<double> weights;
    std::vector<uint16_t> halves, input, scale, bias, half_output;
    std::vector<uint32_t> words;
    std::vector<float> scales, output;

    Problem() {
        const bool int4 = pick(0, 1), int8 = int4 && pick(0, 1);
        linear.kind = int4 ? RH_LINEAR_INT4 : RH_LINEAR_BF16;
        linear.group = int4 ? (int8 ? 32 : 8) * pick(1, 9) : 0;
        linear.inputs = int4 ? linear.group * pick(1, 5) : 32 * pick(1, 9);
        linear.outputs = int4 ? 16 * pick(1, 5) : pick(1, 40);
        product.rows = pick(0, 3) ? pick(0, 20) : 600, product.float_output = pick(0, 1), product.int8_input = int8;
        int4 ? fill_int4() : fill_bf16();
        fill(input, product.rows * linear.inputs);
        // Numbers that are none, and next to nothing: their rows are not compared.
        if (int8 && pick(0, 1) && product.rows > 1)
            for (int k = 0; k < linear.inputs; k++)
                input[k] = uint16_t(std::vector<int>{0x7FC0, 0x7F80, 0xFF80, 0x0001}[size_t(pick(0, 3))]), spoiled = true;
        if (pick(0, 1)) fill(scale, linear.inputs), product.input_scale = scale.data();
        if (pick(0, 1)) fill(bias, linear.outputs), product.bias = bias.data();
        product.input = input.data();
        const size_t results = size_t(product.rows) * linear.outputs;
        if (product.float_output)
            output.resize(results), product.output = output.data();
        else
            half_output.resize(results), product.output = half_output.data();
    }

    void fill(std::vector<uint16_t> &numbers, int count) {
        for (int i = 0; i < count; i++) numbers.push_back(to_bf16(normal()));
    }

    void fill_bf16() {
        fill(halves, linear.outputs * linear.inputs);
        for (uint16_t half : halves) weights.push_back(from_bf16(half));
        linear.weights = halves.data();
    }

    void fill_int4() {
        const int groups = linear.inputs / linear.group;
        words.resize(size_t(linear.outputs) * linear.inputs / 8), scales.resize(size_t(linear.outputs) * groups);
        for (float &each : scales) each = 0.01f * float(pick(1, 9));
        for (int output = 0; output < linear.outputs; output++)
            for (int k = 0; k < linear.inputs; k++) {
                const int q = pick(0, 15);
                const int place = 8 * (k % 4) + k % 8 / 4 * 4;
                words[(size_t(output / 16) * (linear.inputs / 8) + k / 8) * 16 + output % 16] |= uint32_t(q) << place;
                weights.push_back((q - 8) * scales[(size_t(output / 16) * groups + k / linear.group) * 16 + output % 16]);
            }
        linear.weights = words.data(), linear.scales = scales.data();
    }

    float input_at(int row, int k) const {
        return from_bf16(input[size_t(row) * linear.inputs + k]) * (scale.empty() ? 1 : from_bf16(scale[k]));
    }

    double rounded(int row, int k) const {
        float most = 0;
        for (int i = k / linear.group * linear.group, end = i + linear.group; i < end; i++)
            most = std::max(most, std::abs(input_at(row, i)));
        return most > 0 ? std::nearbyint(input_at(row, k) * (127.0f / most)) * double(most / 127.0f) : 0;
    }

    // The error of one result, relative to what is allowed.
    double error(int row, int output_at) const {
        double expected = 0, size = 0;
        for (int k = 0; k < linear.inputs; k++) {
            const double factor = product.int8_input ? rounded(row, k) : input_at(row, k);
            expected += factor * weights[size_t(output_at) * linear.inputs + k];
            size += std::abs(factor) * (std::abs(weights[size_t(output_at) * linear.inputs + k]) + 1);
        }
        if (!bias.empty()) expected += from_bf16(bias[output_at]);
        const size_t at = size_t(row) * linear.outputs + output_at;
        const float got = product.float_output ? output[at] : from_bf16(half_output[at]);
        const double allowed = size * 1e-6 + (product.float_output ? 0 : std::abs(expected) / 256) + 1e-6;
        return std::abs(got - expected) / allowed;
    }
};

}  // namespace

int main(int count, char **arguments) {
    random_bits.seed(count > 1 ? std::atoi(arguments[1]) : 1);
    for (int round = 0; round < 24; round++) {
        Problem problem;
        if (const int code = rh_linear(&problem.linear, &problem.product))
            return std::printf("round %d: code %d\n", round, code), 1;
        for (int sample = 0; sample < 400 && problem.product.rows; sample++) {
            const int row = pick(problem.spoiled, problem.product.rows - 1), output = pick(0, problem.linear.outputs - 1);
            const double error = problem.error(row, output);
            if (!(error <= 1)) return std::printf("round %d: row %d, output %d: error %g\n", round, row, output, error), 1;
        }
    }
    std::puts("agreed");
}
