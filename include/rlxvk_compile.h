/*
 * The options of rlxvk_compile: precision, how weights are held, variants of kernels, extents,
 * memory, checks, and the time of a submission. rlxvk.h includes this header.
 */
#ifndef RLXVK_COMPILE_H
#define RLXVK_COMPILE_H

#include <rlxvk.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Arithmetic of matrix products on devices with matrix units (VK_KHR_cooperative_matrix). It
 * applies to matmul, dequant_matmul and ops made of them, if the product has at least 16 rows and
 * columns (F16 with packed weights: 2 rows). Sums are always f32, and so is everything else.
 * Without matrix units the f32 kernels run, and the plan dump says so. In the bounds, S is the sum
 * of the products' magnitudes and e the f32 bound of an element:
 *   F32     operands as they are; on matrix units only if these take f32 operands
 *   F16     operands rounded to f16: error <= e + 2^-10 S. Operands beyond 65504 become infinite.
 *           With packed weights, a row of x with infinities may give NaN.
 *   BF16    operands rounded to bfloat16: error <= e + 2^-7 S
 *   both    F16 and BF16 use products of bytes for one row of x by packed weights (dequant_matmul,
 *           projection), if the device has fast ones. They round x to within 2^-22 of the largest
 *           of 32 neighbours, which adds 2^-22 K max|x| max|w| to the error.
 *   SPLIT   operands as two f16 each, scaled by row: error <= e + 2^-20 S + 2^-38 K max|a| max|b|
 *           over the element's row of a and column of b; infinite operands give NaN
 * F16 and BF16 also apply to attention and its gradients, if the mask is a band, q has at least as
 * many rows as a matrix unit, and the width is whole units up to 128. q, k, v and the weights p are
 * rounded, and for gradients dy and ds. Scores are within 2^-10 (BF16: 2^-7) of sum |scale q k|. dy
 * is scaled before it is rounded, so that only what is below 2^-25 of the largest dy or sum(p dp)
 * of the queries of a kv head is lost. In F16, a ds of 32,000 times that becomes infinite. A NaN or
 * Inf in a row reaches all results of its tile.
 *
 * F16 and BF16 also apply to conv, conv_transpose2d, fused_conv and the gradients of conv, with the
 * same bounds. A group must have at least 16 channels of the result, 16 positions and 16 terms; if
 * there are several groups, also 16 channels of x. Then a weight that is not finite, or beyond
 * 65504 in F16, spoils borders, too, because taps outside x count as 0. In SPLIT they stay f32.
 */
typedef enum rlxvk_precision {
    RLXVK_PRECISION_F32 = 0,
    RLXVK_PRECISION_F16 = 1,
    RLXVK_PRECISION_BF16 = 2,
    RLXVK_PRECISION_SPLIT = 3
} rlxvk_precision;

/* "f32", "f16", "bf16", "split"; NULL if the value is none of them. */
const char *rlxvk_precision_name(rlxvk_precision precision);

/*
 * How params declared F32 are held on the device. As F16 or BF16 a param takes half the memory, and
 * kernels read half the bytes. Arithmetic stays f32, because kernels widen the values again.
 *
 * A param is packed if ops only read it, and each of them takes packed weights. Those are matmul
 * and ops made of it, projection, grouped_matmul, and gather of its data, also through reshapes.
 * All other params, and constants, stay F32 bit for bit. Examples are weights of convolutions and
 * norms, biases, outputs, and params that optimizers write. To learn which params are packed, see
 * `held` of rlxvk_executable_params; weight_bytes of rlxvk_executable_memory is the size of all.
 * Params declared F16 or BF16 stay as declared.
 *
 * For the program a packed param is still F32: calls take, give, save and load F32. Its value is
 * rounded when it is set, to nearest, ties to even, and read_param gives the rounded value. Results
 * are those of the graph with the rounded values, within the bounds of its ops. Rounding moves a
 * value v by at most
 *   F16    2^-11 |v|, or 2^-25 if |v| is below 2^-14; from 65520 on v becomes infinite
 *   BF16   2^-8 |v|, or 2^-134 if |v| is below 2^-126; infinite only next to the range of f32, from
 *          (2 - 2^-8) 2^127 on.
 * So a product of a row x and a column w moves by at most 2^-11 or 2^-8 times sum |x w|, if the
 * weights are in the normal range.
 */
typedef enum rlxvk_weight_storage {
    RLXVK_WEIGHTS_AS_DECLARED = 0,
    RLXVK_WEIGHTS_F16 = 1,
    RLXVK_WEIGHTS_BF16 = 2
} rlxvk_weight_storage;

