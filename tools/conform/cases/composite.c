/*
 * Cases of ops that are built of other ops:
 *   dot_general               contract=A,.. contract_rhs=B,.. batch=.. batch_rhs=..; in=lhs;rhs
 *   lora_matmul               scale; in=x;w;a;b
 *   fused_attention_block     heads, dim; in=x;qkv_w;out_w;mask[;qkv_b;out_b][;cos;sin]
 *   fused_transformer_layer   heads, dim, width, activation (a number); in=x;qkv_w;out_w;g1;fc1_w;
 *                             fc2_w;g2;mask and the biases qkv_b, out_b, b1, fc1_b, fc2_b, b2
 */
#include "conform/cases/cases.h"

#include <string.h>

static rlxvk_tensor build_dot(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    int32_t axes[4][RLXVK_MAX_RANK + 1];
    rlxvk_dot_general_options options = {.lhs_contracting = axes[0],
                                         .rhs_contracting = axes[1],
                                         .lhs_batch = axes[2],
                                         .rhs_batch = axes[3],
                                         .contracting_count =
                                             case_integers(s, "contract", axes[0], COUNT(axes[0])),
                                         .batch_count =
                                             case_integers(s, "batch", axes[2], COUNT(axes[2]))};
    case_integers(s, "contract_rhs", axes[1], COUNT(axes[1]));
    case_integers(s, "batch_rhs", axes[3], COUNT(axes[3]));
    return rlxvk_dot_general(g, case_tensor(s, inputs, "lhs"), case_tensor(s, inputs, "rhs"),
                             s->pair_count ? &options : NULL);
}

static rlxvk_tensor build_block(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_attention_block block = {.hidden = case_tensor(s, inputs, "x"),
                                   .qkv_w = case_tensor(s, inputs, "qkv_w"),
                                   .out_w = case_tensor(s, inputs, "out_w"),
                                   .mask = case_tensor(s, inputs, "mask"),
                                   .qkv_b = case_tensor(s, inputs, "qkv_b"),
                                   .out_b = case_tensor(s, inputs, "out_b"),
                                   .cos = case_tensor(s, inputs, "cos"),
                                   .sin = case_tensor(s, inputs, "sin"),
                                   .num_heads = case_integer(s, "heads", 2),
                                   .head_dim = case_integer(s, "dim", 8)};
    return rlxvk_fused_attention_block(g, &block);
}

static rlxvk_tensor build_layer(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_transformer_layer layer = {.hidden = case_tensor(s, inputs, "x"),
                                     .qkv_w = case_tensor(s, inputs, "qkv_w"),
                                     .qkv_b = case_tensor(s, inputs, "qkv_b"),
                                     .out_w = case_tensor(s, inputs, "out_w"),
                                     .out_b = case_tensor(s, inputs, "out_b"),
                                     .ln1_g = case_tensor(s, inputs, "g1"),
                                     .ln1_b = case_tensor(s, inputs, "b1"),
                                     .fc1_w = case_tensor(s, inputs, "fc1_w"),
                                     .fc1_b = case_tensor(s, inputs, "fc1_b"),
                                     .fc2_w = case_tensor(s, inputs, "fc2_w"),
                                     .fc2_b = case_tensor(s, inputs, "fc2_b"),
                                     .ln2_g = case_tensor(s, inputs, "g2"),
                                     .ln2_b = case_tensor(s, inputs, "b2"),
                                     .mask = case_tensor(s, inputs, "mask"),
                                     .num_heads = case_integer(s, "heads", 2),
                                     .head_dim = case_integer(s, "dim", 8),
                                     .intermediate_size = case_integer(s, "width", 24),
                                     .eps1 = 1e-5f,
                                     .eps2 = 1e-6f,
                                     .activation =
                                         (rlxvk_activation)case_integer(s, "activation", 0)};
    return rlxvk_fused_transformer_layer(g, &layer);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    if (strcmp(s->row, "dot_general") == 0)
        return build_dot(g, s, inputs);
    if (strcmp(s->row, "fused_attention_block") == 0)
        return build_block(g, s, inputs);
    if (strcmp(s->row, "fused_transformer_layer") == 0)
        return build_layer(g, s, inputs);
    return rlxvk_lora_matmul(g, case_tensor(s, inputs, "x"), case_tensor(s, inputs, "w"),
                             case_tensor(s, inputs, "a"), case_tensor(s, inputs, "b"),
                             (float)case_real(s, "scale", 1));
}

