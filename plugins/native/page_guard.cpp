// A row is compared span by span, and a span that disagrees is searched for its first bad cell.

#include "page_guard.h"

#include <algorithm>

#include "attention.h"

namespace roundhouse {
namespace {

constexpr int32_t kSpan = 512;               // cells: they stay in a core's first cache between the two loops
constexpr int64_t kSerialCells = 32 * 1024;  // cells that are compared sooner than a sleeping thread has begun

// Whether a span of cells agrees. Pages are looked at before tags, in two loops without a branch: neither holds up the other.
bool span_agrees(const int32_t *cells, const int32_t *expected, int32_t count, const RhPageGuard &guard) {
    uint32_t largest = 0;
    for (int32_t at = 0; at < count; at++) largest = std::max(largest, uint32_t(cells[at]));
    if (!is_page(int32_t(largest), guard.pages)) return false;
    int32_t differences = 0;
    for (int32_t at = 0; at < count; at++) differences |= guard.page_tags[cells[at]] ^ expected[at];
    return !differences;
}

int32_t first_bad_cell(const RhPageGuard &guard, int32_t row, int32_t cells) {
    const int64_t start = int64_t(row) * guard.columns;
    const int32_t *const table = guard.page_table + start, *const expected = guard.expected_tags + start;
    for (int32_t first = 0, count; first < cells; first += count) {
        count = std::min(kSpan, cells - first);
        if (span_agrees(table + first, expected + first, count, guard)) continue;
        for (int32_t column = first; column < first + count; column++)
            if (!cell_agrees(table[column], expected[column], guard.page_tags, guard.pages)) return column;
    }
    return cells;
}

}  // namespace
}  // namespace roundhouse

int32_t rh_page_guard(const RhPageGuard *guard, int32_t *first_bad) {
    using namespace roundhouse;
    if (guard->rows < 0 || guard->columns < 0 || guard->pages < 0) return RH_BAD_GEOMETRY;
#pragma omp parallel for if (int64_t(guard->rows) * guard->columns > kSerialCells)
    for (int32_t row = 0; row < guard->rows; row++) {
        const int32_t count = guard->page_count[row], cells = compared_cells(count, guard->columns);
        first_bad[row] = row_verdict(first_bad_cell(*guard, row, cells), count, guard->columns);
    }
    return RH_DONE;
}
