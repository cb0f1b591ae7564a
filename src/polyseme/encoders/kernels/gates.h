/* What the kernels share: numbers, functions of one number, and how work is shared out.
 *
 * Loops over these functions are written so that a compiler makes vector instructions of them on any
 * processor: no branches, no calls, exponentials of our own. Values that are not numbers stay so.
 */

#ifndef POLYSEME_GATES_H
#define POLYSEME_GATES_H

#include <stdint.h>
#include <string.h>

#ifdef _WIN32
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif

typedef int64_t count;

#define SMALL 32768 /* cells that are sooner done than shared out; torch's measure */

static inline float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The comparisons are turned so that a NaN comes through. */
static inline float within(float value, float bound) {
    value = value > bound ? bound : value;
    return value < -bound ? -bound : value;
}

/* 2^x for |x| <= 126: the whole part goes to the exponent, the rest, -1/2..1/2, to a polynomial.
 * Added to 1.5 * 2^23, a float has no room for fractions: its last bits are the nearest whole
 * number. 127 more is the exponent's offset. (A compiler that may reorder sums would undo this.) */
static inline float power_of_two(float x) {
    const float shifted = x + (12582912.0f + 127.0f);
    const float f = x - (shifted - (12582912.0f + 127.0f));
    float p = 1.338130212e-03f;
    p = p * f + 9.666368365e-03f;
    p = p * f + 5.550381169e-02f;
    p = p * f + 2.402234972e-01f;
    p = p * f + 6.931471825e-01f;
    p = p * f + 1.0f;
    return p * from_bits(to_bits(shifted) << 23);
}

/* 1/x for x >= 1: a guess from the exponent, then Newton's steps; vector division is slower. */
static inline float reciprocal(float x) {
    float y = from_bits(0x7ef311c7u - to_bits(x));
    y = y * (2.0f - x * y);
    y = y * (2.0f - x * y);
    return y * (2.0f - x * y);
}

/* Volatile, so that compilers take it for unknown: of a known bound gcc makes branches. At most 30,
 * so that four powers can be multiplied. */
static const volatile float LARGEST_POWER = 30.0f;

#define SIGMOID -1.44269504f /* sigmoid(x) = 1 / (1 + 2^(SIGMOID x)) */
#define TANH 2.88539008f     /* tanh(x) = 1 - 2 / (1 + 2^(TANH x)) */

static inline float one_and_power(float x, float most) {
    return 1.0f + power_of_two(within(x, most));
}

static inline float fast_tanh(float x, float most) {
    return 1.0f - 2.0f * reciprocal(one_and_power(TANH * x, most));
}

static inline float load_float(float value) { return value; }
static inline float store_float(float value) { return value; }

static inline float bf16_to_f32(uint16_t value) { return from_bits((uint32_t)value << 16); }

static inline uint16_t f32_to_bf16(float value) { /* to the nearest, ties to even */
    uint32_t bits = to_bits(value);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)(value != value ? 0x7fc0u : rounded);
}

/* Gates lie in -1..1, so 16 bits of fixed point keep them some 100 times closer than bfloat16 does. */
static inline float load_fixed(int16_t value) { return (float)value * (1.0f / 32767.0f); }
static inline int16_t store_fixed(float value) { /* rounded as in power_of_two */
    return (int16_t)to_bits(value * 32767.0f + 12582912.0f);
}

/* An array's first element and its distance between stacks; cell.py has their order. */
typedef struct {
    void *start;
    count stride;
} array;

/* Part of some work: lines `first` to `last` of it. What `of` points at says how much there is. */
typedef void work(const void *of, const array *arrays, count first, count last);

typedef struct {
    work *does;
    const void *of;
    const array *arrays;
    count lines;
} job;

/* Torch's own threads, where it runs on GNU OpenMP: a second set would fight with them for the
 * processor. Found when the library is loaded; absent, the caller's thread does it all. */
#ifdef __linux__
__attribute__((weak)) void GOMP_parallel(void (*each)(void *), void *data, unsigned threads,
                                         unsigned flags);
__attribute__((weak)) int omp_get_thread_num(void);
__attribute__((weak)) int omp_get_num_threads(void);

static void do_part(void *data) {
    const job *all = data;
    const count lines = all->lines;
    const count part = omp_get_thread_num(), parts = omp_get_num_threads();
    all->does(all->of, all->arrays, lines * part / parts, lines * (part + 1) / parts);
}
#endif

/* `cells`: how many numbers there are to work on in all. */
static inline void parallel_for(job all, count threads, count cells) {
#ifdef __linux__
    const int is_worth_it = threads > 1 && cells >= SMALL;
    if (is_worth_it && GOMP_parallel && omp_get_thread_num && omp_get_num_threads) {
        GOMP_parallel(do_part, &all, (unsigned)threads, 0);
        return;
    }
#endif
    all.does(all.of, all.arrays, 0, all.lines);
}

#endif