static const char *const dots[] = {
    "contract=1 contract_rhs=0 in=lhs:f32:5x7;rhs:f32:7x9",
    "contract=-1 contract_rhs=-2 in=lhs:f32:5x7;rhs:f32:7x9",
    "contract=0 contract_rhs=0 in=lhs:f32:7x5;rhs:f32:7x9",
    "contract=1 contract_rhs=1 in=lhs:f32:5x7;rhs:f32:9x7",
    "contract=0 contract_rhs=1 in=lhs:f32:7x5;rhs:f32:9x7",
    "contract=1 contract_rhs=1 batch=0 batch_rhs=0 in=lhs:f32:2x3x1:one;rhs:f32:2x3x1:one",
    "contract=2 contract_rhs=1 batch=0 batch_rhs=0 in=lhs:f32:4x5x6;rhs:f32:4x6x7",
    "contract=2 contract_rhs=2 batch=0 batch_rhs=0 in=lhs:f32:4x5x6;rhs:f32:4x7x6",
    "contract=1 contract_rhs=2 batch=0 batch_rhs=0 in=lhs:f32:4x6x5;rhs:f32:4x7x6",
    "contract=0 contract_rhs=0 batch=2 batch_rhs=1 in=lhs:f32:6x5x4;rhs:f32:6x4x7",
    "contract=3,1 contract_rhs=0,2 in=lhs:f32:2x3x4x5;rhs:f32:5x6x3",
    "contract=1,3 contract_rhs=2,0 in=lhs:f32:2x3x4x5;rhs:f32:5x6x3",
    "contract=2,3 contract_rhs=0,1 in=lhs:f32:2x3x4x5;rhs:f32:4x5x6",
    "contract=0,1 contract_rhs=0,1 in=lhs:f32:4x5x3;rhs:f32:4x5x6",
    "contract=3,2 contract_rhs=1,0 in=lhs:f32:2x3x4x5;rhs:f32:4x5x6",
    "contract=0,1,2 contract_rhs=0,1,2 in=lhs:f32:4x5x3;rhs:f32:4x5x3",
    "batch=1,0 batch_rhs=0,2 contract=2 contract_rhs=1 in=lhs:f32:2x3x4;rhs:f32:3x4x2",
    "batch=0,1 batch_rhs=0,1 in=lhs:f32:2x3x4;rhs:f32:2x3x5",
    "batch=0,1 batch_rhs=1,0 in=lhs:f32:2x3;rhs:f32:3x2",
    "in=lhs:f32:3x4;rhs:f32:2x5",
    "in=lhs:f32:scalar;rhs:f32:scalar",
    "in=lhs:f32:scalar;rhs:f32:6",
    "contract=0 contract_rhs=0 in=lhs:f32:300;rhs:f32:300",
    "contract=1 contract_rhs=0 in=lhs:f32:5x0;rhs:f32:0x9",
    "contract=1 contract_rhs=0 in=lhs:f32:0x5;rhs:f32:5x9",
    "contract=0,7 contract_rhs=3,0 in=lhs:f32:2x1x3x1x2x1x2x3;rhs:f32:3x1x4x2",
    "contract=1 contract_rhs=0 in=lhs:f32:70x130;rhs:f32:130x65",
    "contract=1 contract_rhs=0 in=lhs:f32:5x7;rhs:f16:7x9",
    "contract=1 contract_rhs=0 in=lhs:f32:5x7:special;rhs:f32:7x9",
    "expect=E_SHAPE contract=1 contract_rhs=0 in=lhs:f32:5x7;rhs:f32:6x9",
    "expect=E_AXIS contract=2 contract_rhs=0 in=lhs:f32:5x7;rhs:f32:7x9",
    "expect=E_AXIS contract=1,1 contract_rhs=0,1 in=lhs:f32:7x7;rhs:f32:7x7",
    "expect=E_AXIS contract=1 contract_rhs=0 batch=1 batch_rhs=1 in=lhs:f32:7x7;rhs:f32:7x7",
    "expect=E_ATTR contract=0,1,0 contract_rhs=0,1,0 in=lhs:f32:7x7;rhs:f32:7x7",
    "expect=E_SHAPE batch=0 batch_rhs=0 in=lhs:f32:1x1x1x1x1;rhs:f32:1x1x1x1x1x1",
    "expect=E_DTYPE contract=1 contract_rhs=0 in=lhs:u8:5x7:bytes;rhs:f32:7x9",
    "expect=E_ARITY contract=1 contract_rhs=0 in=lhs:f32:5x7",
};

