// The work of a step, cut into pieces for threads. How it is cut changes when something is computed, never what.

#ifndef ROUNDHOUSE_PLAN_H
#define ROUNDHOUSE_PLAN_H

#include <algorithm>
#include <cstdint>
#include <vector>

#include "checks.h"
#include "span.h"

namespace roundhouse {

constexpr int kTileRows = 64;        // query rows that share what was widened of a span: tokens times heads of a group
constexpr int kSpansApart = 2;       // spans in a piece of a row whose spans are dealt out
constexpr int kPiecesPerThread = 4;  // with fewer pieces than this, rows of few tokens are dealt out by spans
constexpr double kSerialWork = 4e5;  // multiply-adds that are done sooner than a sleeping thread has begun

// Neighbouring tokens of a row, the query heads that share one KV head, and some spans of the row's context.
struct Piece {
    int32_t row, first_token, tokens, kv_head, first_span, spans;
    int64_t answers;  // where its answers begin, span after span; −1: it covers every span and finishes by itself
};

struct Plan {
    std::vector<Piece> pieces;
    int64_t answer_count = 0;
    int32_t tile_tokens, threads;
    bool parallel;

    Plan(const RhPool &pool, const Rows &rows, int32_t at_most)
        : tile_tokens(std::max(1, kTileRows / rows.group)), threads(at_most) {
        double work = 0, whole = 0;
        for (int32_t row = 0; row < rows.batch.rows; row++) {
            const double mean_context = (rows.position(row, 0) + rows.batch.context_len[row] + 1) / 2.0;
            work += 2 * mean_context * rows.count(row) * rows.heads * pool.head_dim;
            whole += double(divide_up(rows.count(row), tile_tokens)) * pool.kv_heads;
        }
        parallel = threads > 1 && work > kSerialWork;
        const bool few = parallel && whole < double(kPiecesPerThread) * threads;
        // Long pieces come first, so that no thread is left with one at the end: prompts are the last rows of a batch,
        // and their last tokens see most.
        for (int32_t row = rows.batch.rows - 1; row >= 0; row--)
            for (int32_t first = (rows.count(row) - 1) / tile_tokens * tile_tokens; first >= 0; first -= tile_tokens)
                cut(rows, row, first, pool.kv_heads, few && rows.count(row) <= tile_tokens);
    }

   private:
    void cut(const Rows &rows, int32_t row, int32_t first, int32_t kv_heads, bool by_spans) {
        const int32_t tokens = std::min(tile_tokens, rows.count(row) - first);
        const int32_t spans = divide_up(rows.position(row, first + tokens - 1) + 1, kSpan);
        const int32_t step = by_spans ? std::min(kSpansApart, spans) : spans;
        for (int32_t head = 0; head < kv_heads; head++)
            for (int32_t span = 0; span < spans; span += step) {
                const int32_t taken = std::min(step, spans - span);
                pieces.push_back({row, first, tokens, head, span, taken, step < spans ? answer_count : -1});
                if (step < spans) answer_count += int64_t(taken) * tokens * rows.group;
            }
    }
};

}  // namespace roundhouse
#endif
