// Attention of one layer of one step: store its rows, attend piece by piece, put together what was dealt out.

#ifndef ROUNDHOUSE_ATTENTION_LAYER_H
#define ROUNDHOUSE_ATTENTION_LAYER_H

#include <omp.h>

#include <algorithm>

#include "memory.h"
#include "pages.h"
#include "plan.h"
#include "span.h"

namespace roundhouse {

constexpr float kLog2E = 1.44269504f;
constexpr int64_t kSerialStore = 100000;  // elements that are stored sooner than a sleeping thread has begun

template <class Stored, class Element>
class LayerAttention {
   public:
    LayerAttention(const RhPool &pool, const RhLayer &layer, const Rows &rows, const RhTokens &tokens, const Plan &plan)
        : pool_(pool),
          layer_(layer),
          tokens_(tokens),
          rows_(rows),
          keys_{pool, layer.key_offset},
          values_{pool, layer.value_offset},
          dim_(pool.head_dim),
          answer_(answer_floats(pool.head_dim)),
          plan_(plan),
          tile_rows_(plan.tile_tokens * rows.group) {}

    void run() {
        const int64_t scratch_floats = int64_t(kSpan) * dim_ + int64_t(tile_rows_) * (dim_ + kSpan + 2 * answer_);
        const Memory scratch = reserve(scratch_floats * (plan_.parallel ? plan_.threads : 1));
        answers_ = reserve(plan_.answer_count * answer_);
        const int64_t stored = 2 * int64_t(tokens_.tokens) * pool_.kv_heads * dim_;
        // Two regions: the first is usually too short for threads, and in the second nobody waits for one that wakes late.
#pragma omp parallel for if (stored > kSerialStore)
        for (size_t i = 0; i < plan_.pieces.size(); i++)
            if (plan_.pieces[i].first_span == 0) store_rows(plan_.pieces[i]);
#pragma omp parallel for schedule(dynamic) if (plan_.parallel)
        for (size_t i = 0; i < plan_.pieces.size(); i++)
            attend(plan_.pieces[i], scratch.get() + omp_get_thread_num() * scratch_floats);
        for (const Piece &piece : plan_.pieces)
            if (piece.answers >= 0 && piece.first_span == 0) put_together(piece, scratch.get());
    }

   private:
    const RhPool &pool_;
    const RhLayer &layer_;
    const RhTokens &tokens_;
    const Rows &rows_;
    const Field<Stored> keys_, values_;
    const int32_t dim_, answer_;
    const Plan &plan_;
    const int32_t tile_rows_;
    Memory answers_;

    // Store the keys and values of a piece's tokens and KV head.
    void store_rows(const Piece &piece) const {
        for (int32_t token = piece.first_token; token < piece.first_token + piece.tokens; token++) {
            const int32_t position = rows_.position(piece.row, token), at = position % pool_.page_tokens;
            const int32_t page = rows_.cells(piece.row)[position / pool_.page_tokens];
            const int64_t packed = rows_.packed(piece.row, token), head = piece.kv_head;
            const auto *key = static_cast<const Element *>(tokens_.keys) + packed * tokens_.key_token_stride;
            const auto *value = static_cast<const Element *>(tokens_.values) + packed * tokens_.value_token_stride;
            narrow(keys_, key + head * tokens_.key_head_stride, layer_.key_scale, keys_.row(page, at, piece.kv_head));
            narrow(values_, value + head * tokens_.value_head_stride, layer_.value_scale, values_.row(page, at, piece.kv_head));
        }
    }

    // Query rows of a piece are token by token, and within a token query head by query head.
    int32_t rows_of(const Piece &piece) const { return piece.tokens * rows_.group; }

    // How many of a span's keys a query row sees; none, or fewer, when the span lies after it.
    int32_t seen(const Piece &piece, int32_t query, int32_t span) const {
        return std::min(kSpan, rows_.position(piece.row, piece.first_token + query / rows_.group) + 1 - span * kSpan);
    }

