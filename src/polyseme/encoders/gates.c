/* What one step of an LSTM does besides its multiplications, in one pass over memory.
 *
 *   in   drive    (S, B, 4H)  what the inputs add to the gates: input, forget, output, new
 *        product  (S, B, 4H)  what the state before adds to them
 *        bias     (S, 4H)     what is always added
 *   out  active   (S, B, 4H)  the gates, kept for the way back; cells and what they emit (S, B, H)
 *
 * Optional: cell.py does the same in several passes where this is not compiled. Every array may be
 * a slice of a longer one, its stacks then further apart. The loops are written so that a compiler
 * makes vector instructions of them on any processor: no branches, no calls, exponentials of our
 * own. Values that are not numbers stay so: a run that fails must show it.
 */

#include <stdint.h>
#include <string.h>

#ifdef _WIN32
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif

typedef int64_t count;

#define SMALL 32768 /* cells that are sooner done than shared out; torch's measure */

typedef struct {
    count stacks, rows, cells, threads;
    float clip; /* the largest float where cells are free */
} shape;

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

static inline float bend(float x, float most) { /* tanh */
    return 1.0f - 2.0f * reciprocal(one_and_power(TANH * x, most));
}

static inline float load_float(float value) { return value; }
static inline float store_float(float value) { return value; }

static inline float load_brain(uint16_t value) { return from_bits((uint32_t)value << 16); }

