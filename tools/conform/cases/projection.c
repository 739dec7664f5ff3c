/*
 * Cases of projection: in=x;w;gamma;residual; gate=first|second, eps. If format=NAME is given, w is
 * packed. shift=N drops the first N indices of axis 0 of x, gamma and residual by views.
 */
#include "conform/cases/cases.h"
#include "op/packed/quant_format.h"

#include <stdio.h>
#include <string.h>

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    const char *gate = case_word(s, "gate", "none"), *name = case_word(s, "format", "");
    const quant_format *format = quant_format_find_name(name);
    rlxvk_tensor parts[3];
    static const char *const roles[] = {"x", "gamma", "residual"};
    for (size_t i = 0; i < 3; i++) {
        parts[i] = case_tensor(s, inputs, roles[i]);
        if (parts[i].id)
            parts[i] = case_shifted(g, s, "shift", parts[i]);
    }
    rlxvk_projection_options o = {.packed = *name != 0,
                                  .format = format ? (rlxvk_quant_format)format->type : 0,
                                  .gamma = parts[1],
                                  .epsilon = (float)case_real(s, "eps", 1e-5),
                                  .residual = parts[2],
                                  .gate = strcmp(gate, "first") == 0    ? RLXVK_GATE_FIRST
                                          : strcmp(gate, "second") == 0 ? RLXVK_GATE_SECOND
                                                                        : RLXVK_GATE_NONE};
    return rlxvk_projection(g, parts[0], case_tensor(s, inputs, "w"), &o);
}

/* Bits for the parts: norm, residual, a gate, and whether the gate comes first. */
enum { NORM = 1, RESIDUAL = 2, GATED = 4, GATE_FIRST = 8 };

/* `w`: its dtype, dims and fill; n: its rows. `more` is written before the inputs. */
static void add(case_list *list, unsigned parts, const char *more, int rows, int n, int k,
                const char *fill, const char *w)
{
    char gamma[64] = "", residual[64] = "";
    int columns = parts & GATED ? n / 2 : n;
    if (parts & NORM)
        snprintf(gamma, sizeof gamma, ";gamma:f32:%d", k);
    if (parts & RESIDUAL)
        snprintf(residual, sizeof residual, ";residual:f32:%dx%d", rows, columns);
    const char *gate = !(parts & GATED)     ? "gate=none"
                       : parts & GATE_FIRST ? "gate=first"
                                            : "gate=second";
    case_add(list, "projection %s %s in=x:f32:%dx%d:%s;w:%s%s%s", gate, more, rows, k, fill, w,
             gamma, residual);
}

static void add_packed(case_list *list, unsigned parts, const char *variant, const quant_format *f,
                       int rows, int n, int across, const char *fill)
{
    char more[96], w[96];
    snprintf(more, sizeof more, "%s format=%s", variant, f->name);
    int row_bytes = across * (int)f->block_bytes;
    snprintf(w, sizeof w, "u8:%dx%d:quant:%s", n, row_bytes, f->name);
    add(list, parts, more, rows, n, across * (int)f->block_elements, fill, w);
}

static void add_plain(case_list *list, unsigned parts, const char *dtype, int rows, int n, int k,
                      const char *fill)
{
    char w[64];
    snprintf(w, sizeof w, "%s:%dx%d", dtype, n, k);
    add(list, parts, "", rows, n, k, fill, w);
}

static const unsigned combinations[] = {NORM,
                                        RESIDUAL,
                                        NORM | RESIDUAL,
                                        GATED,
                                        NORM | GATED | GATE_FIRST,
                                        NORM | GATED,
                                        RESIDUAL | GATED | GATE_FIRST,
                                        NORM | RESIDUAL | GATED};
#define COMBINATIONS (sizeof combinations / sizeof *combinations)

/* Every class of the kernels, and rows that a team does not fill. */
static void generate_variants(case_list *list)
{
    static const char *const names[] = {"alone",      "integer_256", "integer_512",
                                        "staged_8",   "staged_16",   "staged_32",
                                        "staged_512", "staged_256",  "staged_128"};
    static const uint32_t types[] = {QUANT_Q4_K, QUANT_Q6_K, QUANT_Q8_0};
    char variant[64];
    for (size_t v = 0; v < sizeof names / sizeof *names; v++)
        for (size_t i = 0; i < 3; i++) {
            const quant_format *f = quant_format_find(types[(v + i) % 3]);
            snprintf(variant, sizeof variant, "variant=dequant_vector=%s", names[v]);
            int across = (v % 2 ? 4096 : 768) / (int)f->block_elements;
            add_packed(list, combinations[(i ? 4 + i : v) % COMBINATIONS], variant, f, 1,
                       v % 3 ? 66 : 258, across, "uniform");
        }
}

