/* A whole step of an LSTM in bfloat16, for processors with tiles: see steps.h. */

#define _GNU_SOURCE /* for syscall */
#include "steps.h"

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
static inline void add_tiles(const uint16_t *inputs, count depth, const uint16_t *weights,
                             int is_tall) {
    for (count k = 0; k < depth; k += DEEP, weights += 2 * TILE) {
        _tile_loadd(4, inputs + k, depth * 2);
        _tile_loadd(6, weights, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, weights + TILE, 64);
        _tile_dpbf16ps(1, 4, 7);
        if (!is_tall) continue;
        _tile_loadd(5, inputs + k + LANES * depth, depth * 2);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
}

/* The gates of some rows from their sums, which lie as tiles do. */
static inline void settle_rows(const step *of, float sums[GATES][TALL][LANES], const float *bias,
                               count rows, float *cells, uint16_t *cell_output) {
    for (count row = 0; row < rows; row++) {
        lanes gates[GATES];
        for (int gate = 0; gate < GATES; gate++)
            gates[gate] = _mm512_load_ps(sums[gate][row]) +
                          _mm512_loadu_ps(bias + gate * of->hidden_size);
        const lanes out = lstm_cell(gates, cells + row * LANES, of->clip, 1);
        _mm256_storeu_si256((__m256i *)(cell_output + row * of->hidden_size),
                            (__m256i)_mm512_cvtneps_pbh(out));
    }
}

static void step_bfloat16_panels(const void *what, const array *arrays, count first, count last) {
    const step *of = what;
    const count panels = of->hidden_size / LANES, depth = of->input_size + of->proj_size;
    const count blocks = (of->rows + TALL - 1) / TALL, bytes = depth * PANEL * 2;
    float sums[GATES][TALL][LANES] __attribute__((aligned(64)));
    tiles before;
    _tile_storeconfig(&before); /* torch's: it does not expect another's */
    _tile_loadconfig(&ALL);
    for (count line = first; line < last; line++) {
        const count stack = line / panels, number = line % panels;
        const uint16_t *inputs = START(uint16_t, INPUTS), *hidden = START(uint16_t, HIDDEN);
        const uint16_t *weights = START(uint16_t, WEIGHTS) + number * depth * PANEL;
        const float *bias = START(float, BIAS) + number * LANES;
        float *cells = START(float, CELLS) + number * of->max_rows * LANES;
        uint16_t *cell_output = START(uint16_t, CELL_OUTPUT) + number * LANES;
        for (count row = 0; row < of->rows; row += TALL) {
            const count rows = of->rows - row < TALL ? of->rows - row : TALL;
            fetch((const char *)weights + bytes, bytes, row / TALL, blocks);
            for (int pair = 0; pair < 2; pair++) {
                const uint16_t *from = weights + pair * depth * 2 * LANES;
                _tile_zero(0);
                _tile_zero(1);
                _tile_zero(2);
                _tile_zero(3);
                add_tiles(inputs + row * of->input_size, of->input_size, from, rows > LANES);
                add_tiles(hidden + row * of->proj_size, of->proj_size,
                          from + of->input_size * 2 * LANES, rows > LANES);
                _tile_stored(0, sums[2 * pair], 64);
                _tile_stored(1, sums[2 * pair + 1], 64);
                _tile_stored(2, sums[2 * pair][LANES], 64);
                _tile_stored(3, sums[2 * pair + 1][LANES], 64);
            }
            settle_rows(of, sums, bias, rows, cells + row * LANES,
                        cell_output + row * of->hidden_size);
        }
    }
    _tile_loadconfig(&before);
}

PUBLIC void step_bfloat16(const step *of, const array *arrays) {
    const count lines = of->stacks * (of->hidden_size / LANES);
    parallel_for((job){step_bfloat16_panels, of, arrays, lines}, of->threads,
              of->stacks * of->rows * of->hidden_size);
}

/* Two rows in bfloat16, a number of one and a number of the other. */
static inline __m512i in_turns(const float *even, const float *odd) {
    const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(even)));
    const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(odd)));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* As pack_float32, from float32 to bfloat16. */
PUBLIC void pack_bfloat16(const float *source, uint16_t *packed, const count *sizes) {
    const count rows = sizes[0], begin = sizes[1], depth = sizes[2], hidden_size = sizes[3];
    for (count block = 0; block < rows; block += DEEP)
        for (count at = 0; at < GATES * hidden_size; at += LANES) {
            const count gate = at / hidden_size, panel = at % hidden_size / LANES;
            const count tile = ((panel * 2 + gate / 2) * (depth / DEEP) + (begin + block) / DEEP) * 2;
            uint16_t *into = packed + (tile + gate % 2) * TILE;
            const float *from = source + block * GATES * hidden_size + at;
            for (count pair = 0; pair < LANES; pair++, from += 2 * GATES * hidden_size)
                _mm512_storeu_si512(into + pair * 2 * LANES,
                                    in_turns(from, from + GATES * hidden_size));
        }
}

#endif