static inline uint16_t store_brain(float value) { /* to the nearest, ties to even */
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

typedef void work(const shape *of, const array *arrays, count first, count last);

typedef struct {
    work *does;
    const shape *of;
    const array *arrays;
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
    const count lines = all->of->stacks * all->of->rows;
    const count part = omp_get_thread_num(), parts = omp_get_num_threads();
    all->does(all->of, all->arrays, lines * part / parts, lines * (part + 1) / parts);
}
#endif

static void share_out(work *does, const shape *of, const array *arrays) {
    const count lines = of->stacks * of->rows;
#ifdef __linux__
    job all = {does, of, arrays};
    const int is_worth_it = of->threads > 1 && lines * of->cells >= SMALL;
    if (is_worth_it && GOMP_parallel && omp_get_thread_num && omp_get_num_threads) {
        GOMP_parallel(do_part, &all, (unsigned)of->threads, 0);
        return;
    }
#endif
    does(of, arrays, 0, lines);
}

#define AT(NUMBER, WHICH, WIDTH) \
    ((NUMBER *)arrays[WHICH].start + stack * arrays[WHICH].stride + row * (WIDTH))

#define FORWARD(NAME, NUMBER, KEPT, LOAD, STORE, KEEP)                                            \
    static void NAME##_row(count cells, float clip, const NUMBER *restrict drive,                 \
                           const NUMBER *restrict product, const float *restrict before,          \
                           KEPT *restrict active, float *restrict now,                            \
                           NUMBER *restrict emitted, const float *restrict bias) {                \
        const float most = LARGEST_POWER;                                                         \
        _Pragma("omp simd") for (count c = 0; c < cells; c++) {                                   \
            const count f = c + cells, o = f + cells, n = o + cells;                              \
            const float a =                                                                       \
                one_and_power(SIGMOID * (LOAD(drive[c]) + LOAD(product[c]) + bias[c]), most);     \
            const float b =                                                                       \
                one_and_power(SIGMOID * (LOAD(drive[f]) + LOAD(product[f]) + bias[f]), most);     \
            const float d =                                                                       \
                one_and_power(SIGMOID * (LOAD(drive[o]) + LOAD(product[o]) + bias[o]), most);     \
            const float e =                                                                       \
                one_and_power(TANH * (LOAD(drive[n]) + LOAD(product[n]) + bias[n]), most);        \
            const float ab = a * b, de = d * e;                                                   \
            const float shared = reciprocal(ab * de); /* one for four gates */                    \
            const float enter = shared * de * b, keep = shared * de * a;                          \
            const float leave = shared * ab * e, new = 1.0f - 2.0f * shared * ab * d;             \
            const float cell = within(keep * before[c] + enter * new, clip);                      \
            now[c] = cell;                                                                        \
            emitted[c] = STORE(leave * bend(cell, most));                                         \
            active[c] = KEEP(enter);                                                              \
            active[f] = KEEP(keep);                                                               \
            active[o] = KEEP(leave);                                                              \
            active[n] = KEEP(new);                                                                \
        }                                                                                         \
    }                                                                                             \
    static void NAME##_rows(const shape *of, const array *arrays, count first, count last) {      \
        for (count line = first; line < last; line++) {                                           \
            const count stack = line / of->rows, row = line % of->rows, cells = of->cells;        \
            NAME##_row(cells, of->clip, AT(NUMBER, 0, 4 * cells), AT(NUMBER, 1, 4 * cells),       \
                       AT(float, 2, cells), AT(KEPT, 3, 4 * cells), AT(float, 4, cells),          \
                       AT(NUMBER, 5, cells), AT(float, 6, 0)); /* one bias for all rows */        \
        }                                                                                         \
    }                                                                                             \
    PUBLIC void NAME(const shape *of, const array *arrays) { share_out(NAME##_rows, of, arrays); }

/* `pull` is the running gradient of the cells: after this step on entry, before it on return. */
#define BACKWARD(NAME, NUMBER, KEPT, LOAD, STORE, TAKE)                                           \
    static void NAME##_row(count cells, float clip, const KEPT *restrict active,                  \
                           const float *restrict before, const float *restrict now,               \
                           const NUMBER *restrict emitted, float *restrict pull,                  \
                           NUMBER *restrict slope) {                                              \
        const float most = LARGEST_POWER;                                                         \
        _Pragma("omp simd") for (count c = 0; c < cells; c++) {                                   \
            const count f = c + cells, o = f + cells, n = o + cells;                              \
            const float enter = TAKE(active[c]), keep = TAKE(active[f]);                          \
            const float leave = TAKE(active[o]), new = TAKE(active[n]);                           \
            const float bent = bend(now[c], most), emit = LOAD(emitted[c]);                       \
            const float whole = pull[c] + emit * leave * (1.0f - bent * bent);                    \
            const float size = now[c] < 0.0f ? -now[c] : now[c];                                  \
            const float cell = size >= clip ? 0.0f : whole; /* cut off: nothing passes */         \
            slope[c] = STORE(cell * new * enter * (1.0f - enter));                                \
            slope[f] = STORE(cell * before[c] * keep * (1.0f - keep));                            \
            slope[o] = STORE(emit * bent * leave * (1.0f - leave));                               \
            slope[n] = STORE(cell * enter * (1.0f - new * new));                                  \
            pull[c] = cell * keep;                                                                \
        }                                                                                         \
    }                                                                                             \
    static void NAME##_rows(const shape *of, const array *arrays, count first, count last) {      \
        for (count line = first; line < last; line++) {                                           \
            const count stack = line / of->rows, row = line % of->rows, cells = of->cells;        \
            NAME##_row(cells, of->clip, AT(KEPT, 0, 4 * cells), AT(float, 1, cells),              \
                       AT(float, 2, cells), AT(NUMBER, 3, cells), AT(float, 4, cells),            \
                       AT(NUMBER, 5, 4 * cells));                                                 \
        }                                                                                         \
    }                                                                                             \
    PUBLIC void NAME(const shape *of, const array *arrays) { share_out(NAME##_rows, of, arrays); }

FORWARD(forward_float32, float, float, load_float, store_float, store_float)
FORWARD(forward_bfloat16, uint16_t, int16_t, load_brain, store_brain, store_fixed)
BACKWARD(backward_float32, float, float, load_float, store_float, load_float)
BACKWARD(backward_bfloat16, uint16_t, int16_t, load_brain, store_brain, load_fixed)
