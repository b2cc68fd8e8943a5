/*
 * Ten rounds of two 32 x 32 -> 64 bit products. Constants: Random123, philox.h, PHILOX_M4x32_0 and
 * _1, PHILOX_W32_0 and _1 (the latter the golden ratio and sqrt(3) - 1).
 */
#include "core/philox.h"

void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = UINT64_C(0xD2511F53) * a;
        uint64_t p1 = UINT64_C(0xCD9E8D57) * c;
        a = (uint32_t)(p1 >> 32) ^ b ^ k0;
        b = (uint32_t)p1;
        c = (uint32_t)(p0 >> 32) ^ d ^ k1;
        d = (uint32_t)p0;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

double philox_uniform(uint64_t seed, uint64_t position)
{
    const uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32), 0, 0};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t word[4];
    philox(counter, key, word);
    uint64_t bits = (uint64_t)word[1] << 32 | word[0];
    return (double)(bits >> 11) * 0x1p-53;
}