static const char *const loras[] = {
    "within=2e-6 in=x:f32:5x33;w:f32:33x17;a:f32:33x4;b:f32:4x17",
    "within=2e-6 scale=0.5 in=x:f32:1x64;w:f32:64x65;a:f32:64x1;b:f32:1x65",
    "within=2e-6 scale=-2 in=x:f32:2x3x40;w:f32:40x7;a:f32:40x4;b:f32:4x7",
    "within=2e-6 scale=2 in=x:f32:40;w:f32:40x7;a:f32:40x4;b:f32:4x7",
    "within=2e-6 in=x:f32:9x40;w:f32:40x7;a:f32:40x0;b:f32:0x7",
    "within=2e-6 scale=0 in=x:f32:9x40;w:f32:40x7;a:f32:40x3;b:f32:3x7",
    "within=2e-6 scale=3 in=x:f32:9x40;w:f16:40x7;a:bf16:40x3;b:f16:3x7",
    ("within=2e-6 scale=3 in=x:f32:9x40:integers;w:f32:40x7:integers;a:f32:40x1:integers;"
     "b:f32:1x7:integers"),
    "within=2e-6 in=x:f32:130x64:unit;w:f32:64x130:unit;a:f32:64x16:unit;b:f32:16x130:unit",
    "in=x:f32:0x40;w:f32:40x7;a:f32:40x3;b:f32:3x7",
    "in=x:f32:3x0;w:f32:0x7;a:f32:0x3;b:f32:3x7",
    "in=x:f32:3x4;w:f32:4x0;a:f32:4x3;b:f32:3x0",
    "expect=E_SHAPE in=x:f32:9x40;w:f32:41x7;a:f32:40x3;b:f32:3x7",
    "expect=E_SHAPE in=x:f32:9x40;w:f32:40x7;a:f32:41x3;b:f32:3x7",
    "expect=E_SHAPE in=x:f32:9x40;w:f32:40x7;a:f32:40x3;b:f32:4x7",
    "expect=E_SHAPE in=x:f32:9x40;w:f32:40x7;a:f32:40x3;b:f32:3x8",
    "expect=E_SHAPE in=x:f32:scalar;w:f32:40x7;a:f32:40x3;b:f32:3x7",
    "expect=E_DTYPE in=x:f32:9x40;w:u8:40x7:bytes;a:f32:40x3;b:f32:3x7",
    "expect=E_ARITY in=x:f32:9x40;w:f32:40x7;a:f32:40x3",
};

