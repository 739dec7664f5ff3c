/*
 * Cases of dequant_matmul and dequant_gather. Packed operands are named w, the f32 operand x, the
 * indices idx.
 *
 *   format=NAME      block format
 *   k=N              of dequant_gather: elements of a row (cols=N in golden cases)
 *   rows=N           of dequant_gather without idx: takes every row in order
 *   skip=N           w starts with N rows that are sliced off first, so that it is a view at a byte
 *                    offset
 *   shift=N as=DIMS  x is a vector; the product reads DIMS of it from element N on, so that it is a
 *                    view at an odd offset
 */
#include "conform/cases/cases.h"
#include "op/packed/quant_format.h"

#include <stdlib.h>
#include <string.h>

static rlxvk_quant_format format_of(const case_spec *s)
{
    const quant_format *format = quant_format_find_name(case_word(s, "format", ""));
    return format ? (rlxvk_quant_format)format->type : (rlxvk_quant_format)0;
}

static const case_input *input_named(const case_spec *s, char name)
{
    for (size_t i = 0; i < s->input_count; i++)
        if (s->inputs[i].name[0] == name)
            return &s->inputs[i];
    return NULL;
}

static rlxvk_tensor packed_operand(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor w = case_tensor(s, inputs, "w");
    const case_input *input = input_named(s, 'w');
    int64_t skip = case_integer(s, "skip", 0);
    return skip && input ? rlxvk_narrow(g, w, 0, skip, input->shape.dims[0] - skip) : w;
}

static rlxvk_tensor build_matmul(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x = case_tensor(s, inputs, "x");
    if (*case_word(s, "as", "")) {
        rlxvk_shape shape = case_shape(s, "as");
        int64_t numel = 1;
        for (uint32_t i = 0; i < shape.rank; i++)
            numel *= shape.dims[i];
        x = rlxvk_narrow(g, x, 0, case_integer(s, "shift", 0), numel);
        x = rlxvk_reshape(g, x, shape);
    }
    return rlxvk_dequant_matmul(g, x, packed_operand(g, s, inputs), format_of(s));
}

static rlxvk_tensor every_row(rlxvk_graph *g, int64_t rows)
{
    rlxvk_tensor result = RLXVK_NONE;
    float *index = malloc(((size_t)rows + 1) * sizeof *index);
    if (!index)
        return result;
    for (int64_t i = 0; i < rows; i++)
        index[i] = (float)i;
    result = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(rows), index, (size_t)rows * sizeof *index);
    free(index);
    return result;
}

static rlxvk_tensor build_gather(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor idx = case_tensor(s, inputs, "idx");
    int64_t k = case_integer(s, "k", case_integer(s, "cols", 0));
    if (!idx.id)
        idx = every_row(g, case_integer(s, "rows", 0));
    return rlxvk_dequant_gather(g, packed_operand(g, s, inputs), idx, format_of(s), k);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    bool product = strcmp(s->row, "dequant_matmul") == 0;
    return product ? build_matmul(g, s, inputs) : build_gather(g, s, inputs);
}

/* ---- Cases ---- */

/* Formats whose decoders differ most get every case; the others get a selection. */
static const uint32_t thorough[] = {QUANT_Q8_0, QUANT_Q4_K, QUANT_Q6_K};

/* Formats from each group of kernels, with and without mins, and with every distance between runs.
 */
static const uint32_t variant_formats[] = {QUANT_Q4_K, QUANT_Q6_K, QUANT_Q8_0,
                                           QUANT_Q5_1, QUANT_Q2_K, QUANT_IQ2_S};

static bool is_thorough(uint32_t type)
{
    for (size_t i = 0; i < sizeof thorough / sizeof *thorough; i++)
        if (thorough[i] == type)
            return true;
    return false;
}

static void add_product(case_list *list, const quant_format *b, int m, int n, int blocks_across,
                        const char *fill)
{
    case_add(list, "dequant_matmul format=%s in=x:f32:%dx%d:%s;w:u8:%dx%d:quant:%s", b->name, m,
             (int)b->block_elements * blocks_across, fill, n, (int)b->block_bytes * blocks_across,
             b->name);
}

/* m takes every row count of the vector kernel and crosses the heights of tiles. n and k cross the
 * sizes of tiles and teams. */
