/* A whole step of an LSTM, its multiplication included, for when nothing is learnt.
 *
 *   in   read     (S, N, D)   what the layer reads at this step
 *        hidden   (S, N, P)   what the step before gave
 *        weights  packed      from D + P numbers to the gates, see below
 *        bias     (S, 4H)
 *   out  cells    (S, H / 16, most rows, 16)   in place
 *        emitted  (S, N, H)
 *
 * Sixteen cells at a time, a panel: their four gates are multiplied out and used while they are in
 * registers, so that nothing is written but cells and what they emit, and a panel's weights come
 * from far memory once for all rows. Only for processors where that was measured to be faster
 * than torch: those with 512-bit vectors (float32) and those with tiles (bfloat16).
 */

#define _GNU_SOURCE /* for syscall */
#include "gates.h"

#define LANES 16 /* cells of a panel */
#define GATES 4
#define PANEL (GATES * LANES)

typedef struct {
    count stacks, rows, most_rows, cells, read, width, threads;
    float clip; /* the largest float where cells are free */
} step;

enum { READ, HIDDEN, WEIGHTS, BIAS, CELLS, EMITTED };

#ifdef __AVX512F__

#include <immintrin.h>

typedef __m512 lanes;

static inline lanes all(float value) { return _mm512_set1_ps(value); }

/* Of two operands of which one is no number, the processor takes the second. */
static inline lanes between(lanes value, float bound) {
    return _mm512_max_ps(all(-bound), _mm512_min_ps(all(bound), value));
}

#define INLINE static inline __attribute__((always_inline))

/* As in gates.h, with instructions that only these processors have. `is_short`: to 13 bits, of
 * which bfloat16 keeps 8. */
INLINE lanes one_and_power_of_two(lanes x, const int is_short) {
    x = _mm512_min_ps(all(30.0f), x); /* so that four can be multiplied */
    const lanes whole = _mm512_roundscale_ps(x, 0), f = _mm512_sub_ps(x, whole);
    lanes p = all(is_short ? 5.517166e-02f : 1.338130212e-03f);
    if (!is_short) {
        p = _mm512_fmadd_ps(p, f, all(9.666368365e-03f));
        p = _mm512_fmadd_ps(p, f, all(5.550381169e-02f));
    }
    p = _mm512_fmadd_ps(p, f, all(is_short ? 2.4261112e-01f : 2.402234972e-01f));
    p = _mm512_fmadd_ps(p, f, all(is_short ? 6.9326099e-01f : 6.931471825e-01f));
    p = _mm512_fmadd_ps(p, f, all(is_short ? 9.9992807e-01f : 1.0f));
    return _mm512_add_ps(_mm512_scalef_ps(p, whole), all(1.0f));
}

INLINE lanes one_over(lanes x, const int is_short) {
    const lanes y = _mm512_rcp14_ps(x); /* 14 bits, then Newton's step */
    return is_short ? y : _mm512_mul_ps(y, _mm512_fnmadd_ps(x, y, all(2.0f)));
}

/* From what drives the gates to what the cells emit; the cells are changed in place. */
INLINE lanes settle(const lanes gates[GATES], float *cells, float clip, const int is_short) {
    const lanes a = one_and_power_of_two(gates[0] * SIGMOID, is_short);
    const lanes b = one_and_power_of_two(gates[1] * SIGMOID, is_short);
    const lanes d = one_and_power_of_two(gates[2] * SIGMOID, is_short);
    const lanes e = one_and_power_of_two(gates[3] * TANH, is_short);
    const lanes ab = a * b, de = d * e, shared = one_over(ab * de, is_short); /* for all four */
    const lanes new = 1.0f - 2.0f * (shared * ab * d);
    const lanes now = between(shared * de * (a * _mm512_loadu_ps(cells) + b * new), clip);
    _mm512_storeu_ps(cells, now);
    const lanes bent = 1.0f - 2.0f * one_over(one_and_power_of_two(now * TANH, is_short), is_short);
    return shared * ab * e * bent;
}

/* The next panel's weights come nearer while this one's are used: a share for each block of rows. */
static inline void fetch(const char *next, count bytes, count block, count blocks) {
    for (count at = bytes * block / blocks & -64; at < bytes * (block + 1) / blocks; at += 64)
        _mm_prefetch(next + at, _MM_HINT_T1);
}

/* Packed: (S, H / 16, D + P, 4, 16), so that a panel is read from one end to the other. */

#define MOST_ROWS 6 /* 24 sums, 4 weights: as many as fit in 32 registers */

#define NEAR 128 /* numbers taken in at a time: their weights stay in the nearest memory */
#define SIDE 132 /* rows whose sums wait there meanwhile */

typedef struct {
    const float *given; /* of the first row, the first number taken in */
    count apart;        /* rows, in numbers */
    count depth;
    const float *weights;
    int is_first, is_last;
} part;

typedef struct {
    const float *bias;
    float *cells, *emitted;
} panel;

