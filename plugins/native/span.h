// Attention of query rows over one span of keys, and how spans add up.
//
// The context is cut at fixed positions into spans of kSpan tokens. A row's answer for a span is its largest score, the
// sum of its weights relative to that score, and its weighted values. Answers are folded from the first span to the last,
// and a row's arithmetic is the same whoever its neighbours are. So a query gives the same bits alone, in a batch, in any
// chunk of a prompt, on any number of threads, and whether its spans were computed together or apart.

#ifndef ROUNDHOUSE_SPAN_H
#define ROUNDHOUSE_SPAN_H

#include <limits>

#include "vectors.h"

namespace roundhouse {

constexpr int kSpan = 64;
constexpr float kNever = -std::numeric_limits<float>::infinity();

// A row's answer for a span, or for all spans so far: float [head_dim] values, then the largest score and the sum.
inline int answer_floats(int dim) { return dim + 16; }
inline float &largest_of(float *answer, int dim) { return answer[dim]; }
inline float &sum_of(float *answer, int dim) { return answer[dim + 1]; }

inline void clear_answer(float *answer, int dim) {
    std::memset(answer, 0, sizeof(float) * answer_floats(dim));
    largest_of(answer, dim) = kNever;
}

// Scores of a query, float [dim], with `count` interleaved keys; factors are in the query. The last keys' neighbours are
// read with them, whatever they are, and their scores are "never".
inline void score(const float *query, const float *keys, int count, int dim, float *scores) {
    for (int first = 0; first < count; first += kLanes) {
        Floats products[kLanes] = {};
        for (int at = 0; at < dim; at += kLanes, keys += kLanes * kLanes) {
            const Floats part = load(query + at);
            for (int key = 0; key < kLanes; key++) products[key] = fused(part, load(keys + key * kLanes), products[key]);
        }
        store(scores + first, sums(products));
    }
    for (int key = count; key < round_to_lanes(count); key++) scores[key] = kNever;
}

// Turns scores into weights 2**(score − largest) and notes the largest and the weights' sum in the answer.
inline void weigh(float *scores, int count, int dim, float *answer) {
    Floats most = broadcast(kNever), total = {};
    for (int key = 0; key < count; key += kLanes) {
        const Floats part = load(scores + key);
        most = part > most ? part : most;
    }
    const float top = largest(most);
    const Floats level = broadcast(top == kNever ? 0.0f : top);  // −∞ − −∞ would be NaN
    for (int key = 0; key < count; key += kLanes) {
        const Floats weights = power_of_two(load(scores + key) - level);
        store(scores + key, weights);
        total += weights;
    }
    largest_of(answer, dim) = top;
    sum_of(answer, dim) = sum(total);
}

// Weighted values of some rows, `vectors` vectors of them from element `at` on, kept in registers.
template <int rows, int vectors>
inline void add_values(const float *weights, const float *values, int count, int dim, int at, float *answers) {
    Floats total[rows][vectors] = {};
    values += at;
    for (int key = 0; key < count; key++, values += dim)
        for (int i = 0; i < vectors; i++) {
            const Floats value = load(values + i * kLanes);
            for (int row = 0; row < rows; row++) total[row][i] = fused(broadcast(weights[row * kSpan + key]), value, total[row][i]);
        }
    for (int row = 0; row < rows; row++)
        for (int i = 0; i < vectors; i++) store(answers + row * answer_floats(dim) + at + i * kLanes, total[row][i]);
}

// Weighted values of rows whose weights and answers follow each other.
template <int rows>
inline void weighted_values(const float *weights, const float *values, int count, int dim, float *answers) {
    int at = 0;
    for (; at + 4 * kLanes <= dim; at += 4 * kLanes) add_values<rows, 4>(weights, values, count, dim, at, answers);
    for (; at < dim; at += kLanes) add_values<rows, 1>(weights, values, count, dim, at, answers);
}

// Adds the answer of the next span to the answer of all before it.
inline void fold(float *total, float *next, int dim) {
    const float top = largest_of(next, dim) > largest_of(total, dim) ? largest_of(next, dim) : largest_of(total, dim);
    const float level = top == kNever ? 0.0f : top;
    const Floats old_part = power_of_two(broadcast(largest_of(total, dim) - level));
    const Floats new_part = power_of_two(broadcast(largest_of(next, dim) - level));
    for (int at = 0; at < dim; at += kLanes)
        store(total + at, fused(load(next + at), new_part, load(total + at) * old_part));
    sum_of(total, dim) = sum_of(next, dim) * new_part[0] + sum_of(total, dim) * old_part[0];
    largest_of(total, dim) = top;
}

// A head's output: the weighted values over the sum of the weights, times `factor`.
template <class Element>
inline void finish(float *total, int dim, float factor, Element *output) {
    const Floats share = broadcast(factor / sum_of(total, dim));
    for (int at = 0; at < dim; at += kLanes) store(output + at, load(total + at) * share);
}

}  // namespace roundhouse
#endif