static void generate_products(case_list *list, const quant_format *b)
{
    static const int rows[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 67};
    static const int columns[] = {1, 3, 17, 63, 64, 65, 130, 257};
    static const char *const fills[] = {"integers", "offset", "large", "zero", "one", "positive"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        add_product(list, b, rows[i], columns[i % 8], 1 + (int)i % 3, "uniform");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        add_product(list, b, i % 2 ? 1 : 12, columns[i], b->block_elements == 32 ? 11 : 2, "unit");
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++)
        add_product(list, b, i % 2 ? 2 : 10, 33, 2, fills[i]);
    /* long rows: several steps of a team */
    add_product(list, b, 1, 70, 4096 / (int)b->block_elements, "uniform");
    add_product(list, b, 40, 70, 2048 / (int)b->block_elements, "uniform");
}

static void generate_product_shapes(case_list *list, const quant_format *b)
{
    int e = (int)b->block_elements, s = (int)b->block_bytes;
    const char *f = b->name;
    case_add(list, "dequant_matmul format=%s in=x:f32:%d;w:u8:%dx%d:quant:%s", f, e, 5, s, f);
    case_add(list, "dequant_matmul format=%s in=x:f32:%d;w:u8:%d:quant:%s", f, e, 7 * s, f);
    case_add(list, "dequant_matmul format=%s in=x:f32:2x3x%d;w:u8:2x2x%d:quant:%s", f, e, s, f);
    case_add(list, "dequant_matmul format=%s in=x:f32:1x2x1x3x1x2x1x%d;w:u8:5x%d:quant:%s", f,
             2 * e, 2 * s, f);
    case_add(list, "dequant_matmul format=%s in=x:f32:0x%d;w:u8:5x%d:quant:%s", f, e, s, f);
    case_add(list, "dequant_matmul format=%s in=x:f32:3x%d;w:u8:0x%d:quant:%s", f, e, s, f);
    case_add(list, "dequant_matmul format=%s in=x:f32:3x0;w:u8:5x0:quant:%s", f, f);
    case_add(list, "dequant_matmul format=%s in=x:f32:12x0;w:u8:5x0:quant:%s", f, f);
    case_add(list, "dequant_matmul format=%s skip=2 in=x:f32:2x%d;w:u8:9x%d:quant:%s", f, e, s, f);
    case_add(list, "dequant_matmul format=%s skip=4 in=x:f32:20x%d;w:u8:9x%d:quant:%s", f, e, s, f);
    case_add(list, "dequant_matmul format=%s shift=1 as=3x%d in=x:f32:%d;w:u8:9x%d:quant:%s", f, e,
             3 * e + 1, s, f);
    case_add(list, "dequant_matmul format=%s shift=3 as=9x%d in=x:f32:%d;w:u8:70x%d:quant:%s", f, e,
             9 * e + 3, s, f);
}

static void generate_gathers(case_list *list, const quant_format *b)
{
    static const char *const shapes[] = {"scalar", "1", "5", "3x4", "2x1x3", "1x2x1x2x1x2x2", "0"};
    int e = (int)b->block_elements, s = (int)b->block_bytes;
    const char *f = b->name;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int across = 1; across <= 3; across += 2)
            case_add(list,
                     "dequant_gather format=%s k=%d in=w:u8:13x%d:quant:%s;idx:f32:%s:index:13", f,
                     e * across, s * across, f, shapes[i]);
    for (int n = 1; n <= 40; n += 13)
        case_add(list,
                 "dequant_gather format=%s k=%d in=w:u8:%dx%d:quant:%s;idx:f32:50:badindex:%d", f,
                 e, n, s, f, n);
    case_add(list, "dequant_gather format=%s k=%d in=w:u8:%d:quant:%s;idx:i32:9:index:6", f, 2 * e,
             12 * s, f);
    case_add(list, "dequant_gather format=%s k=%d in=w:u8:0x%d:quant:%s;idx:f32:9:zero", f, e, s,
             f);
    case_add(list, "dequant_gather format=%s k=0 in=w:u8:4x0:quant:%s;idx:f32:9:index:4", f, f);
    case_add(list,
             "dequant_gather format=%s k=%d skip=2 in=w:u8:9x%d:quant:%s;idx:f32:8:badindex:6", f,
             e, s, f);
    case_add(list, "dequant_gather format=%s k=%d rows=64 in=w:u8:64x%d:quant:%s", f, 8 * e, 8 * s,
             f);
}

