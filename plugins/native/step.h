// A whole step of a model on the CPU, as a plain C interface like attention.h's: from token ids to logits.
//
// The model is a stack of equal layers: a norm, grouped-query attention with rotary embeddings over pages, a norm, and a gated
// MLP (SiLU), each added to what went in. Activations are float32 between the products.

#ifndef ROUNDHOUSE_STEP_H
#define ROUNDHOUSE_STEP_H

#include "attention.h"
#include "linear.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    RhLinear linear;
    const void *input_scale;  // bfloat16 [inputs], or null
    const void *bias;         // bfloat16 [outputs], or null
} RhProjection;

typedef struct {
    const void *attention_norm;         // bfloat16 [hidden]
    const void *mlp_norm;               // bfloat16 [hidden]
    const void *query_norm, *key_norm;  // bfloat16 [head_dim], each head's before it is rotated; or null
    RhProjection query, key, value, output, gate, up, down;
    RhLayer place;
} RhModelLayer;

typedef struct {
    const RhModelLayer *layers;
    const void *embedding;         // bfloat16 [vocab][hidden]
    const void *norm;              // bfloat16 [hidden]
    RhProjection head;
    const float *cosines, *sines;  // [positions][head_dim / 2]: element i of a head is rotated with element i + head_dim / 2
    int32_t layer_count;
    int32_t hidden;                // a multiple of 16
    int32_t heads;
    int32_t intermediate;          // a multiple of 16
    int32_t vocab;
    int32_t positions;
    int32_t int8_inputs;           // RhProduct's int8_input, for INT4 weights
    float epsilon;                 // of every norm
    float scaling;                 // factor on the scores
} RhModel;

// The packed tokens of a batch, and which of them are followed by a token that is asked for.
typedef struct {
    const int64_t *token_ids;    // [tokens]
    const int64_t *sample_rows;  // [samples]
    float *logits;               // [samples][vocab]
    double *seconds;             // [RH_PARTS], to which is added what each part of the step took; or null
    int32_t tokens;
    int32_t samples;
} RhStepTokens;

enum {
    RH_PART_ATTENTION = 0,
    RH_PART_LINEARS = 1,  // all but the head
    RH_PART_HEAD = 2,
    RH_PARTS = 3,
};

enum {
    RH_BAD_TOKEN = 5,  // a token id is outside of the vocabulary, or a sample row outside of the tokens
};

// Store the keys and values of every layer, and compute logits. Codes and fault are attention.h's. RH_NO_MEMORY may come in the
// middle: the step's own keys and values are stored in some layers then. Any other code but RH_DONE means that nothing was read
// from a page or written but *fault. A row's logits do not depend on other rows, threads or chunks.
int32_t rh_step(
    const RhModel *model, const RhPool *pool, const RhBatch *batch, const RhStepTokens *tokens, RhFault *fault);

#ifdef __cplusplus
}
#endif
#endif
