// Which matrices there is a kernel for.

#ifndef ROUNDHOUSE_LINEAR_CHECK_H
#define ROUNDHOUSE_LINEAR_CHECK_H

#include "attention.h"
#include "linear_int8.h"

namespace roundhouse {

inline int32_t check_linear(const RhLinear &linear, bool int8_input) {
    if (linear.outputs <= 0 || linear.inputs <= 0) return RH_BAD_GEOMETRY;
    if (linear.kind == RH_LINEAR_BF16) return linear.inputs % 32 || int8_input ? RH_BAD_GEOMETRY : RH_DONE;
    const int32_t multiple = int8_input ? kByteStep : 8;
    const bool whole = linear.group > 0 && linear.group % multiple == 0 && linear.inputs % linear.group == 0;
    return linear.kind == RH_LINEAR_INT4 && whole && linear.outputs % kBlock == 0 ? RH_DONE : RH_BAD_GEOMETRY;
}

}  // namespace roundhouse
#endif