/* The stages of a compile that can be printed to the log. */
typedef enum rlxvk_dump {
    RLXVK_DUMP_GRAPH = 1,    /* nodes as built */
    RLXVK_DUMP_REWRITE = 2,  /* nodes as rewritten, and which were not fused and why */
    RLXVK_DUMP_PLAN = 4,     /* steps, and the memory of each tensor */
    RLXVK_DUMP_BARRIERS = 8, /* each barrier, and the hazard that needs it */
    RLXVK_DUMP_NONE = 16     /* nothing, whatever RLXVK_DUMP says */
} rlxvk_dump;

/* A kernel variant: a row in the table of a kernel kind. `rlxvk info` lists both names. */
typedef struct rlxvk_variant {
    const char *kind, *row; /* "matmul", "tiled_64x128" */
} rlxvk_variant;

/* An axis of an input along which the rows of a bucket lie; a negative one counts from the last.
 * If `indices` is set, `axis` is left 0 and the caller promises that every value of this input is
 * the index of an active row. A gather may then take such rows, for example the last token's. */
typedef struct rlxvk_bucket_axis {
    const char *input;
    int32_t axis;
    bool indices;
    size_t struct_size;
} rlxvk_bucket_axis;

/* The results of runs under an active extent (rlxvk_set_active_extent, rlxvk_symbols.h). */
typedef enum rlxvk_extent_promise {
    RLXVK_EXTENT_PREFIX = 0,
    RLXVK_EXTENT_SHORTER = 1
} rlxvk_extent_promise;

#define RLXVK_NO_SUBMISSION_BOUND UINT64_MAX