    int64_t element_of(const Piece &piece, int32_t query, int64_t token_stride, int64_t head_stride) const {
        return rows_.packed(piece.row, piece.first_token + query / rows_.group) * token_stride +
               (piece.kv_head * rows_.group + query % rows_.group) * head_stride;
    }

    void attend(const Piece &piece, float *scratch) const {
        float *const widened = scratch, *const queries = widened + kSpan * dim_;
        float *const scores = queries + tile_rows_ * dim_, *const total = scores + tile_rows_ * kSpan;
        float *next = total + tile_rows_ * answer_;
        load_queries(piece, queries);
        if (piece.answers < 0) clear(total, rows_of(piece));
        for (int32_t span = piece.first_span; span < piece.first_span + piece.spans; span++) {
            if (piece.answers >= 0) next = answers_of(piece, span);
            attend_span(piece, span, queries, widened, scores, next);
            if (piece.answers < 0) fold_span(piece, span, total, next);
        }
        if (piece.answers < 0) write(piece, total);
    }

    void put_together(const Piece &first, float *total) const {
        const int32_t last = rows_.position(first.row, first.first_token + first.tokens - 1);
        clear(total, rows_of(first));
        for (int32_t span = 0; span <= last / kSpan; span++) fold_span(first, span, total, answers_of(first, span));
        write(first, total);
    }

    float *answers_of(const Piece &piece, int32_t span) const {
        return answers_.get() + (piece.answers + int64_t(span - piece.first_span) * rows_of(piece)) * answer_;
    }

    void load_queries(const Piece &piece, float *queries) const {
        const Floats factor = broadcast(tokens_.scaling * kLog2E * factor_of<Stored>(layer_.key_scale));
        for (int32_t query = 0; query < rows_of(piece); query++) {
            const Element *from = static_cast<const Element *>(tokens_.queries) +
                                  element_of(piece, query, tokens_.query_token_stride, tokens_.query_head_stride);
            for (int32_t at = 0; at < dim_; at += kLanes) store(queries + query * dim_ + at, load(from + at) * factor);
        }
    }

    // Answers of a piece's query rows for one span; rows that see none of it are left out.
    void attend_span(
        const Piece &piece, int32_t span, const float *queries, float *widened, float *scores, float *answers) const {
        const int32_t rows = rows_of(piece), held = seen(piece, rows - 1, span);
        const int32_t *cells = rows_.cells(piece.row);
        int32_t first = 0;
        while (seen(piece, first, span) <= 0) first++;
        widen<Interleaved>(keys_, cells, piece.kv_head, span * kSpan, held, widened);
        for (int32_t query = first; query < rows; query++) {
            const int32_t count = seen(piece, query, span);
            score(queries + query * dim_, widened, count, dim_, scores + query * kSpan);
            weigh(scores + query * kSpan, count, dim_, answers + query * answer_);
        }
        widen<InRows>(values_, cells, piece.kv_head, span * kSpan, held, widened);
        for (int32_t query = first; query < rows;) {
            const int32_t count = seen(piece, query, span);
            const bool two = query + 1 < rows && seen(piece, query + 1, span) == count;
            auto *const add = two ? weighted_values<2> : weighted_values<1>;
            add(scores + query * kSpan, widened, count, dim_, answers + query * answer_);
            query += two ? 2 : 1;
        }
    }

    void fold_span(const Piece &piece, int32_t span, float *total, float *next) const {
        for (int32_t query = 0; query < rows_of(piece); query++)
            if (seen(piece, query, span) > 0) fold(total + query * answer_, next + query * answer_, dim_);
    }

    void clear(float *answers, int32_t rows) const {
        for (int32_t row = 0; row < rows; row++) clear_answer(answers + row * answer_, dim_);
    }

    void write(const Piece &piece, float *total) const {
        for (int32_t query = 0; query < rows_of(piece); query++) {
            Element *to = static_cast<Element *>(tokens_.output) + element_of(piece, query, int64_t(tokens_.heads) * dim_, dim_);
            finish(total + query * answer_, dim_, factor_of<Stored>(layer_.value_scale), to);
        }
    }
};

}  // namespace roundhouse
#endif
