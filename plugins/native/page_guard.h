// The page-tag guard: one definition for the CPU, for CUDA and for TensorRT, and the CPU's plain C interface.
//
// Every page that a row counts must carry the tag that the row was issued. A page out of range, a negative cell inside
// the count and a count outside 0 … columns are mismatches, and no cell or tag beside the arrays is ever read.

#ifndef ROUNDHOUSE_PAGE_GUARD_H
#define ROUNDHOUSE_PAGE_GUARD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What is compared. Rows follow each other without gaps; nobody writes to the arrays during the call.
typedef struct {
    const int32_t *page_table;     // [rows][columns]; only the cells inside a row's count are read
    const int32_t *page_count;     // [rows]
    const int32_t *expected_tags;  // [rows][columns], the tags issued with these pages
    const int32_t *page_tags;      // [pages], the tags the pages carry now
    int32_t rows;
    int32_t columns;
    int32_t pages;
} RhPageGuard;

// first_bad: [rows], the first bad column of each row, or −1 when all agree. A negative count is bad at column 0, a count
// above `columns` at column `columns` unless a cell is bad before. RH_DONE, or RH_BAD_GEOMETRY of attention.h for a
// negative size: then nothing was written.
int32_t rh_page_guard(const RhPageGuard *guard, int32_t *first_bad);

#ifdef __cplusplus
}

#ifdef __CUDACC__
#define ROUNDHOUSE_BOTH __host__ __device__ __forceinline__
#else
#define ROUNDHOUSE_BOTH inline
#endif

namespace roundhouse {

constexpr int32_t kAllAgree = -1;

// How many cells of a row are compared.
ROUNDHOUSE_BOTH int32_t compared_cells(int32_t count, int32_t columns) {
    return count < 0 ? 0 : count < columns ? count : columns;
}

// Whether a page of the table is in range; a negative one is a large unsigned number. Only then may its tag be read.
ROUNDHOUSE_BOTH bool is_page(int32_t page, int32_t pages) { return uint32_t(page) < uint32_t(pages); }

ROUNDHOUSE_BOTH bool cell_agrees(int32_t page, int32_t expected, const int32_t *page_tags, int32_t pages) {
    return is_page(page, pages) && page_tags[page] == expected;
}

// A row's verdict. first_bad_cell: the first compared cell that disagrees, or anything from compared_cells() on.
ROUNDHOUSE_BOTH int32_t row_verdict(int32_t first_bad_cell, int32_t count, int32_t columns) {
    if (count < 0) return 0;
    if (first_bad_cell < compared_cells(count, columns)) return first_bad_cell;
    return count > columns ? columns : kAllAgree;
}

}  // namespace roundhouse
#endif
#endif