/* A selection: one row and many, several blocks, an odd number of columns, dequant_gather, and a
 * view, whose byte offset is odd if the block's size is. If few rows share a decoding, each count
 * of rows needs another pipeline, so the formats take turns: 2, 3, or 4, which many rows use, too.
 */
static void generate_selection(case_list *list, const quant_format *b)
{
    const char *f = b->name;
    int across = b->block_elements == 1 ? 45 : 3;
    int e = (int)b->block_elements * across, s = (int)b->block_bytes * across;
    int few = 2 + (int)b->type % 3;
    add_product(list, b, 1, 67, across, "uniform");
    add_product(list, b, few, 5, across, "unit");
    add_product(list, b, 40, 66, across, "uniform");
    case_add(list, "dequant_matmul format=%s skip=4 in=x:f32:%dx%d;w:u8:9x%d:quant:%s", f, few, e,
             s, f);
    case_add(list, "dequant_matmul format=%s in=x:f32:0x%d;w:u8:5x%d:quant:%s", f, e, s, f);
    case_add(list, "dequant_matmul format=%s in=x:f32:%dx0;w:u8:5x0:quant:%s", f, few, f);
    case_add(list, "dequant_gather format=%s k=%d in=w:u8:13x%d:quant:%s;idx:f32:20:badindex:13", f,
             e, s, f);
    case_add(list, "dequant_gather format=%s k=%d skip=4 in=w:u8:9x%d:quant:%s;idx:f32:2x3:index:5",
             f, e, s, f);
}

/* One row, by the kernels that use x as integers. Contents of x have different scales, are tiny, or
 * are zero. */
static void generate_integers(case_list *list, const quant_format *b)
{
    static const char *const variants[] = {"integer_512", "integer_256"};
    static const char *const fills[] = {
        "uniform",        "large", "outliers",     "offset",      "range:-1e-33:1e-33",
        "constant:1e-35", "zero",  "constant:nan", "constant:inf"};
    static const int widths[] = {256, 512, 4352, 14336};
    int block = (int)b->block_elements, bytes = (int)b->block_bytes;
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
            case_add(list,
                     "dequant_matmul variant=dequant_vector=%s format=%s "
                     "in=x:f32:%d:outliers;w:u8:131x%d:quant:%s",
                     variants[v], b->name, widths[i], widths[i] / block * bytes, b->name);
        for (size_t i = v; i < sizeof fills / sizeof *fills; i += 2)
            case_add(list,
                     "dequant_matmul variant=dequant_vector=%s format=%s "
                     "in=x:f32:1x2048:%s;w:u8:33x%d:quant:%s",
                     variants[v], b->name, fills[i], 2048 / block * bytes, b->name);
    }
}

/* Few rows that share a decoding, with x in shared memory: whole and partial passes, and units that
 * do not fill a chunk or a team. */
static void generate_few_rows(case_list *list, const quant_format *b)
{
    static const int rows[] = {2, 3, 5, 7, 8, 9, 13};
    static const int elements[] = {256, 1024, 2304, 8448};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int across = elements[i % 4] / (int)b->block_elements;
        case_add(list,
                 "dequant_matmul variant=dequant_vector=%s format=%s "
                 "in=x:f32:%dx%d;w:u8:%dx%d:quant:%s",
                 i % 3 ? "shared_512" : "shared_four", b->name, rows[i],
                 across * (int)b->block_elements, i % 2 ? 67 : 9, across * (int)b->block_bytes,
                 b->name);
    }
}

/* x begins at an element that is not a multiple of four. Every group of kernels has a case, by rows
 * and by tiles. */
static void generate_odd_places(case_list *list, const quant_format *b)
{
    static const char *const variants[] = {
        "variant=dequant_vector=shared_four shift=1 as=3x512",
        "variant=dequant_vector=shared_512 shift=2 as=9x512", "shift=3 as=1x512",
        ("variant=dequant=tiled,dequant_tile=tiled_32x64 shift=1 "
         "as=9x512")};
    int bytes = 512 / (int)b->block_elements * (int)b->block_bytes;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        case_add(list, "dequant_matmul format=%s %s in=x:f32:4700;w:u8:33x%d:quant:%s", b->name,
                 variants[i], bytes, b->name);
}