typedef struct rlxvk_compile_options {
    rlxvk_toggle forbid_host;  /* an op that would run on the host is E_UNSUPPORTED (off) */
    rlxvk_toggle allow_unset;  /* unset params and inputs are zeros instead of an error (off) */
    rlxvk_toggle force_host;   /* every op runs on the host (off); OFF: only those of host_ops */
    rlxvk_toggle fusion;       /* pattern fusions (on unless RLXVK_NO_FUSION). Pairs of inverse
                                  transposes cancel, and what is between them is computed in the
                                  other layout. Also read parts and
                                  transposes in place, and write products as the column parts that
                                  are read (on unless RLXVK_NO_STRIDED_ACCESS) */
    rlxvk_toggle regions;      /* join elementwise ops (with fusion, unless RLXVK_NO_REGIONS) */
    rlxvk_toggle reorder;      /* reorder independent dispatches to share barriers (on) */
    rlxvk_toggle cached;       /* replay recorded command buffers (on unless RLXVK_NO_CACHE) */
    rlxvk_toggle full_barrier; /* a barrier between every two dispatches (off unless
                                  RLXVK_FULL_BARRIER); always on with profile or without cached */
    rlxvk_toggle reuse_memory; /* share scratch memory (on unless RLXVK_PLAN=bump) */
    rlxvk_toggle profile;      /* time every step with timestamps: rlxvk_executable_profile (off
                                  unless RLXVK_TRACE) */
    rlxvk_toggle time_runs;    /* time only the run: rlxvk_executable_run_time; nearly free (off) */
    /* Prove the plan sound by brute force; let out-of-range indices fail the run; look for bad
     * scales in packed params (each off unless RLXVK_CHECK names plan, index, packed). */
    rlxvk_toggle check_plan, check_index, check_packed;
    /* Every node keeps its own memory, so that you can look at it. Nothing is fused, reordered or
     * put in reused memory then (off; RLXVK_NAN_TRACE and RLXVK_DUMP_NODES always set it). */
    rlxvk_toggle keep_all;
    /* Limit in bytes of device memory for copies of params in the forms that kernels need. A copy
     * is made once when its params are set, instead of in every run. Such forms are:
     *   - 16-bit floats for matrix units; of packed weights only if a product has more than 256
     *     rows and would otherwise unpack them through shared memory
     *   - f32 values of packed weights, for products in f32
     *   - weights of convolutions and recurrent layers in another layout
     *   - weights joined for products of one input
     * Beyond the limit a form is made in every run, and weights are not joined. A product with
     * packed weights then unpacks them itself, except in split mode. UINT64_MAX: no limit. 0: as
     * RLXVK_PREPARED_BYTES; if that is unset or `fusion` is off, only a few values a channel.
     * Executables do not share these copies, even if they share params. Fewer are made if
     * device_memory_bytes has no room for them, and none if their memory cannot be allocated. */
    uint64_t prepared_bytes;
    uint32_t max_in_flight;    /* most tickets outstanding at once; 0: 2; at most 1024 (E_ATTR) */
    uint64_t timeout_ns;       /* deadline of every wait; 0: 60 s, an hour on software drivers */
    uint32_t dump;             /* stages to print, bits of rlxvk_dump; 0: as RLXVK_DUMP */
    rlxvk_precision precision; /* of matrix products; F32, the default: as RLXVK_PRECISION, and F32
                                  if that is unset */
    /* Kernel variants to use if they can do the shape; else the table decides. E_ATTR: there is no
     * such variant. NULL: as RLXVK_VARIANT; an empty array: none, whatever RLXVK_VARIANT says. */
    const rlxvk_variant *variants;
    size_t variant_count;
    /* Ops to run on the host, by name ("softmax"). E_ATTR: there is no such op. NULL, if force_host
     * is RLXVK_DEFAULT, too: as RLXVK_FORCE_HOST; an empty array: no op, whatever that says. */
    const char *const *host_ops;
    size_t host_op_count;
    const rlxvk_rng_options *rng; /* NULL: the defaults */
    /* Use the memory of this executable for params that have the same name, shape and dtype in
     * both, and for the inputs listed here. Values set or written by one count for all. Executables
     * that share memory must not be used at the same time. It is E_ATTR if their
     * contexts differ, or if names are listed without it. It may be destroyed first. A listed name
     * that is not an input of both is E_UNKNOWN_NAME; inputs that differ are E_DTYPE or E_SHAPE.
     * Either may have symbols; if none is bound yet, all are bound to their examples first. */
    rlxvk_executable *share_with;
    const char *const *shared_inputs;
    size_t shared_input_count;
    /* Sizes of symbols. If all are given, the executable has only numbers, as after
     * rlxvk_graph_bind. Others get their sizes from rlxvk_bind_symbols and runs. */
    const rlxvk_binding *bindings;
    size_t binding_count;
    uint32_t cached_bindings; /* programs kept for a graph with symbols; 0: 8; at most 1024 */
    /* Inputs of which runs may use only the first rows (rlxvk_set_active_extent), and along which
     * axis; E_UNKNOWN_NAME, E_AXIS. bucket_symbols: also every axis of an input that is the symbol
     * SEQ, ROWS or PAST_SEQ (off). */
    const rlxvk_bucket_axis *bucket_axes;
    size_t bucket_axis_count;
    rlxvk_toggle bucket_symbols;
    rlxvk_extent_promise extent_promise;
    /* How params declared F32 are held (as declared). If share_with has the param, too, it is held
     * as there. If an op of this graph cannot read it so, it is not shared: it must be set here,
     * and `shared` of rlxvk_executable_params is false. */
    rlxvk_weight_storage weight_storage;
    size_t struct_size;
    /* Since 0.3. The most milliseconds that one submission may occupy the device. Operating systems
     * end the work of a GPU that shows nothing for some seconds. 0: 500 on integrated and discrete
     * GPUs that may drive a display; no bound on others. GPUs may not if they have no queue for
     * graphics, or, on Linux, if their PCI class is that of a 3D controller.
     * RLXVK_NO_SUBMISSION_BOUND: none. Results do not change by a bit.
     *
     * If the work may exceed the bound, the first run measures it, and waits after every piece.
     * Later runs make as many submissions as the measured times ask for. Clones take these times
     * over. rlxvk_executable_plan reports the number of submissions and the longest measured one.
     * Dispatches are cut by workgroups, loops by rounds. Not cut are:
     *   - a single workgroup
     *   - custom kernels that read gl_NumWorkGroups or gl_GlobalInvocationID
     *   - under an active extent, dispatches that launch fewer workgroups for fewer rows. If an
     *     extent begins and such dispatches were cut, the next run measures again. The same holds
     *     if there are more active rows than were measured, and they may exceed the bound.
     *   - copies of inputs and outputs
     * Each of these dispatches is submitted on its own. With profile, the time of a step contains
     * the pauses between its submissions. RLXVK_CHECK=results submits each dispatch on its own, and
     * bounds nothing. */
    uint64_t max_submission_ms;
    /* Since 0.3. The most bytes of device memory for weights, state and scratch memory of this
     * executable. Memory that it shares with another one counts there, and staging does not count.
     * With symbols, the limit is for all bindings together. If more is needed, it is
     * E_OUT_OF_DEVICE_MEMORY; the sentence tells how much is needed, is free and is there. 0: what
     * the device has free (VK_EXT_memory_budget), less a sixteenth; if the driver does not tell it,
     * what this context leaves of the device's memory. This default decides only which weights lie
     * on the host. */
    uint64_t device_memory_bytes;
    /* Since 0.3. The most bytes of weights that may lie in host memory if the device has no room
     * for them. Kernels read them there over the bus, so runs take longer; results do not change by
     * a bit. 0: none; UINT64_MAX: no limit. No more weights lie there than need be, beginning with
     * those of which a run reads the least, then the largest. So params of prepared forms go first,
     * then tables of which rows are gathered. Params that are joined go together. Those that a run
     * writes never go. If an allocation fails though the memory seemed free, more go there, until
     * the rest can be allocated. rlxvk_executable_host_params lists them; host_weight_bytes of
     * rlxvk_executable_memory is their size. If device and host share one memory, weights go there
     * only for device_memory_bytes, or after a failed allocation. */
    uint64_t host_weights_bytes;
} rlxvk_compile_options;

#ifdef __cplusplus
}
#endif

#endif
