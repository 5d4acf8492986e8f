// Products with weight matrices for the CPU, as a plain C interface like attention.h's.
//
// output[row][n] = sum over k of input[row][k] * input_scale[k] * weight[n][k], plus bias[n]. Sums are float32.

#ifndef ROUNDHOUSE_LINEAR_H
#define ROUNDHOUSE_LINEAR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RH_LINEAR_BF16 = 0,  // bfloat16 [outputs][inputs]; inputs a multiple of 32
    // Weights q − 8 of 0 ≤ q < 16, times their group's scale. uint32 [outputs / 16][inputs / 8][16]: byte j of a word holds
    // the q of input 8i + j in its low nibble and that of input 8i + 4 + j in its high one. Scales: float32
    // [outputs / 16][inputs / group][16].
    RH_LINEAR_INT4 = 1,
};

// A weight matrix.
typedef struct {
    const void *weights;
    const float *scales;  // INT4 only, else null
    int32_t kind;
    int32_t outputs;      // INT4: a multiple of 16
    int32_t inputs;
    int32_t group;        // INT4: inputs that share a scale, a multiple of 8 that divides inputs; of 32 for int8 inputs
} RhLinear;

// What it is multiplied with. Rows follow each other without gaps.
typedef struct {
    const void *input;         // bfloat16 [rows][inputs]
    const void *input_scale;   // bfloat16 [inputs], or null
    const void *bias;          // bfloat16 [outputs], or null
    void *output;              // [rows][outputs], bfloat16 or float32
    int32_t rows;
    int32_t float_output;      // 0: bfloat16; 1: float32
    // INT4 only. 0: inputs are what they are. 1: they are rounded to 255 steps between the largest of a row and group and its
    // opposite, and multiplied as whole numbers.
    int32_t int8_input;
} RhProduct;

// RH_DONE, RH_BAD_GEOMETRY or RH_NO_MEMORY of attention.h; anything but RH_DONE means that nothing was written.
// A row's output is bitwise the same whatever the other rows are.
int32_t rh_linear(const RhLinear *linear, const RhProduct *product);

#ifdef __cplusplus
}
#endif
#endif
