/* The cases that `rlxvk bench` measures, for GPUs and for software drivers. */
#include "bench/bench.h"

#define QUANT_CASES(M, N, K, Q8, K4, K6)                                                           \
    {"dequant_matmul q4_K " #M "x" #N "x" #K,                                                      \
     "dequant_matmul format=q4_k in=x:f32:" #M "x" #K ";w:u8:" #N "x" #K4 ":quant:q4_k"},          \
        {"dequant_matmul q6_K " #M "x" #N "x" #K,                                                  \
         "dequant_matmul format=q6_k in=x:f32:" #M "x" #K ";w:u8:" #N "x" #K6 ":quant:q6_k"},      \
    {                                                                                              \
        "dequant_matmul q8_0 " #M "x" #N "x" #K,                                                   \
            "dequant_matmul format=q8_0 in=x:f32:" #M "x" #K ";w:u8:" #N "x" #Q8 ":quant:q8_0"     \
    }
#define DEQUANT_IN(PRECISION, LABEL, FORMAT, M, N, K, BYTES)                                       \
    {                                                                                              \
        "dequant " LABEL " " #M "x" #N "x" #K " in " PRECISION,                                    \
            "dequant_matmul precision=" PRECISION " format=" FORMAT " in=x:f32:" #M "x" #K         \
            ";w:u8:" #N "x" #BYTES ":quant:" FORMAT                                                \
    }
#define IN_F16(LABEL, FORMAT, M, N, K, BYTES) DEQUANT_IN("f16", LABEL, FORMAT, M, N, K, BYTES)
#define PRODUCT_IN(PRECISION, M, N, K)                                                             \
    {                                                                                              \
        "matmul " PRECISION " " #M "x" #N "x" #K ", f32 operands",                                 \
            "matmul precision=" PRECISION " in=a:f32:" #M "x" #K ";b:f32:" #K "x" #N               \
    }
#define PRODUCT_IN_HALVES(M, N, K) PRODUCT_IN("f16", M, N, K), PRODUCT_IN("bf16", M, N, K)
#define SQUARE(N)                                                                                  \
    {                                                                                              \
        "matmul f32 " #N, "matmul in=a:f32:" #N "x" #N ";b:f32:" #N "x" #N                         \
    }
#define PRODUCT(M, N, K)                                                                           \
    {                                                                                              \
        "matmul f32 " #M "x" #N "x" #K, "matmul in=a:f32:" #M "x" #K ";b:f32:" #K "x" #N           \
    }
#define ROWS(R, C)                                                                                 \
    {"softmax " #R "x" #C, "softmax axis=-1 in=x:f32:" #R "x" #C},                                 \
        {"layer_norm " #R "x" #C,                                                                  \
         "layer_norm eps=1e-5 in=x:f32:" #R "x" #C ";gamma:f32:" #C ";beta:f32:" #C},              \
        {"rms_norm " #R "x" #C, "rms_norm eps=1e-5 in=x:f32:" #R "x" #C ";gamma:f32:" #C},         \
    {                                                                                              \
        "reduce_sum " #R "x" #C, "reduce_sum axes=-1 in=x:f32:" #R "x" #C                          \
    }
#define BACKWARD(NORM, R, C)                                                                       \
    {NORM "_backward_input " #R "x" #C,                                                            \
     NORM "_backward_input in=x:f32:" #R "x" #C ";gamma:f32:" #C ";dy:f32:" #R "x" #C},            \
    {                                                                                              \
        NORM "_backward_parameters " #R "x" #C,                                                    \
            NORM "_backward_parameters in=x:f32:" #R "x" #C ";dy:f32:" #R "x" #C                   \
    }
#define ATTENTION(LABEL, MASK, H, HKV, Q, K, D)                                                    \
    {                                                                                              \
        "attention " LABEL,                                                                        \
            "attention layout=bhsd mask=" MASK " in=q:f32:1x" #H "x" #Q "x" #D                     \
            ":unit;k:f32:1x" #HKV "x" #K "x" #D ":unit;v:f32:1x" #HKV "x" #K "x" #D                \
    }
/* A decode step of 32 heads, with 8 heads in the cache. */
#define STEP(R, AT)     STEP_OVER("f32", "", R, AT)
#define STEP_F16(R, AT) STEP_OVER("f16", " in f16", R, AT)
#define STEP_OVER(TYPE, LABEL, R, AT)                                                              \
    {                                                                                              \
        "attention_step 32 heads (8 kv) row " #AT " of " #R "x128" LABEL,                          \
            "attention_step heads=32 kv_heads=8 head_dim=128 n_rot=128 style=gptj at=" #AT         \
            " in=q:f32:1x1x4096:unit;k:f32:1x1x1024:unit;v:f32:1x1x1024:unit;"                     \
            "keys:" TYPE ":8x" #R "x128:unit;values:" TYPE ":8x" #R                                \
            "x128:unit;cos:f32:1x64:unit;sin:f32:1x64:unit"                                        \
    }
/* Both passes in one graph. They share as much as they can. */
#define ATTENTION_AND_GRADIENT(SHAPE)                                                              \
    {                                                                                              \
        "attention and gradient causal " SHAPE,                                                    \
            "attention gradient=beside layout=bhsd mask=causal in=q:f32:" SHAPE                    \
            ":unit;k:f32:" SHAPE ":unit;v:f32:" SHAPE ":unit;dy:f32:" SHAPE ":unit"                \
    }

/* Eight ops on N elements, as one kernel and as eight. */
#define CHAIN(LABEL, REGIONS, STEPS, N)                                                            \
    {                                                                                              \
        LABEL " on " #N ", " REGIONS,                                                              \
            "elementwise_chain " STEPS " in=x:f32:" #N ";a:f32:1;b:f32:1"                          \
    }
#define SUMS "steps=mul:i0:i1,add:s0:i2,relu:s1,sub:s2:i1,abs:s3,min:s4:i2,neg:s5 more=mul:s6:i2"
#define CURVES                                                                                     \
    "steps=mul:i0:i1,gelu:s0,add:s1:i0,tanh:s2,mul:s3:i2 more=silu:s4,add:s5:i1,sigmoid:s6"
#define CHAINS(N)                                                                                  \
    CHAIN("chain of 8", "one kernel", SUMS, N),                                                    \
        CHAIN("chain of 8", "eight kernels", "regions=0 " SUMS, N),                                \
        CHAIN("chain of 8 with 4 curves", "one kernel", CURVES, N),                                \
        CHAIN("chain of 8 with 4 curves", "eight kernels", "regions=0 " CURVES, N)

const bench_case bench_gpu_cases[] = {
    {"copy 67108864", "copy in=x:f32:67108864"},
    {"add 67108864", "add in=a:f32:67108864;b:f32:67108864"},
    CHAINS(67108864),
    {"transpose 4096x4096", "transpose perm=1,0 in=x:f32:4096x4096"},
    {"gather 65536 rows of 1024", "gather axis=0 in=x:f32:32000x1024;idx:f32:65536:index:32000"},
    ROWS(4096, 4096),
    ROWS(32768, 1024),
    {"argmax 512x32000", "argmax axis=-1 in=x:f32:512x32000"},
    {"cumsum 2000000", "cumsum axis=0 in=x:f32:2000000"},
    {"cumsum 2048x320", "cumsum axis=-1 in=x:f32:2048x320"},
    SQUARE(1024),
    SQUARE(2048),
    SQUARE(4096),
    SQUARE(8192),
    PRODUCT_IN_HALVES(512, 14336, 4096),
    PRODUCT_IN_HALVES(512, 4096, 14336),
    PRODUCT_IN_HALVES(1500, 5120, 1280),
    PRODUCT_IN_HALVES(16384, 1024, 1024),
    PRODUCT_IN_HALVES(2048, 32000, 2048),
    PRODUCT_IN_HALVES(32, 4096, 4096),
    PRODUCT_IN_HALVES(631, 4096, 4096),
    {"matmul f16 weight 4096", "matmul in=a:f32:4096x4096;b:f16:4096x4096"},
    {"matmul f16 4096", "matmul precision=f16 in=a:f16:4096x4096;b:f16:4096x4096"},
    {"matmul f16 8192", "matmul precision=f16 in=a:f16:8192x8192;b:f16:8192x8192"},
    {"matmul f16 8192, f32 operands", "matmul precision=f16 in=a:f32:8192x8192;b:f32:8192x8192"},
    {"matmul bf16 8192", "matmul precision=bf16 in=a:bf16:8192x8192;b:bf16:8192x8192"},
    {"matmul bf16 4096", "matmul precision=bf16 in=a:bf16:4096x4096;b:bf16:4096x4096"},
    {"matmul split 4096", "matmul precision=split in=a:f32:4096x4096;b:f32:4096x4096"},
    IN_F16("q4_K", "q4_k", 512, 4096, 14336, 8064),
    DEQUANT_IN("bf16", "q4_K", "q4_k", 512, 4096, 14336, 8064),
    IN_F16("q4_K", "q4_k", 1024, 4096, 14336, 8064),
    IN_F16("q4_K", "q4_k", 4096, 4096, 14336, 8064),
    IN_F16("q4_K", "q4_k", 4096, 28672, 4096, 2304),
    IN_F16("q6_K", "q6_k", 4096, 4096, 14336, 11760),
    IN_F16("q8_0", "q8_0", 512, 4096, 14336, 15232),
    IN_F16("q4_K", "q4_k", 512, 4096, 4096, 2304),
    IN_F16("q4_K", "q4_k", 512, 28672, 4096, 2304),
    IN_F16("q6_K", "q6_k", 512, 4096, 14336, 11760),
    IN_F16("q4_K", "q4_k", 16, 4096, 4096, 2304),
    IN_F16("q4_K", "q4_k", 16, 4096, 14336, 8064),
    IN_F16("q4_K", "q4_k", 16, 28672, 4096, 2304),
    IN_F16("q6_K", "q6_k", 16, 4096, 14336, 11760),
    IN_F16("q4_K", "q4_k", 32, 4096, 14336, 8064),
    IN_F16("q4_0", "q4_0", 512, 4096, 14336, 8064),
    IN_F16("q4_0", "q4_0", 16, 4096, 14336, 8064),
    IN_F16("iq4_xs", "iq4_xs", 512, 4096, 14336, 7616),
    IN_F16("q2_K", "q2_k", 512, 4096, 14336, 4704),
    IN_F16("iq2_s", "iq2_s", 512, 4096, 14336, 4592),
    {"matvec f32 4096x14336", "matmul transpose_b=1 in=a:f32:1x14336;b:f32:4096x14336"},
    {"matvec f16 4096x14336", "matmul transpose_b=1 in=a:f32:1x14336;b:f16:4096x14336"},
    {"matvec f32 128256x4096", "matmul transpose_b=1 in=a:f32:1x4096;b:f32:128256x4096"},
    {"matvec f16 128256x4096", "matmul transpose_b=1 in=a:f32:1x4096;b:f16:128256x4096"},
    QUANT_CASES(1, 4096, 14336, 15232, 8064, 11760),
    QUANT_CASES(1, 14336, 4096, 4352, 2304, 3360),
    QUANT_CASES(1, 128256, 4096, 4352, 2304, 3360),
    QUANT_CASES(4, 4096, 14336, 15232, 8064, 11760),
    QUANT_CASES(16, 4096, 14336, 15232, 8064, 11760),
    QUANT_CASES(512, 4096, 14336, 15232, 8064, 11760),
    ATTENTION("causal 1x32x2048x128", "causal", 32, 32, 2048, 2048, 128),
    {"attention f16 causal 1x32x2048x128",
     "attention precision=f16 layout=bhsd mask=causal in=q:f32:1x32x2048x128:unit;"
     "k:f32:1x32x2048x128:unit;v:f32:1x32x2048x128"},
    ATTENTION("decode 32 heads (8 kv) 32768x128", "none", 32, 8, 1, 32768, 128),
    ATTENTION("causal 1x32x4096x128 (8 kv)", "causal", 32, 8, 4096, 4096, 128),
    ATTENTION("causal 1x32x8192x128", "causal", 32, 32, 8192, 8192, 128),
    ATTENTION("1x192x197x64", "none", 192, 192, 197, 197, 64),
    ATTENTION("1x16x4096x80", "none", 16, 16, 4096, 4096, 80),
    ATTENTION("causal 1x128x1024x64", "causal", 128, 128, 1024, 1024, 64),
    ATTENTION("decode 64 heads (8 kv) 7680x64", "none", 64, 8, 1, 7680, 64),
    ATTENTION("decode 32 heads (8 kv) 256x128", "none", 32, 8, 1, 256, 128),
    STEP(256, 255),
    STEP(4096, 1023),
    STEP(8192, 8191),
    STEP(32768, 32767),
    STEP_F16(8192, 8191),
    STEP_F16(32768, 32767),
    ATTENTION("8 heads, 64 queries of 16384x128", "causal", 8, 8, 64, 16384, 128),
    /* Gradients. */
    BACKWARD("layer_norm", 4096, 4096),
    BACKWARD("rms_norm", 32768, 1024),
    {"activation_backward gelu 67108864",
     "activation_backward kind=gelu in=x:f32:67108864;dy:f32:67108864"},
    {"softmax_backward 4096x4096", "softmax_backward axis=-1 in=y:f32:4096x4096;dy:f32:4096x4096"},
    {"cross entropy 4096x32000",
     "softmax_cross_entropy in=logits:f32:4096x32000;labels:f32:4096:index:32000"},
    {"cross entropy backward 4096x32000",
     "softmax_cross_entropy_backward "
     "in=logits:f32:4096x32000;labels:f32:4096:index:32000;dloss:f32:4096"},
    {"group_norm_backward 8x512x64x64, 32 groups",
     "group_norm_backward_input groups=32 "
     "in=x:f32:8x512x64x64;gamma:f32:512;dy:f32:8x512x64x64"},
    {"group_norm gradient 8x512x64x64, 32 groups",
     "group_norm gradient=alone groups=32 "
     "in=x:f32:8x512x64x64;gamma:f32:512;beta:f32:512;dy:f32:8x512x64x64"},
    {"gather_backward 65536 rows of 1024 to 32000",
     "gather_backward axis=0 dim=32000 in=dy:f32:65536x1024;idx:f32:65536:index:32000"},
    {"batch_norm_training 64x64x112x112",
     "batch_norm_training in=x:f32:64x64x112x112;gamma:f32:64;beta:f32:64"},
    {"batch_norm_training 256x512x7x7",
     "batch_norm_training in=x:f32:256x512x7x7;gamma:f32:512;beta:f32:512"},
    {"batch_norm_backward 64x64x112x112",
     "batch_norm_backward_input in=x:f32:64x64x112x112;gamma:f32:64;dy:f32:64x64x112x112"},
    {"fake_quantize 67108864", "fake_quantize in=x:f32:67108864"},
    {"fake_quantize 4096x16384 by row", "fake_quantize axis=0 in=x:f32:4096x16384"},
    {"fake_quantize_lsq_backward_scale 4096x16384 by column",
     "fake_quantize_lsq_backward_scale axis=1 "
     "in=x:f32:4096x16384;scale:f32:16384:positive;dy:f32:4096x16384"},
    {"adamw 100000000",
     "adamw in_place=1 "
     "in=p:f32:100000000;g:f32:100000000;m:f32:100000000;v:f32:100000000:positive"},
    /* Image ops; scatter and selection. */
    {"layer_norm2d 8x256x64x64", "layer_norm2d in=x:f32:8x256x64x64;gamma:f32:256;beta:f32:256"},
    {"group_norm 8x512x64x64, 32 groups",
     "group_norm groups=32 in=x:f32:8x512x64x64;gamma:f32:512;beta:f32:512"},
    {"pool_max 3x3/2 32x64x112x112",
     "pool_max kernel=3,3 stride=2,2 padding=1,1 in=x:f32:32x64x112x112"},
    {"pool_max_backward 3x3/2 32x64x112x112",
     "pool_max_backward kernel=3,3 stride=2,2 padding=1,1 in=x:f32:32x64x112x112;"
     "dy:f32:32x64x56x56"},
    {"resize_nearest2x 8x256x128x128", "resize_nearest2x in=x:f32:8x256x128x128"},
    {"resize linear 8x64x256x256 to 512x512",
     "resize size=512,512 mode=linear in=x:f32:8x64x256x256"},
    {"resize cubic 8x64x256x256 to 512x512",
     "resize size=512,512 mode=cubic in=x:f32:8x64x256x256"},
    {"resize nearest 8x64x256x256 to 512x512", "resize size=512,512 in=x:f32:8x64x256x256"},
    {"resize linear 8x64x512x512 to 256x256",
     "resize size=256,256 mode=linear in=x:f32:8x64x512x512"},
    {"resize_backward linear 8x64x512x512 to 256x256",
     "resize_backward input=256,256 mode=linear in=x:f32:8x64x512x512"},
    {"knn 15 of 100000x128", "knn k=15 in=q:f32:100000x128;p:f32:100000x128"},
    {"welch of 16777216 by 1024", "welch nperseg=1024 overlap=512 fs=16000 in=x:f32:16777216:unit"},
    {"log_mel of 60 s at 16 kHz", "log_mel bank=1 mels=80 n_fft=400 hop=160 in=x:f32:960000:unit"},
    {"istft of 32767 frames of 1024 by 512",
     "istft length=1024 hop=512 n_fft=1024 in=x:f32:32767x1026:unit"},
    {"resample 160 of 147, 8388608", "resample up=160 down=147 in=x:f32:8388608:unit"},
    {"gaussian_splat_render 1M 1920x1080",
     "gaussian_splat_render width=1920 height=1080 entries=2000000 "
     "in=positions:f32:1000000x3:unit;scales:f32:1000000x3:range:-6.5:-5;"
     "rotations:f32:1000000x4:unit;opacities:f32:1000000:range:0.1:1;"
     "colors:f32:1000000x3:range:0:1;sh:f32:1000000x16x3:range:-0.2:0.2"},
    {"gaussian_splat_render_backward 1M 1920x1080",
     "gaussian_splat_render_backward width=1920 height=1080 entries=2000000 "
     "in=positions:f32:1000000x3:unit;scales:f32:1000000x3:range:-6.5:-5;"
     "rotations:f32:1000000x4:unit;opacities:f32:1000000:range:0.1:1;"
     "colors:f32:1000000x3:range:0:1;sh:f32:1000000x16x3:range:-0.2:0.2;loss:f32:1080x1920x4:unit"},
    {"grid_sample bilinear 8x64x256x256",
     "grid_sample in=x:f32:8x64x256x256;grid:f32:8x256x256x2:unit"},
    {"grid_sample bilinear 8x64x256x256, turned",
     "grid_sample in=x:f32:8x64x256x256;grid:f32:8x256x256x2:turned:256:256"},
    {"grid_sample_backward_input bilinear 8x64x256x256",
     "grid_sample_backward_input input=256,256 in=dy:f32:8x64x256x256;grid:f32:8x256x256x2:unit"},
    {"grid_sample_backward_input bilinear 8x64x256x256, turned",
     "grid_sample_backward_input input=256,256 "
     "in=dy:f32:8x64x256x256;grid:f32:8x256x256x2:turned:256:256"},
    {"grid_sample_backward_grid bilinear 8x64x256x256, turned",
     "grid_sample_backward_grid "
     "in=x:f32:8x64x256x256;grid:f32:8x256x256x2:turned:256:256;dy:f32:8x64x256x256"},
    {"axial_rope2d 64x64, 8 heads of 64",
     "axial_rope2d grid=64,64 head_dim=64 in=x:f32:8x4096x512"},
    {"pad reflect 4096x4096", "pad mode=reflect before=1,1 after=1,1 in=x:f32:4096x4096"},
    {"pad constant 4096x4096", "pad before=1,1 after=1,1 in=x:f32:4096x4096"},
    {"pad wrap backward 4096x4098",
     "pad_backward mode=wrap axis=1 before=1 extent=4096 in=dy:f32:4096x4098"},
    {"roll columns 4096x4096", "roll axes=1 shifts=5 in=x:f32:4096x4096"},
    {"roll rows 4096x4096", "roll axes=0 shifts=5 in=x:f32:4096x4096"},
    {"tile 2048x2048 by 2x2", "tile repeats=2,2 in=x:f32:2048x2048"},
    {"slice rows 8192x4096 by 2", "slice starts=0 stops=last steps=2 in=x:f32:8192x4096"},
    {"slice columns 4096x4096", "slice starts=0,1 stops=last,last in=x:f32:4096x4096"},
    {"sort 4096x4096", "sort in=x:f32:4096x4096"},
    {"argsort 4096x4096", "argsort in=x:f32:4096x4096"},
    {"sort 16777216", "sort in=x:f32:16777216"},
    {"argsort 16777216", "argsort in=x:f32:16777216"},
    {"sort 262144x64", "sort in=x:f32:262144x64"},
    {"scatter in rows 4096x4096",
     "scatter mode=assign axis=1 in=x:f32:4096x4096;idx:f32:4096x4096:index:4096;"
     "updates:f32:4096x4096"},
    {"scatter in columns 4096x4096",
     "scatter mode=assign axis=0 in=x:f32:4096x4096;idx:f32:4096x4096:index:4096;"
     "updates:f32:4096x4096"},
    {"scatter sums in rows 4096x4096",
     "scatter mode=add axis=1 in=x:f32:4096x4096;idx:f32:4096x4096:index:4096;"
     "updates:f32:4096x4096"},
    {"scatter sums in columns 4096x4096",
     "scatter mode=add axis=0 in=x:f32:4096x4096;idx:f32:4096x4096:index:4096;"
     "updates:f32:4096x4096"},
    {"scatter_nd rows 4096x4096",
     "scatter_nd mode=assign in=x:f32:4096x4096;idx:f32:4096x1:index:4096;updates:f32:4096x4096"},
    {"scatter_nd sums of rows 4096x4096",
     "scatter_nd mode=add in=x:f32:4096x4096;idx:f32:4096x1:index:4096;updates:f32:4096x4096"},
    {"gather_nd rows 4096x4096", "gather_nd in=x:f32:4096x4096;idx:f32:4096x1:index:4096"},
    {"histogram 67108864 to 256", "histogram bins=256 low=-3 high=3 in=x:f32:67108864"},
    {"bincount 16777216 to 65536", "bincount bins=65536 in=x:f32:16777216:index:65536"},
    {"one_hot 65536 of 1024", "one_hot depth=1024 in=idx:f32:65536:index:1024"},
    {"scatter_add 65536 rows of 1024 to 32000",
     "scatter_add dim=32000 in=updates:f32:65536x1024;idx:f32:65536:index:32000"},
    {"scatter_add 1000000 to 10",
     "scatter_add dim=10 in=updates:f32:1000000;idx:f32:1000000:index:10"},
    {"topk 50 of 1x128256", "topk k=50 in=x:f32:1x128256"},
    {"topk 50 of 512x32000", "topk k=50 in=x:f32:512x32000"},
    {"topk 8 of 4096x64", "topk k=8 in=x:f32:4096x64"},
    {"topk 262144 of 262144", "topk k=262144 in=x:f32:1x262144"},
    /* Convolution. */
    {"conv 3x3 32x256x56x56 -> 256",
     "conv padding=1,1 in=x:f32:32x256x56x56:unit;w:f32:256x256x3x3:unit"},
    {"conv 1x1 32x256x56x56 -> 64", "conv in=x:f32:32x256x56x56:unit;w:f32:64x256x1x1:unit"},
    {"conv 3x3 32x256x56x56 -> 256, norm, relu",
     "fused_conv activation=relu padding=1,1 in=x:f32:32x256x56x56:unit;w:f32:256x256x3x3:unit;"
     "bias:f32:2x256:unit"},
    {"conv 3x3 32x256x56x56 -> 256, norm, silu",
     "fused_conv activation=silu padding=1,1 in=x:f32:32x256x56x56:unit;w:f32:256x256x3x3:unit;"
     "bias:f32:2x256:unit"},
    {"conv 1x1 32x64x56x56 -> 256, norm, residual, relu",
     "fused_conv activation=relu in=x:f32:32x64x56x56:unit;w:f32:256x64x1x1:unit;"
     "bias:f32:2x256:unit;residual:f32:32x256x56x56:unit"},
    {"conv 7x7 s2 32x3x224x224 -> 64",
     "conv stride=2,2 padding=3,3 in=x:f32:32x3x224x224:unit;w:f32:64x3x7x7:unit"},
    {"conv 3x3 32x64x56x56 -> 64",
     "conv padding=1,1 in=x:f32:32x64x56x56:unit;w:f32:64x64x3x3:unit"},
    {"conv 3x3 s2 32x128x56x56 -> 128",
     "conv stride=2,2 padding=1,1 in=x:f32:32x128x56x56:unit;w:f32:128x128x3x3:unit"},
    {"conv 3x3 32x256x14x14 -> 256",
     "conv padding=1,1 in=x:f32:32x256x14x14:unit;w:f32:256x256x3x3:unit"},
    {"conv 1x1 32x1024x14x14 -> 256", "conv in=x:f32:32x1024x14x14:unit;w:f32:256x1024x1x1:unit"},
    {"conv 1x1 32x256x14x14 -> 1024", "conv in=x:f32:32x256x14x14:unit;w:f32:1024x256x1x1:unit"},
    {"conv 3x3 32x512x7x7 -> 512",
     "conv padding=1,1 in=x:f32:32x512x7x7:unit;w:f32:512x512x3x3:unit"},
    {"conv 3x3 1x512x7x7 -> 512",
     "conv padding=1,1 in=x:f32:1x512x7x7:unit;w:f32:512x512x3x3:unit"},
    {"conv depthwise 3x3 32x256x56x56",
     "conv padding=1,1 groups=256 in=x:f32:32x256x56x56:unit;w:f32:256x1x3x3:unit"},
    {"conv_backward_input 3x3 32x256x56x56 -> 256",
     "conv_backward_input padding=1,1 input_size=56,56 in=w:f32:256x256x3x3:unit;"
     "dy:f32:32x256x56x56:unit"},
    {"conv_backward_input 3x3 s2 32x128x56x56 -> 256",
     "conv_backward_input stride=2,2 padding=1,1 input_size=56,56 in=w:f32:256x128x3x3:unit;"
     "dy:f32:32x256x28x28:unit"},
    {"conv_backward_input depthwise 3x3 32x256x56x56",
     "conv_backward_input padding=1,1 groups=256 input_size=56,56 in=w:f32:256x1x3x3:unit;"
     "dy:f32:32x256x56x56:unit"},
    {"conv_backward_weight 3x3 32x256x56x56 -> 256",
     "conv_backward_weight kernel=3,3 padding=1,1 in=x:f32:32x256x56x56:unit;"
     "dy:f32:32x256x56x56:unit"},
    {"conv_backward_weight 1x1 32x256x56x56 -> 64",
     "conv_backward_weight kernel=1,1 in=x:f32:32x256x56x56:unit;dy:f32:32x64x56x56:unit"},
    {"conv_backward_weight 7x7 s2 32x3x224x224 -> 64",
     "conv_backward_weight kernel=7,7 stride=2,2 padding=3,3 in=x:f32:32x3x224x224:unit;"
     "dy:f32:32x64x112x112:unit"},
    {"conv_backward_weight 3x3 32x512x7x7 -> 512",
     "conv_backward_weight kernel=3,3 padding=1,1 in=x:f32:32x512x7x7:unit;"
     "dy:f32:32x512x7x7:unit"},
    {"conv_backward_weight depthwise 3x3 32x256x56x56",
     "conv_backward_weight kernel=3,3 padding=1,1 groups=256 in=x:f32:32x256x56x56:unit;"
     "dy:f32:32x256x56x56:unit"},
    {"conv_transpose2d 4x4 s2 8x256x32x32 -> 128",
     "conv_transpose2d stride=2,2 padding=1,1 in=x:f32:8x256x32x32:unit;w:f32:256x128x4x4:unit"},
    {"im2col 3x3 8x64x56x56", "im2col kernel=3,3 padding=1,1 in=x:f32:8x64x56x56"},
    {"projection q4_K norm and gate 1x28672x4096",
     "projection gate=first format=q4_k in=x:f32:1x4096;w:u8:28672x2304:quant:q4_k;gamma:f32:4096"},
    {"projection q4_K norm 1x28672x4096",
     "projection format=q4_k in=x:f32:1x4096;w:u8:28672x2304:quant:q4_k;gamma:f32:4096"},
    {"projection q4_K gate 1x28672x4096",
     "projection gate=first format=q4_k in=x:f32:1x4096;w:u8:28672x2304:quant:q4_k"},
    {"projection q4_K 1x28672x4096",
     "projection format=q4_k in=x:f32:1x4096;w:u8:28672x2304:quant:q4_k"},
    {"projection q4_K norm 1x5120x4096",
     "projection format=q4_k in=x:f32:1x4096;w:u8:5120x2304:quant:q4_k;gamma:f32:4096"},
    {"projection q4_K 1x5120x4096",
     "projection format=q4_k in=x:f32:1x4096;w:u8:5120x2304:quant:q4_k"},
    {"projection q4_K residual 1x4096x14336",
     "projection format=q4_k in=x:f32:1x14336;w:u8:4096x8064:quant:q4_k;residual:f32:1x4096"},
    {"projection q6_K residual 1x4096x14336",
     "projection format=q6_k in=x:f32:1x14336;w:u8:4096x11760:quant:q6_k;residual:f32:1x4096"},
    {"projection q8_0 norm and gate 1x28672x4096",
     "projection gate=first format=q8_0 in=x:f32:1x4096;w:u8:28672x4352:quant:q8_0;gamma:f32:4096"},
    {"projection q8_0 1x28672x4096",
     "projection format=q8_0 in=x:f32:1x4096;w:u8:28672x4352:quant:q8_0"},
    {"projection f16 norm and gate 1x28672x4096",
     "projection gate=first in=x:f32:1x4096;w:f16:28672x4096;gamma:f32:4096"},
    {"projection f16 1x28672x4096", "projection in=x:f32:1x4096;w:f16:28672x4096"},
    {"dequant_matmul q4_0 1x4096x14336",
     "dequant_matmul format=q4_0 in=x:f32:1x14336;w:u8:4096x8064:quant:q4_0"},
    {"dequant_matmul q4_0 512x4096x14336",
     "dequant_matmul format=q4_0 in=x:f32:512x14336;w:u8:4096x8064:quant:q4_0"},
    {"dequant_matmul q5_K 1x4096x14336",
     "dequant_matmul format=q5_k in=x:f32:1x14336;w:u8:4096x9856:quant:q5_k"},
    {"dequant_matmul q5_K 512x4096x14336",
     "dequant_matmul format=q5_k in=x:f32:512x14336;w:u8:4096x9856:quant:q5_k"},
    {"dequant_matmul iq4_xs 1x4096x14336",
     "dequant_matmul format=iq4_xs in=x:f32:1x14336;w:u8:4096x7616:quant:iq4_xs"},
    {"dequant_grouped_matmul q4_K 8 of 4096x14336",
     "dequant_grouped_matmul format=q4_k n=4096 "
     "in=x:f32:8x14336;w:u8:8x4096x8064:quant:q4_k;idx:f32:8:iota"},
    {"dequant_grouped_matmul q8_0 8 of 2048x14336",
     "dequant_grouped_matmul format=q8_0 n=2048 "
     "in=x:f32:8x14336;w:u8:8x2048x15232:quant:q8_0;idx:f32:8:iota"},
    {"dequant_grouped_matmul q4_K 1024x4096x14336",
     "dequant_grouped_matmul format=q4_k n=4096 "
     "in=x:f32:1024x14336;w:u8:8x4096x8064:quant:q4_k;idx:f32:1024:index:8"},
    {"fft 16384 lines of 1024", "fft in=x:c64:16384x1024"},
    {"fft 256 lines of 65536", "fft in=x:c64:256x65536"},
    {"fft 16 lines of 1048576", "fft in=x:c64:16x1048576"},
    {"fft 1048576 lines of 16", "fft in=x:c64:1048576x16"},
    {"fft 65536 lines of 256", "fft in=x:c64:65536x256"},
    {"fft 4096 lines of 4096", "fft in=x:c64:4096x4096"},
    {"fft 16384 lines of 1000", "fft in=x:c64:16384x1000"},
    {"fft 7671 lines of 2187", "fft in=x:c64:7671x2187"},
    {"fft 1677 lines of 10007", "fft in=x:c64:1677x10007"},
    {"fft 16777216", "fft in=x:c64:16777216"},
    {"fft 1024 down 16384 columns", "fft axis=0 in=x:c64:1024x16384"},
    {"rfft 16384 lines of 2048", "rfft_block in=x:f32:16384x2048"},
    {"irfft 16384 lines of 2048", "irfft_block n=2048 in=x:f32:16384x2050"},
    {"rfft 256 lines of 131072", "rfft_block in=x:f32:256x131072"},
    {"lstm 512 steps, 1024 hidden, batch 1",
     "lstm hidden=1024 layers=1 bidirectional=0 "
     "in=x:f32:1x512x1024;w_ih:f32:4194304:range:-0.03:0.03;"
     "w_hh:f32:4194304:range:-0.03:0.03;bias:f32:4096:unit"},
    {"gated_delta_net 1x2048, 32 heads of 128",
     "gated_delta_net in=q:f32:1x2048x32x128:unit;k:f32:1x2048x32x128:range:-0.08:0.08;"
     "v:f32:1x2048x32x128;g:f32:1x2048x32:range:-2:0;beta:f32:1x2048x32:range:0:1"},
    {"linear_attention 1x2048, 16 heads of 128, 2 queries each, decay by key",
     "linear_attention in=q:f32:1x2048x32x128:unit;k:f32:1x2048x16x128:range:-0.08:0.08;"
     "v:f32:1x2048x16x128;g:f32:1x2048x16x128:range:-2:0;beta:f32:1x2048x16:range:0:1"},
    {"roi_align 512 regions of 7x7, 256 channels of 100x100",
     "roi_align size=7,7 ratio=2 in=x:f32:1x256x100x100;regions:f32:512x4:range:0:99;"
     "images:f32:512:zero"},
    {"deform_im2col 3x3, 8x64x100x100",
     "deform_im2col kernel=3,3 padding=1,1 in=x:f32:8x64x100x100:unit;"
     "offset:f32:8x18x100x100:range:-2:2;mask:f32:8x9x100x100:range:0:1"},
    {"mamba2 1x2048, 64 heads of 64, state 128",
     "mamba2 in=x:f32:1x2048x64x64;dt:f32:1x2048x64:range:0:1;a:f32:64:range:-1:-0.01;"
     "b:f32:1x2048x64x128:unit;c:f32:1x2048x64x128:unit"},
    /* Shapes at the limits for which the variants were chosen. */
    {"rng_normal 67108864", "rng_normal shape=67108864"},
    {"dropout 67108864", "dropout rate=0.1 in=x:f32:67108864"},
    {"gelu 52428800", "gelu in=x:f32:52428800"},
    {"concat 8192x512 and 8192x400", "concat axis=1 in=a:f32:8192x512;b:f32:8192x400"},
    {"concat 8192x513 and 8192x401", "concat axis=1 in=a:f32:8192x513;b:f32:8192x401"},
    {"softmax 1000x50257", "softmax axis=-1 in=x:f32:1000x50257"},
    {"softmax 300000x33", "softmax axis=-1 in=x:f32:300000x33"},
    PRODUCT(17, 4096, 11008),
    PRODUCT(17, 11008, 4096),
    PRODUCT(33, 4096, 4096),
    PRODUCT(64, 4096, 4096),
    PRODUCT(100, 4096, 4096),
    PRODUCT(128, 4096, 4096),
    PRODUCT(128, 128, 65536),
    {"conv 1x1 64x1024x14x14 -> 256", "conv in=x:f32:64x1024x14x14:unit;w:f32:256x1024x1x1:unit"},
    {"conv 3x3x3 4x32x16x56x56 -> 64",
     "conv padding=1,1,1 in=x:f32:4x32x16x56x56:unit;w:f32:64x32x3x3x3:unit"},
    {"conv depthwise 7x7 16x384x28x28",
     "conv padding=3,3 groups=384 in=x:f32:16x384x28x28:unit;w:f32:384x1x7x7:unit"},
    {"attention 8x16x512x64",
     "attention layout=bhsd mask=none in=q:f32:8x16x512x64:unit;k:f32:8x16x512x64:unit;"
     "v:f32:8x16x512x64"},
    {"attention_backward causal 1x32x2048x128",
     "attention_backward layout=bhsd mask=causal in=q:f32:1x32x2048x128:unit;"
     "k:f32:1x32x2048x128:unit;v:f32:1x32x2048x128:unit;dy:f32:1x32x2048x128:unit"},
    {"attention_backward 8x16x512x64",
     "attention_backward layout=bhsd mask=none in=q:f32:8x16x512x64:unit;k:f32:8x16x512x64:unit;"
     "v:f32:8x16x512x64;dy:f32:8x16x512x64:unit"},
    ATTENTION_AND_GRADIENT("1x32x2048x128"),
    ATTENTION_AND_GRADIENT("8x12x1024x64"),
    {"selective_scan_backward 4x2048, 4096 channels, state 16",
     "selective_scan_backward in=x:f32:4x2048x4096:unit;delta:f32:4x2048x4096:range:0:1;"
     "a:f32:4096x16:range:-1:-0.01;b:f32:4x2048x16:unit;c:f32:4x2048x16:unit;"
     "dy:f32:4x2048x4096:unit"},
    {"mamba2_backward 1x2048, 64 heads of 64, state 128",
     "mamba2_backward in=x:f32:1x2048x64x64;dt:f32:1x2048x64:range:0:1;a:f32:64:range:-1:-0.01;"
     "b:f32:1x2048x64x128:unit;c:f32:1x2048x64x128:unit;dy:f32:1x2048x64x64:unit"},
    {"gated_delta_net_backward 1x2048, 32 heads of 128",
     "gated_delta_net_backward in=q:f32:1x2048x32x128:unit;k:f32:1x2048x32x128:range:-0.08:0.08;"
     "v:f32:1x2048x32x128;g:f32:1x2048x32:range:-2:0;beta:f32:1x2048x32:range:0:1;"
     "dy:f32:1x2048x32x128:unit"},
    {"fft 100000 lines of 100", "fft in=x:c64:100000x100"},
    {"fft 3000 lines of 3000", "fft in=x:c64:3000x3000"},
    {"lstm 128 steps, 512 hidden, batch 64",
     "lstm hidden=512 layers=1 bidirectional=0 "
     "in=x:f32:64x128x512;w_ih:f32:1048576:range:-0.04:0.04;"
     "w_hh:f32:1048576:range:-0.04:0.04;bias:f32:2048:unit"},
    {"lstm_backward_gates 512 steps, 1024 hidden, batch 1",
     "lstm_backward_gates in=z:f32:1x512x4096;w_hh:f32:4096x1024:range:-0.03:0.03;"
     "dy:f32:1x512x1024:unit"},
    {"lstm and gradient 512 steps, 1024 hidden, batch 1",
     "lstm gradient=beside hidden=1024 layers=1 bidirectional=0 "
     "in=x:f32:1x512x1024;w_ih:f32:4194304:range:-0.03:0.03;"
     "w_hh:f32:4194304:range:-0.03:0.03;bias:f32:4096:unit;dy:f32:1x512x1024:unit"},
    {"lstm_backward_gates 128 steps, 512 hidden, batch 64",
     "lstm_backward_gates in=z:f32:64x128x2048;w_hh:f32:2048x512:range:-0.04:0.04;"
     "dy:f32:64x128x512:unit"},
};
const size_t bench_gpu_case_count = ARRAY_COUNT(bench_gpu_cases);

/* The same for software drivers, in sizes that take them milliseconds. */
const bench_case bench_cpu_cases[] = {
    {"copy 4194304", "copy in=x:f32:4194304"},
    {"add 4194304", "add in=a:f32:4194304;b:f32:4194304"},
    CHAINS(4194304),
    {"transpose 1024x1024", "transpose perm=1,0 in=x:f32:1024x1024"},
    {"gather 4096 rows of 256", "gather axis=0 in=x:f32:8000x256;idx:f32:4096:index:8000"},
    ROWS(1024, 1024),
    ROWS(8192, 256),
    {"argmax 64x32000", "argmax axis=-1 in=x:f32:64x32000"},
    {"cumsum 1000000", "cumsum axis=0 in=x:f32:1000000"},
    {"cumsum 2048x320", "cumsum axis=-1 in=x:f32:2048x320"},
    SQUARE(256),
    SQUARE(512),
    {"matmul f16 weight 512", "matmul in=a:f32:512x512;b:f16:512x512"},
    {"matvec f32 1024x3584", "matmul transpose_b=1 in=a:f32:1x3584;b:f32:1024x3584"},
    {"matvec f16 1024x3584", "matmul transpose_b=1 in=a:f32:1x3584;b:f16:1024x3584"},
    QUANT_CASES(1, 1024, 3584, 3808, 2016, 2940),
    QUANT_CASES(64, 1024, 3584, 3808, 2016, 2940),
    ATTENTION("causal 1x4x256x64", "causal", 4, 4, 256, 256, 64),
    ATTENTION("decode 8 heads (2 kv) 2048x64", "none", 8, 2, 1, 2048, 64),
    STEP(256, 255),
    ATTENTION_AND_GRADIENT("1x4x256x64"),
    {"group_norm gradient 1x64x64x64, 32 groups",
     "group_norm gradient=alone groups=32 "
     "in=x:f32:1x64x64x64;gamma:f32:64;beta:f32:64;dy:f32:1x64x64x64"},
    {"lstm and gradient 64 steps, 128 hidden, batch 1",
     "lstm gradient=beside hidden=128 layers=1 bidirectional=0 "
     "in=x:f32:1x64x128;w_ih:f32:65536:range:-0.09:0.09;w_hh:f32:65536:range:-0.09:0.09;"
     "bias:f32:512:unit;dy:f32:1x64x128:unit"},
    {"knn 15 of 500x2000x32", "knn k=15 in=q:f32:500x32;p:f32:2000x32"},
    /* Convolution. */
    {"conv 3x3 1x32x56x56 -> 64", "conv padding=1,1 in=x:f32:1x32x56x56:unit;w:f32:64x32x3x3:unit"},
    {"conv 1x1 1x128x28x28 -> 128", "conv in=x:f32:1x128x28x28:unit;w:f32:128x128x1x1:unit"},
    {"conv depthwise 3x3 1x256x56x56",
     "conv padding=1,1 groups=256 in=x:f32:1x256x56x56:unit;w:f32:256x1x3x3:unit"},
    {"conv_transpose2d 4x4 s2 1x64x16x16 -> 32",
     "conv_transpose2d stride=2,2 padding=1,1 in=x:f32:1x64x16x16:unit;w:f32:64x32x4x4:unit"},
    {"im2col 3x3 1x64x56x56", "im2col kernel=3,3 padding=1,1 in=x:f32:1x64x56x56"},
};
const size_t bench_cpu_case_count = ARRAY_COUNT(bench_cpu_cases);
