// What a step may do, checked before it does anything.

#ifndef ROUNDHOUSE_CHECKS_H
#define ROUNDHOUSE_CHECKS_H

#include <cstdint>

#include "attention.h"
#include "vectors.h"

namespace roundhouse {

// The rows of a step, as the code asks for them.
struct Rows {
    const RhBatch &batch;
    int32_t tokens;  // packed ones
    int32_t heads;
    int32_t group;  // query heads that share a KV head

    int32_t count(int32_t row) const { return batch.query_start[row + 1] - batch.query_start[row]; }
    int32_t packed(int32_t row, int32_t token) const { return batch.query_start[row] + token; }
    int32_t position(int32_t row, int32_t token) const { return batch.context_len[row] - count(row) + token; }
    const int32_t *cells(int32_t row) const { return batch.page_table + int64_t(row) * batch.columns; }
};

inline int32_t check_pool(const RhPool &pool, int32_t heads) {
    const bool positive = pool.page_count > 0 && pool.page_tokens > 0 && pool.kv_heads > 0 && pool.head_dim > 0 && heads > 0;
    return !positive || pool.head_dim % 16 || heads % pool.kv_heads ? RH_BAD_GEOMETRY : RH_DONE;
}

inline int32_t check_layer(const RhPool &pool, const RhLayer &layer) {
    const int64_t field_bytes = int64_t(pool.page_tokens) * pool.kv_heads * pool.head_dim * (pool.is_fp8 ? 1 : 2);
    for (int64_t offset : {layer.key_offset, layer.value_offset})
        if (offset < 0 || offset + field_bytes > pool.page_bytes) return RH_BAD_GEOMETRY;
    return RH_DONE;
}

inline int32_t check_row(const RhPool &pool, const Rows &rows, int32_t row, RhFault &fault) {
    const RhBatch &batch = rows.batch;
    const int32_t start = batch.query_start[row], end = batch.query_start[row + 1], context = batch.context_len[row];
    fault = {row, -1};
    if (start < 0 || start >= end || end > rows.tokens || end - start > context) return RH_BAD_ROW;
    const int32_t columns = divide_up(context, pool.page_tokens);
    if (columns > batch.columns) return RH_BAD_ROW;
    for (int32_t column = 0; column < columns; column++) {
        const int32_t page = rows.cells(row)[column];
        fault.column = column;
        if (page < 0 || page >= pool.page_count) return RH_BAD_PAGE;
    }
    return RH_DONE;
}

// RH_DONE, or what is wrong and where.
inline int32_t check_rows(const RhPool &pool, const Rows &rows, RhFault &fault) {
    const RhBatch &batch = rows.batch;
    fault = {-1, -1};
    if (batch.rows < 0 || batch.query_start[0] != 0 || batch.query_start[batch.rows] != rows.tokens) return RH_BAD_ROW;
    for (int32_t row = 0; row < batch.rows; row++)
        if (const int32_t code = check_row(pool, rows, row, fault)) return code;
    fault = {-1, -1};
    return RH_DONE;
}

}  // namespace roundhouse
#endif