/* Sizes on both sides of those of tiles. */
static void generate_tiles(case_list *list, const quant_format *b)
{
    static const char *const variants[] = {"tiled_160x128", "tiled_128x128", "tiled_64x64",
                                           "tiled_32x64", "tiled_16x64"};
    static const int rows[] = {1, 16, 17, 63, 65, 129}, columns[] = {1, 33, 64, 127, 128, 131};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int across = 512 / (int)b->block_elements;
        case_add(list,
                 "dequant_matmul variant=dequant=tiled,dequant_tile=%s format=%s "
                 "in=x:f32:%dx512;w:u8:%dx%d:quant:%s",
                 variants[i % 5], b->name, rows[i], columns[(i * 5 + b->type) % 6],
                 across * (int)b->block_bytes, b->name);
    }
}

/* x at odd offsets, for every way to read it. */
static void generate_odd_offsets(case_list *list, const quant_format *b)
{
    static const char *const variants[] = {"dequant=tiled", "dequant_vector=shared_512",
                                           "dequant_vector=shared_four",
                                           "dequant_vector=integer_512"};
    int across = 512 / (int)b->block_elements;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        int rows = i == 0 ? 33 : i == 3 ? 1 : 2, shift = (int)i % 3 + 1;
        case_add(list,
                 "dequant_matmul variant=%s format=%s shift=%d as=%dx512 "
                 "in=x:f32:%d;w:u8:33x%d:quant:%s",
                 variants[i], b->name, shift, rows, rows * 512 + shift,
                 across * (int)b->block_bytes, b->name);
    }
}

/* For matrix units, if the precision asks for them; otherwise they are ordinary cases. Tiles on
 * both sides of their sizes, units that do not fill a step, and K split and not split. */
static void generate_units(case_list *list, const quant_format *b)
{
    static const char *const variants[] = {"rows_32",    "short",   "rows_16_late", "square",
                                           "short_late", "rows_16", "square"};
    static const int rows[] = {31, 9, 16, 33, 40, 17, 130};
    static const int elements[] = {256, 512, 768, 2304};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int across = elements[(i + b->type) % 4] / (int)b->block_elements;
        across += b->block_elements == 32; /* half a step */
        case_add(list,
                 "dequant_matmul variant=dequant=matrix,matrix_packed=%s format=%s "
                 "in=x:f32:%dx%d;w:u8:%dx%d:quant:%s",
                 variants[i], b->name, rows[i], across * (int)b->block_elements,
                 (int)(i % 3 ? 131 : 64), across * (int)b->block_bytes, b->name);
    }
}

/* The same with weights that are decoded as blocks: rows of whole steps and others, columns that
 * end within a block. */
static void generate_blocks(case_list *list, const quant_format *b)
{
    static const char *const variants[] = {"direct_small", "direct_small", "direct_low", "direct"};
    static const int rows[] = {33, 34, 66, 129}, columns[] = {131, 64, 100, 257};
    static const int elements[] = {512, 256, 2304, 768};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int across = elements[(i + b->type) % 4] / (int)b->block_elements;
        across += b->block_elements == 32 && i % 2; /* half a step */
        case_add(list,
                 "dequant_matmul precision=%s variant=dequant=blocks,matrix=%s format=%s "
                 "in=x:f32:%dx%d;w:u8:%dx%d:quant:%s",
                 i == 2 ? "bf16" : "f16", variants[i], b->name, rows[i],
                 across * (int)b->block_elements, columns[i], across * (int)b->block_bytes,
                 b->name);
    }
}

/* Adds a product of m x k by k x n with weights in registers; `sizes` is m, k, n. If blocks have 32
 * elements, k is not a multiple of the chunk. */
static void add_from_registers(case_list *list, const quant_format *b, const char *form,
                               const char *row, int number, const int sizes[3])
{
    int across = sizes[1] / (int)b->block_elements;
    if (b->block_elements == 32)
        across = number == 0 ? 3 : across + number;
    case_add(list,
             "dequant_matmul variant=dequant=%s,dequant_%s=%s format=%s "
             "in=x:f32:%dx%d;w:u8:%dx%d:quant:%s",
             form, form, row, b->name, sizes[0], across * (int)b->block_elements, sizes[2],
             across * (int)b->block_bytes, b->name);
}

/* The same with weights in registers: partial and full tiles of rows and columns; K shorter than a
 * chunk; and more and fewer chunks than are shared out. */