INLINE void some_rows(const step *of, const panel *at, const part *some, count first,
                      const int rows, float *waiting) {
    lanes sums[MOST_ROWS][GATES];
    const float *begin = some->is_first ? at->bias : waiting;
    const count gates_apart = some->is_first ? of->cells : LANES;
    const count rows_apart = some->is_first ? 0 : PANEL;
    const float *given = some->given + first * some->apart, *weights = some->weights;
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
        for (int gate = 0; gate < GATES; gate++)
            sums[row][gate] = _mm512_loadu_ps(begin + row * rows_apart + gate * gates_apart);
    for (count k = 0; k < some->depth; k++, weights += PANEL)
#pragma GCC unroll 8
        for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
            for (int gate = 0; gate < GATES; gate++)
                sums[row][gate] =
                    _mm512_fmadd_ps(_mm512_loadu_ps(weights + gate * LANES),
                                    all(given[row * some->apart + k]), sums[row][gate]);
#pragma GCC unroll 8
    for (int row = 0; row < rows; row++)
        if (some->is_last)
            _mm512_storeu_ps(at->emitted + (first + row) * of->cells,
                             settle(sums[row], at->cells + (first + row) * LANES, of->clip, 0));
        else
#pragma GCC unroll 4
            for (int gate = 0; gate < GATES; gate++)
                _mm512_storeu_ps(waiting + row * PANEL + gate * LANES, sums[row][gate]);
}

/* Rows `begin` to `end`, at most SIDE of them. */
static void all_rows(const step *of, const panel *at, const part *some, count begin, count end,
                     float *waiting) {
    const char *next = (const char *)(some->weights + some->depth * PANEL);
    const count bytes = some->depth * PANEL * 4, blocks = (end - begin) / MOST_ROWS + 1;
    count row = begin;
    for (; row + MOST_ROWS <= end; row += MOST_ROWS, waiting += MOST_ROWS * PANEL) {
        fetch(next, bytes, (row - begin) / MOST_ROWS, blocks);
        some_rows(of, at, some, row, MOST_ROWS, waiting);
    }
    switch (end - row) {
    case 5: some_rows(of, at, some, row, 5, waiting); break;
    case 4: some_rows(of, at, some, row, 4, waiting); break;
    case 3: some_rows(of, at, some, row, 3, waiting); break;
    case 2: some_rows(of, at, some, row, 2, waiting); break;
    case 1: some_rows(of, at, some, row, 1, waiting); break;
    default: break;
    }
}

#define START(TYPE, WHICH) ((TYPE *)arrays[WHICH].start + stack * arrays[WHICH].stride)

static void step_float32_panels(const void *what, const array *arrays, count first, count last) {
    const step *of = what;
    const count panels = of->cells / LANES, depth = of->read + of->width;
    float waiting[SIDE * PANEL] __attribute__((aligned(64)));
    for (count line = first; line < last; line++) {
        const count stack = line / panels, number = line % panels;
        const panel at = {START(float, BIAS) + number * LANES,
                          START(float, CELLS) + number * of->most_rows * LANES,
                          START(float, EMITTED) + number * LANES};
        const float *weights = START(float, WEIGHTS) + number * depth * PANEL;
        for (count row = 0; row < of->rows; row += SIDE)
            for (count k = 0, size; k < depth; k += size) {
                const int is_read = k < of->read;
                const count end = is_read ? of->read : depth, begin = is_read ? 0 : of->read;
                size = end - k < NEAR ? end - k : NEAR;
                const part some = {
                    (is_read ? START(float, READ) : START(float, HIDDEN)) + k - begin,
                    end - begin, size, weights + k * PANEL, k == 0, k + size == depth};
                all_rows(of, &at, &some, row, row + SIDE < of->rows ? row + SIDE : of->rows,
                         waiting);
            }
    }
}

PUBLIC void step_float32(const step *of, const array *arrays) {
    const count lines = of->stacks * (of->cells / LANES);
    share_out((job){step_float32_panels, of, arrays, lines}, of->threads,
              of->stacks * of->rows * of->cells);
}

/* From `source` (rows, 4H) to rows `begin` and on of each panel. */
PUBLIC void pack_float32(const float *source, float *packed, const count *sizes) {
    const count rows = sizes[0], begin = sizes[1], depth = sizes[2], cells = sizes[3];
    for (count block = 0; block < rows; block += LANES)
        for (count at = 0; at < GATES * cells; at += LANES) {
            const count gate = at / cells, panel = at % cells / LANES;
            const count end = block + LANES < rows ? block + LANES : rows;
            for (count row = block; row < end; row++)
                memcpy(packed + ((panel * depth + begin + row) * GATES + gate) * LANES,
                       source + row * GATES * cells + at, LANES * sizeof *source);
        }
}

#endif

#if defined(__AMX_BF16__) && defined(__AVX512BF16__) && defined(__linux__)

#include <sys/syscall.h>
#include <unistd.h>

/* Packed: (S, H / 16, 2 pairs of gates, (D + P) / 32, 2 gates, 16, 16, 2): tiles of 32 numbers by
 * 16 cells, the numbers two by two as the processor multiplies them. */

#define DEEP 32              /* numbers that a tile takes in */
#define TILE (DEEP * LANES)  /* numbers of a tile */
#define TALL (2 * LANES)     /* rows done together */

