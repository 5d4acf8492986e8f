// Paged attention for the CPU, as a plain C interface: pointers, numbers and strides, nothing of any library.
//
// One call does one layer of one step: it stores the step's keys and values in their pages, then attends to
// what the pages hold. Nothing is kept between calls. Memory is the caller's; no pointer may be null.

#ifndef ROUNDHOUSE_ATTENTION_H
#define ROUNDHOUSE_ATTENTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Every page of a pool. Inside a page a field of a layer is [token][head][element], without gaps.
typedef struct {
    void *pages;           // the first byte of page 0
    int64_t page_bytes;    // from one page to the next
    int32_t page_count;
    int32_t page_tokens;   // tokens a page holds
    int32_t kv_heads;
    int32_t head_dim;      // a multiple of 16
    int32_t is_fp8;        // 0: bfloat16; 1: float8 e4m3fn, stored as row / scale, saturating at ±448
} RhPool;

// Where a layer's keys and values lie in each page, in bytes from the page's start, and their FP8 scales.
typedef struct {
    int64_t key_offset;
    int64_t value_offset;
    float key_scale;
    float value_scale;
} RhLayer;

// The rows of a step. Row b runs the packed tokens query_start[b] … query_start[b + 1] − 1; they are the last
// ones of the context_len[b] tokens that its pages hold after the step.
typedef struct {
    const int32_t *page_table;   // [rows][columns]; column = position / page_tokens; only a row's used cells are read
    const int32_t *query_start;  // [rows + 1], from 0 to the number of packed tokens, ascending
    const int32_t *context_len;  // [rows]
    int32_t rows;
    int32_t columns;
} RhBatch;

// What the model computed for the packed tokens. Elements of a head are adjacent; strides count elements.
typedef struct {
    const void *queries;         // [tokens][heads][head_dim]
    const void *keys;            // [tokens][kv_heads][head_dim]
    const void *values;          // [tokens][kv_heads][head_dim]
    void *output;                // [tokens][heads][head_dim], without gaps
    int64_t query_token_stride, query_head_stride;
    int64_t key_token_stride, key_head_stride;
    int64_t value_token_stride, value_head_stride;
    int32_t tokens;
    int32_t heads;               // a multiple of kv_heads
    int32_t is_bfloat16;         // all four: 0: float32; 1: bfloat16
    float scaling;               // factor on the scores
} RhTokens;

// Where a call found a fault; −1 where it does not apply.
typedef struct {
    int32_t row;
    int32_t column;
} RhFault;

enum {
    RH_DONE = 0,
    RH_BAD_GEOMETRY = 1,  // sizes that are not positive, do not divide, or do not fit into a page
    RH_BAD_ROW = 2,       // a row's tokens, context and columns contradict each other
    RH_BAD_PAGE = 3,      // a used cell of the table is outside 0 … page_count − 1
    RH_NO_MEMORY = 4,
};

// Store and attend. Anything but RH_DONE means that nothing was read from a page or written anywhere but to *fault.
// A row's output depends on nothing but its own tokens and pages: not on other rows, threads or chunks.
int32_t rh_paged_attention(
    const RhPool *pool, const RhLayer *layer, const RhBatch *batch, const RhTokens *tokens, RhFault *fault);

// Threads that a call uses at most.
int32_t rh_threads(void);

#ifdef __cplusplus
}
#endif
#endif
