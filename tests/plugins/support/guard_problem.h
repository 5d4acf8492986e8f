// Random tables for the page guard, right ones and broken ones, and what each row's answer must be: cell by cell.
//
// Every array ends where its memory ends, so that a read behind it is caught; it begins at any alignment.

#include <climits>
#include <cstdint>
#include <vector>

#include "numbers.h"
#include "page_guard.h"

namespace {

class Array {
public:
    explicit Array(int64_t size, int offset = pick(0, 3)) : offset_(offset), memory_(offset + size) {}
    int32_t *data() { return memory_.data() + offset_; }
    const int32_t *data() const { return memory_.data() + offset_; }

private:
    int offset_;
    std::vector<int32_t> memory_;
};

int32_t broken(int32_t limit) {
    const int32_t values[] = {-1, limit, limit + 1, INT_MIN, INT_MAX, -limit};
    return values[pick(0, 5)];
}

struct GuardProblem {
    int32_t rows = pick(0, 5), columns = pick(0, 3) ? pick(0, 40) : pick(500, 2100), pages = pick(0, 9) ? pick(1, 60) : 0;
    int alignment = pick(0, 3);  // mostly of both large arrays, as in a batch
    Array table{int64_t(rows) * columns, alignment}, count{rows};
    Array expected{int64_t(rows) * columns, pick(0, 4) ? alignment : pick(0, 3)}, tags{pages}, first_bad{rows};

    GuardProblem() {
        for (int32_t page = 0; page < pages; page++) tags.data()[page] = pick(1, INT_MAX);
        for (int64_t cell = 0; cell < int64_t(rows) * columns; cell++) {
            const int32_t page = pages ? pick(0, pages - 1) : -1;
            table.data()[cell] = page;
            expected.data()[cell] = pages ? tags.data()[page] : 0;
        }
        for (int32_t row = 0; row < rows; row++) {
            count.data()[row] = pick(0, 5) ? columns - pick(0, columns < 5 ? columns : 5) : broken(columns);
            if (columns && pick(0, 5)) break_cell(int64_t(row) * columns + column_to_break());
        }
    }

    // Often near an end of the row, where loops begin and end.
    int32_t column_to_break() const {
        const int32_t at = pick(0, columns < 9 ? columns - 1 : 8);
        const int32_t places[] = {at, columns - 1 - at, pick(0, columns - 1)};
        return places[pick(0, 2)];
    }

    void break_cell(int64_t cell) {
        pick(0, 1) ? table.data()[cell] = broken(pages) : expected.data()[cell] ^= 1 << pick(0, 30);
    }

    RhPageGuard guard() const { return {table.data(), count.data(), expected.data(), tags.data(), rows, columns, pages}; }

    int32_t answer(int32_t row) const {
        const int32_t cells = count.data()[row];
        if (cells < 0) return 0;
        for (int32_t column = 0; column < cells; column++) {
            if (column == columns) return columns;
            const int32_t page = table.data()[int64_t(row) * columns + column];
            if (page < 0 || page >= pages) return column;
            if (tags.data()[page] != expected.data()[int64_t(row) * columns + column]) return column;
        }
        return -1;
    }

    // The first row with another answer, or −1.
    int32_t wrong_row() const {
        for (int32_t row = 0; row < rows; row++)
            if (first_bad.data()[row] != answer(row)) return row;
        return -1;
    }
};

}  // namespace
