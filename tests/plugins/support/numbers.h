// Random numbers, and bfloat16 without the code under test.

#include <cstdint>
#include <cstring>
#include <random>

namespace {

std::mt19937 random_bits;

int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_bits); }

float normal() { return std::normal_distribution<float>()(random_bits); }

float from_bf16(uint16_t bits) {
    const uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

uint16_t to_bf16(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return uint16_t((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

}  // namespace