#define BLOCK   "in=x:f32:2x9x16:unit;qkv_w:f32:16x48:unit;out_w:f32:16x16:unit"
#define BIASES  ";qkv_b:f32:48;out_b:f32:16"
#define TABLES  ";cos:f32:9x4:unit;sin:f32:9x4:unit"
#define PADDING ";mask:f32:2x9:bool"

static const char *const blocks[] = {
    "within=1e-4 " BLOCK PADDING,
    "within=1e-4 " BLOCK PADDING BIASES,
    "within=1e-4 " BLOCK PADDING TABLES,
    "within=1e-4 " BLOCK PADDING BIASES TABLES,
    "within=1e-4 " BLOCK ";mask:f32:9:one" BIASES,
    "within=1e-4 " BLOCK ";mask:f32:2x9x9:bool" BIASES,
    "within=1e-4 " BLOCK ";mask:f32:1x2x9x9:bool" BIASES,
    "within=1e-4 " BLOCK ";mask:f32:2x9:zero" BIASES,
    "within=1e-4 heads=3 dim=5 in=x:f32:1x20x7:unit;qkv_w:f32:7x45:unit;out_w:f32:15x11:unit;"
    "mask:f32:20:one",
    "within=1e-4 heads=1 dim=64 in=x:f32:2x70x32:unit;qkv_w:f16:32x192:unit;out_w:f16:64x32:unit;"
    "mask:f32:2x70:bool",
    "heads=2 dim=8 in=x:f32:0x9x16;qkv_w:f32:16x48;out_w:f32:16x16;mask:f32:0x9",
    "expect=E_ARITY " BLOCK,
    "expect=E_ARITY " BLOCK PADDING ";qkv_b:f32:48",
    "expect=E_ARITY " BLOCK PADDING ";cos:f32:9x4",
    "expect=E_SHAPE heads=3 " BLOCK PADDING,
    "expect=E_SHAPE " BLOCK ";mask:f32:2x8:bool",
    "expect=E_ATTR heads=-2 " BLOCK PADDING,
    "expect=E_SHAPE in=x:f32:9x16;qkv_w:f32:16x48;out_w:f32:16x16;mask:f32:1x9",
    "expect=E_UNSUPPORTED heads=1 dim=600 in=x:f32:1x2x3;qkv_w:f32:3x1800;out_w:f32:600x3;"
    "mask:f32:1x2",
};

#define LAYER BLOCK ";g1:f32:16:positive;fc1_w:f32:16x24:unit;fc2_w:f32:24x16:unit;g2:f32:16"
#define BETAS ";b1:f32:16;fc1_b:f32:24;fc2_b:f32:16;b2:f32:16"

static const char *const layers[] = {
    "within=2e-4 " LAYER PADDING,
    "within=2e-4 activation=1 " LAYER PADDING,
    "within=2e-4 activation=2 " LAYER PADDING BIASES BETAS,
    "within=2e-4 activation=3 " LAYER PADDING BIASES BETAS,
    "within=2e-4 activation=4 " LAYER PADDING,
    "within=2e-4 activation=17 " LAYER ";mask:f32:2x9:zero" BIASES BETAS,
    "expect=E_ARITY " LAYER PADDING BIASES,
    "expect=E_ARITY " LAYER,
    "expect=E_SHAPE width=23 " LAYER PADDING,
    "expect=E_ATTR activation=99 " LAYER PADDING,
    "expect=E_SHAPE heads=1 " LAYER PADDING,
};

static void generate(case_list *list)
{
    case_add_all(list, "dot_general", dots, COUNT(dots));
    case_add_all(list, "lora_matmul", loras, COUNT(loras));
    case_add_all(list, "fused_attention_block", blocks, COUNT(blocks));
    case_add_all(list, "fused_transformer_layer", layers, COUNT(layers));
}

static const char *const rows[] = {"dot_general", "lora_matmul", "fused_attention_block",
                                   "fused_transformer_layer", NULL};

const case_family composite_cases = {rows, build, generate};