static void generate_fragments(case_list *list, const quant_format *b)
{
    static const char *const variants[] = {"eight_parts", "four_parts"};
    static const int rows[] = {1, 2, 9, 16, 17, 33}, columns[] = {131, 31, 64, 300, 1, 32};
    static const int elements[] = {256, 2560, 768, 2304};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        add_from_registers(list, b, "fragment", variants[i % 2], (int)i,
                           (int[]){rows[i], elements[(i + b->type) % 4], columns[i]});
}

/* The same for many rows. Panels are partial and full. Columns are fewer than a subgroup takes and
 * more than a workgroup takes. K is shorter than a group, ends with half a group, or is split. */
static void generate_panels(case_list *list, const quant_format *b)
{
    static const char *const variants[] = {"rows_64", "rows_128"};
    static const int rows[] = {1, 65, 130, 200}, columns[] = {300, 31, 131, 257};
    static const int elements[] = {256, 2560, 768, 1280};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        add_from_registers(list, b, "panel", variants[i % 2], (int)i,
                           (int[]){rows[i], elements[(i + b->type) % 4], columns[i]});
}

/* Formats without blocks, in tiles: one tile and several, K longer than a step. */
static void generate_plain_tiles(case_list *list)
{
    static const uint32_t types[] = {QUANT_F32, QUANT_F16, QUANT_BF16};
    static const int rows[] = {130, 17, 33}, columns[] = {65, 131, 64};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const quant_format *b = quant_format_find(types[i]);
        case_add(list,
                 "dequant_matmul variant=dequant=tiled format=%s "
                 "in=x:f32:%dx70:unit;w:u8:%dx%d:quant:%s",
                 b->name, rows[i], columns[i], 70 * (int)b->block_bytes, b->name);
    }
}

static void generate_errors(case_list *list)
{
    static const char *const lines[] = {
        "dequant_matmul expect=E_SHAPE format=q4_k in=x:f32:2x128;w:u8:144:quant:q4_k",
        "dequant_matmul expect=E_LENGTH format=iq3_s in=x:f32:2x256;w:u8:111:bytes",
        "dequant_matmul expect=E_LENGTH format=f16 in=x:f32:2x3;w:u8:7:bytes",
        "dequant_matmul expect=E_UNSUPPORTED format=q8_1 in=x:f32:2x32;w:u8:36:bytes",
        "dequant_matmul expect=E_DTYPE format=mxfp4 in=x:f32:2x32;w:f32:17",
        "dequant_gather expect=E_SHAPE format=nvfp4 k=32 in=w:u8:36:quant:nvfp4;idx:f32:2:index:1",
        "dequant_gather expect=E_UNSUPPORTED format=i8 k=32 in=w:u8:32:bytes;idx:f32:2:index:1",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        case_add(list, "%s", lines[i]);
}

static void generate(case_list *list)
{
    for (uint32_t type = 0; type < QUANT_TYPES; type++) {
        const quant_format *format = quant_format_find(type);
        if (is_thorough(type)) {
            generate_products(list, format);
            generate_product_shapes(list, format);
            generate_gathers(list, format);
        } else if (format && format->weight) {
            generate_selection(list, format);
        }
    }
    for (uint32_t type = 0; type < QUANT_TYPES; type++) {
        const quant_format *format = quant_format_find(type);
        if (format && format->integers) {
            generate_integers(list, format);
            generate_fragments(list, format);
            generate_panels(list, format);
        }
    }
    for (size_t i = 0; i < sizeof variant_formats / sizeof *variant_formats; i++) {
        generate_few_rows(list, quant_format_find(variant_formats[i]));
        generate_odd_places(list, quant_format_find(variant_formats[i]));
        generate_tiles(list, quant_format_find(variant_formats[i]));
        generate_odd_offsets(list, quant_format_find(variant_formats[i]));
        generate_blocks(list, quant_format_find(variant_formats[i]));
        generate_units(list, quant_format_find(variant_formats[i]));
        if (!quant_format_find(variant_formats[i])->integers)
            generate_panels(list, quant_format_find(variant_formats[i]));
    }
    generate_plain_tiles(list);
    generate_errors(list);
}

static const char *const rows[] = {"dequant_matmul", "dequant_gather", NULL};

const case_family dequant_cases = {rows, build, generate};