static void generate_formats(case_list *list)
{
    static const char *const fills[] = {"uniform", "offset", "large", "zero", "outliers"};
    size_t count = 0;
    for (uint32_t type = 0; type < QUANT_TYPES; type++) {
        const quant_format *f = quant_format_find(type);
        if (!f || !f->weight)
            continue;
        int across = f->block_elements == 1 ? 44 : 3;
        add_packed(list, combinations[count % COMBINATIONS], "", f, 1, 34, across,
                   fills[count % 5]);
        if (count++ % 8 == 0)
            add_packed(list, combinations[5], "", f, 2, 10, across, "uniform");
    }
}

static void generate_plain(case_list *list)
{
    static const char *const dtypes[] = {"f32", "f16", "bf16"};
    static const int widths[] = {4, 64, 100, 1028, 4096};
    for (size_t i = 0; i < 3; i++)
        for (size_t c = 0; c < COMBINATIONS; c++) {
            add_plain(list, combinations[c], dtypes[i], 1, c % 2 ? 1024 : 130, widths[(c + i) % 5],
                      c == 5 ? "offset" : "uniform");
            add_plain(list, combinations[c], dtypes[i], c % 2 ? 3 : 1, 6, 7, "uniform");
        }
}

static void generate(case_list *list)
{
    static const char *const lines[] = {
        "projection in=x:f32:1x8;w:f32:6x8",
        "projection in=x:f32:8;w:f32:6x8;gamma:f32:8;residual:f32:6",
        "projection shift=1 in=x:f32:2x64;w:f32:1026x64;gamma:f32:65;residual:f32:2x1026",
        "projection format=q4_k in=x:f32:256;w:u8:5x144:quant:q4_k;gamma:f32:256",
        "projection eps=0 in=x:f32:1x8:zero;w:f32:6x8;gamma:f32:8",
        "projection in=x:f32:1x64:range:-1e25:1e25;w:f32:6x64;gamma:f32:64",
        "projection in=x:f32:1x4096:range:-1e18:1e18;w:f16:300x4096;gamma:f32:4096",
        "projection eps=0 in=x:f32:1x4096:range:-1e18:1e18;w:bf16:300x4096;gamma:f32:4096",
        "projection eps=0 in=x:f32:1x64:range:-1e-25:1e-25;w:f32:6x64;gamma:f32:64",
        "projection eps=0 format=q8_0 in=x:f32:1x96:range:-1e25:1e25;w:u8:6x102:quant:q8_0;"
        "gamma:f32:96",
        "projection gate=first format=q4_k in=x:f32:1x512:range:-1e25:1e25;"
        "w:u8:6x288:quant:q4_k;gamma:f32:512",
        "projection format=q8_0 in=x:f32:1x32:constant:inf;w:u8:2x34:quant:q8_0;gamma:f32:32",
        "projection format=q8_0 in=x:f32:1x32;w:u8:0x34:quant:q8_0;gamma:f32:32",
        "projection gate=first in=x:f32:0x8;w:f32:6x8;gamma:f32:8",
        "projection expect=E_SHAPE gate=first in=x:f32:1x8;w:f32:5x8",
        "projection expect=E_SHAPE in=x:f32:1x8;w:f32:6x9",
        "projection expect=E_SHAPE in=x:f32:1x8;w:f32:6x8;gamma:f32:7",
        "projection expect=E_SHAPE in=x:f32:1x8;w:f32:6x8;residual:f32:6",
        "projection expect=E_ATTR eps=-1 in=x:f32:1x8;w:f32:6x8;gamma:f32:8",
        "projection expect=E_DTYPE in=x:f32:1x8;w:i32:6x8",
        "projection expect=E_DTYPE format=q8_0 in=x:f32:1x32;w:f32:2x34",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        case_add(list, "%s", lines[i]);
    generate_variants(list);
    generate_formats(list);
    generate_plain(list);
}

static const char *const rows[] = {"projection", NULL};
const case_family projection_cases = {rows, build, generate};
