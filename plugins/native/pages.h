// Rows of pages: widened to floats when they are read, rounded when they are stored.

#ifndef ROUNDHOUSE_PAGES_H
#define ROUNDHOUSE_PAGES_H

#include <algorithm>
#include <type_traits>

#include "attention.h"
#include "vectors.h"

namespace roundhouse {

// What a loaded element is multiplied by to be what it means. Only FP8 rows have a scale.
template <class Element>
float factor_of(float scale) {
    return sizeof(Element) == sizeof(Fp8) ? kFp8LoadFactor * scale : 1.0f;
}

// One field of one layer in every page.
template <class Element>
struct Field {
    const RhPool &pool;
    int64_t offset;

    int64_t row_elements() const { return int64_t(pool.kv_heads) * pool.head_dim; }

    Element *row(int32_t page, int32_t token, int32_t head) const {
        auto *field = static_cast<uint8_t *>(pool.pages) + page * pool.page_bytes + offset;
        return reinterpret_cast<Element *>(field) + token * row_elements() + int64_t(head) * pool.head_dim;
    }
};

// Rows of a page lie apart by those of the other heads, and a CPU does not guess the next: asked for this many rows ahead,
// reading them takes two thirds of the time. Behind a page's last row nothing is read, so that any address may be asked for.
constexpr int32_t kRowsAhead = 16;

template <class Element>
inline void prefetch_row(const Element *row, int64_t ahead, int32_t dim) {
    const uintptr_t first = reinterpret_cast<uintptr_t>(row) + uintptr_t(ahead) * sizeof(Element);
    for (uintptr_t line = first; line < first + dim * sizeof(Element); line += 64)
        __builtin_prefetch(reinterpret_cast<const void *>(line));
}

// How widened rows lie: row by row, or kLanes rows interleaved, vector by vector, for whoever reads them together.
struct InRows {
    static int64_t start(int32_t token, int32_t dim) { return int64_t(token) * dim; }
    static constexpr int32_t step = kLanes;  // from one vector of a row to the next
};
struct Interleaved {
    static int64_t start(int32_t token, int32_t dim) { return int64_t(token / kLanes) * kLanes * dim + token % kLanes * kLanes; }
    static constexpr int32_t step = kLanes * kLanes;
};

// One head's rows of positions first … first + count − 1 as floats, of which factor_of is still to be multiplied.
// `cells` are the pages of a row of the table.
template <class Order, class Element>
void widen(const Field<Element> &field, const int32_t *cells, int32_t head, int32_t first, int32_t count, float *out) {
    const int32_t page_tokens = field.pool.page_tokens, dim = field.pool.head_dim;
    int32_t column = first / page_tokens, within = first % page_tokens;
    for (int32_t token = 0; token < count; column++, within = 0) {
        const Element *row = field.row(cells[column], within, head);
        const int32_t end = std::min(count, token + page_tokens - within);
        for (; token < end; token++, row += field.row_elements()) {
            prefetch_row(row, kRowsAhead * field.row_elements(), dim);
            float *to = out + Order::start(token, dim);
            for (int32_t at = 0; at < dim; at += kLanes, to += Order::step) store(to, load(row + at));
        }
    }
}

// Store one head's row of a token. `scale` divides FP8 rows only.
template <class Element, class Source>
void narrow(const Field<Element> &field, const Source *from, float scale, Element *to) {
    const int32_t dim = field.pool.head_dim;
    if constexpr (std::is_same_v<Element, Source>) {
        std::memcpy(to, from, sizeof(Element) * dim);
    } else {
        const Floats divisor = broadcast(sizeof(Element) == sizeof(Fp8) ? scale : 1.0f);
        for (int32_t at = 0; at < dim; at += kLanes) store(to + at, load(from + at) / divisor);
    }
}

}  // namespace roundhouse
#endif