/* The system lets a process use tiles once it has asked. Says whether it may. */
PUBLIC int may_use_tiles(void) { return !syscall(SYS_arch_prctl, 0x1023, 18); }

typedef struct {
    uint8_t palette, start, unused[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tiles;

static const tiles ALL = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

/* Tiles 0 to 3 are sums, two blocks of rows by two gates; 4 and 5 rows, 6 and 7 weights. */
static inline void add_tiles(const uint16_t *given, count depth, const uint16_t *weights,
                             int is_tall) {
    for (count k = 0; k < depth; k += DEEP, weights += 2 * TILE) {
        _tile_loadd(4, given + k, depth * 2);
        _tile_loadd(6, weights, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, weights + TILE, 64);
        _tile_dpbf16ps(1, 4, 7);
        if (!is_tall) continue;
        _tile_loadd(5, given + k + LANES * depth, depth * 2);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
}

/* The gates of some rows from their sums, which lie as tiles do. */
static inline void settle_rows(const step *of, float sums[GATES][TALL][LANES], const float *bias,
                               count rows, float *cells, uint16_t *emitted) {
    for (count row = 0; row < rows; row++) {
        lanes gates[GATES];
        for (int gate = 0; gate < GATES; gate++)
            gates[gate] = _mm512_load_ps(sums[gate][row]) + _mm512_loadu_ps(bias + gate * of->cells);
        const lanes out = settle(gates, cells + row * LANES, of->clip, 1);
        _mm256_storeu_si256((__m256i *)(emitted + row * of->cells),
                            (__m256i)_mm512_cvtneps_pbh(out));
    }
}

static void step_bfloat16_panels(const void *what, const array *arrays, count first, count last) {
    const step *of = what;
    const count panels = of->cells / LANES, depth = of->read + of->width;
    const count blocks = (of->rows + TALL - 1) / TALL, bytes = depth * PANEL * 2;
    float sums[GATES][TALL][LANES] __attribute__((aligned(64)));
    tiles before;
    _tile_storeconfig(&before); /* torch's: it does not expect another's */
    _tile_loadconfig(&ALL);
    for (count line = first; line < last; line++) {
        const count stack = line / panels, number = line % panels;
        const uint16_t *read = START(uint16_t, READ), *hidden = START(uint16_t, HIDDEN);
        const uint16_t *weights = START(uint16_t, WEIGHTS) + number * depth * PANEL;
        const float *bias = START(float, BIAS) + number * LANES;
        float *cells = START(float, CELLS) + number * of->most_rows * LANES;
        uint16_t *emitted = START(uint16_t, EMITTED) + number * LANES;
        for (count row = 0; row < of->rows; row += TALL) {
            const count rows = of->rows - row < TALL ? of->rows - row : TALL;
            fetch((const char *)weights + bytes, bytes, row / TALL, blocks);
            for (int pair = 0; pair < 2; pair++) {
                const uint16_t *from = weights + pair * depth * 2 * LANES;
                _tile_zero(0);
                _tile_zero(1);
                _tile_zero(2);
                _tile_zero(3);
                add_tiles(read + row * of->read, of->read, from, rows > LANES);
                add_tiles(hidden + row * of->width, of->width, from + of->read * 2 * LANES,
                          rows > LANES);
                _tile_stored(0, sums[2 * pair], 64);
                _tile_stored(1, sums[2 * pair + 1], 64);
                _tile_stored(2, sums[2 * pair][LANES], 64);
                _tile_stored(3, sums[2 * pair + 1][LANES], 64);
            }
            settle_rows(of, sums, bias, rows, cells + row * LANES, emitted + row * of->cells);
        }
    }
    _tile_loadconfig(&before);
}

PUBLIC void step_bfloat16(const step *of, const array *arrays) {
    const count lines = of->stacks * (of->cells / LANES);
    share_out((job){step_bfloat16_panels, of, arrays, lines}, of->threads,
              of->stacks * of->rows * of->cells);
}

/* Two rows in bfloat16, a number of one and a number of the other. */
static inline __m512i in_turns(const float *even, const float *odd) {
    const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(even)));
    const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(odd)));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* As pack_float32, from float32 to bfloat16. */
PUBLIC void pack_bfloat16(const float *source, uint16_t *packed, const count *sizes) {
    const count rows = sizes[0], begin = sizes[1], depth = sizes[2], cells = sizes[3];
    for (count block = 0; block < rows; block += DEEP)
        for (count at = 0; at < GATES * cells; at += LANES) {
            const count gate = at / cells, panel = at % cells / LANES;
            const count tile = ((panel * 2 + gate / 2) * (depth / DEEP) + (begin + block) / DEEP) * 2;
            uint16_t *into = packed + (tile + gate % 2) * TILE;
            const float *from = source + block * GATES * cells + at;
            for (count pair = 0; pair < LANES; pair++, from += 2 * GATES * cells)
                _mm512_storeu_si512(into + pair * 2 * LANES,
                                    in_turns(from, from + GATES * cells));
        }
}

#endif
