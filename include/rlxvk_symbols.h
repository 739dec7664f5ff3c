/*
 * rlxvk: graphs with symbolic dims. rlxvk_symbol(id) (rlxvk.h) is a dim whose size comes later:
 * from rlxvk_graph_bind, which gives a graph of numbers, or at run time, from rlxvk_bind_symbols
 * and the lengths of a run's inputs. All that is wrong with a graph, as built or at sizes. And runs
 * on the first rows of what was compiled for more.
 */
#ifndef RLXVK_SYMBOLS_H
#define RLXVK_SYMBOLS_H

#include <rlxvk.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Building ---- */

/* Dims made of others, as sizes for builders of this graph: a + b, a - b, a * b, and a / b rounded
 * down. Numbers give numbers. A dim that is negative and no symbol is E_SHAPE, as are numbers a
 * below b, and b of 0; one that prints as ? is E_UNSUPPORTED, overflow E_TOO_LARGE; the error
 * sticks to the graph and 0 is returned. A size at which a - b is below 0 fails where it is bound:
 * where the examples are such, set others (rlxvk_set_symbol_example). */
int64_t rlxvk_dim_add(rlxvk_graph *graph, int64_t a, int64_t b);
int64_t rlxvk_dim_sub(rlxvk_graph *graph, int64_t a, int64_t b);
int64_t rlxvk_dim_multiply(rlxvk_graph *graph, int64_t a, int64_t b);
int64_t rlxvk_dim_div(rlxvk_graph *graph, int64_t a, int64_t b);

/* Writes "BATCHx(SEQ+PAST_SEQ)x64" or "scalar", cut to `size` bytes: a shape of this graph, or,
 * without one, of symbols and numbers. "?" is a dim whose dependence on the symbols was not
 * recognized; it is no size that a builder takes. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_shape_text(const rlxvk_graph *graph, rlxvk_shape shape,
                                               char *buffer, size_t size);

/* Every builder call on a graph with symbols is tried at three examples, which are sizes for all
 * symbols; where they do not fit (a length that a window divides, a symbol that meets a number)
 * others are looked for. Gives the search its start: the first example has this size. Before or
 * after the symbol is used; E_RANGE for a negative size, E_SHAPE where the graph cannot have it.
 * The error sticks to the graph. */
void rlxvk_set_symbol_example(rlxvk_graph *graph, uint32_t symbol, int64_t size);

/*
 * The graph with symbols replaced by sizes, as if it had been built with these numbers: shapes are
 * inferred anew, names, outputs and checkpoints stay. Symbols that are not bound stay symbols,
 * those that the graph does not have are ignored, and ROWS is BATCH * SEQ where it is not bound
 * itself. What takes no symbols takes the result: rlxvk_grad, ops that compute with sizes in a way
 * that their contract names; rlxvk_graph_tensor names its tensors by those of the source. E_RANGE:
 * a size below 0. E_BIND_CONFLICT: two sizes for one symbol. The errors of builders where a node
 * cannot have these sizes.
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_bind(const rlxvk_graph *graph,
                                               const rlxvk_binding *bindings, size_t count,
                                               rlxvk_graph **out_graph);

/* Tensors of a graph, to go on with where the calls that made them are elsewhere: the one that
 * stands for a tensor of the graph that this one was bound from (or is its own); by name, a leaf
 * before others; an output. RLXVK_NONE, and a sentence, where there is none. */
rlxvk_tensor rlxvk_graph_tensor(const rlxvk_graph *graph, rlxvk_tensor tensor);
rlxvk_tensor rlxvk_graph_tensor_named(const rlxvk_graph *graph, const char *name);
rlxvk_tensor rlxvk_graph_output_tensor(const rlxvk_graph *graph, size_t index);

/* ---- Problems ---- */

typedef struct rlxvk_problem {
    rlxvk_status status;
    rlxvk_tensor tensor; /* what the node gives; RLXVK_NONE: the graph's own, or of a builder call
                            that failed and so added no node (its text has the number) */
    uint32_t node;       /* its number in sentences and dumps; UINT32_MAX where there is none */
    char text[512];      /* a sentence: what, where, values, remedy */
    size_t struct_size;
} rlxvk_problem;

/*
 * All that is wrong with a graph: what is no node's, then in order of nodes. rlxvk_compile and
 * rlxvk_graph_bind end at the first, but that a graph to be built on may have no outputs yet.
 * Without bindings as it was built: the error that sticks to it, nodes whose shape is not what
 * their operands give, outputs. With bindings, which then name every symbol (E_UNBOUND_SYMBOL),
 * also each node that cannot have these sizes. What reads such a node is no problem of its own and
 * is not listed, nor are builder calls after one that failed: they were not made. Writes at most
 * `capacity` of them; *out_count is how many there are, 0 for a sound graph. The problems are no
 * failure of this call: E_RANGE and E_BIND_CONFLICT are, of bindings, and E_OUT_OF_HOST_MEMORY.
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_verify(const rlxvk_graph *graph,
                                                 const rlxvk_binding *bindings,
                                                 size_t binding_count, rlxvk_problem *problems,
                                                 size_t capacity, size_t *out_count);

/* ---- Executables ---- */

/*
 * Executables of graphs with symbols. The graph is compiled once for each binding that comes up and
 * kept; the ones used longest ago go first (cached_bindings). All calls work on the binding in
 * force: that of the last rlxvk_bind_symbols or run.
 *
 * A run whose inputs have the lengths of the binding in force keeps it. Otherwise their lengths
 * tell the sizes: one symbol without a size in an input's shape is length / (product of its other
 * dims), or the root of that where it stands there several times; symbols that another input tells
 * count as known; ROWS is BATCH * SEQ; what no input tells stays as it was. E_LENGTH: no multiple;
 * E_BIND_AMBIGUOUS: two symbols that nothing tells, no whole root, or beside a dim of 0;
 * E_BIND_CONFLICT: two inputs tell two sizes, or ROWS is not BATCH * SEQ; E_UNBOUND_SYMBOL: a
 * symbol without a size. Then as rlxvk_compile, the first time. A run that fails after that leaves
 * the new binding in force.
 *
 * Params and inputs whose shape has no symbol are one for all bindings: they are uploaded once.
 * Params may be set, and feeds and random options, before anything is bound; a param with symbols
 * in its shape is set for each binding (E_UNBOUND_SYMBOL before). Inputs with symbols are to be
 * given again after another binding was in force. Handles go along; one whose shape changes is
 * E_HANDLE_SHAPE, and the binding stays what it was: unbind it first. Calls that need a binding are
 * E_UNBOUND_SYMBOL before there is one; reports are zeros then. Constants belong to each program.
 */

/* Binds symbols for the coming runs; those not named keep their sizes. Waits for all tickets where
 * the binding changes. E_RANGE, E_BIND_CONFLICT (two sizes for one), E_UNBOUND_SYMBOL (a symbol
 * has no size), E_HANDLE_SHAPE, E_UNSUPPORTED (an executable of numbers), and as rlxvk_compile;
 * after an error the binding is what it was. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_bind_symbols(rlxvk_executable *executable,
                                                 const rlxvk_binding *bindings, size_t count);

/* The symbols of an executable and their present sizes, -1 before any is bound. Writes at most
 * `capacity`; *out_count is how many there are: none in one of numbers. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_symbols(const rlxvk_executable *executable,
                                                       rlxvk_binding *bindings, size_t capacity,
                                                       size_t *out_count);

/* The programs of an executable of a graph with symbols: how many are kept, and how often a change
 * of binding found one, made one, or gave one up. */
typedef struct rlxvk_family_report {
    uint32_t members, capacity;
    uint64_t hits, misses, evictions;
    size_t struct_size;
} rlxvk_family_report;
void rlxvk_executable_family(const rlxvk_executable *executable, rlxvk_family_report *out_report);

/* ---- Active extent: runs on the first rows of a bucket ---- */

/*
 * A graph compiled for inputs of up to `upper` rows (bucket_axes) takes fewer without another
 * compile: from now on only the first `actual` of them matter. Inputs, outputs and feeds keep their
 * full lengths. Each output that depends on them has its rows along one axis, of `upper` of them or
 * r times as many: the first actual, or r times as many, are those of a full run, bit for bit. What
 * the others hold, in and out, means nothing, nor does what rlxvk_attention_step appends to caches
 * for them. What a run costs goes with `actual`, also where the rows lie within, as those of each
 * entry of a batch: only dispatches whose workgroups do not go row by row make all of them.
 *
 * That is sound only where no row that matters depends on one that does not: not where a node adds
 * up over rows, say, nor where a reshape leaves an output's rows along no one axis. The compiler
 * proves it op by op, or the extent changes nothing and every run is a full one;
 * rlxvk_extent_supported says which, and what stood in its way.
 *
 * With RLXVK_EXTENT_SHORTER (rlxvk_compile_options.extent_promise) the graph may compute across
 * rows, and gives what it would compiled for the active ones alone: reductions, softmax, norms,
 * running sums, products along the rows and keys of attention end there, so that an encoder takes
 * every length in one recorded program. Matrix products of the rows of a batch, [B, S, K] or
 * [B S, K], take as long as products of the active rows: these are packed before and unpacked
 * behind, by a copy each (rlxvk_pack_first). Results are within the bounds of their ops, and the
 * same bits in every run, whatever the other rows hold. E_UNSUPPORTED, of compiling: a node can
 * neither keep rows apart nor end them; the message names it. Norms along the rows square without
 * scaling: rows above 1e19 are infinite there. Of no rows, where actual is 0, results mean nothing.
 *
 * Stays until it is set again or cleared; clones begin with it; with symbols it is of the binding
 * in force. Waits for all tickets; writes a few bytes, and records nothing but prefix feeds. Where
 * it is what it was, nothing is done. E_EXTENT: not 0 <= actual <= upper, upper is 0, or no divisor
 * of a declared input's rows. E_DEVICE_LOST, E_TIMEOUT, E_OUT_OF_*_MEMORY.
 *
 * Of feeds: rlxvk_set_handle_feed_prefix then copies the first `actual` of the output's upper + 1
 * rows, those before and a new one, by whatever extent, supported or not; an output whose elements
 * are no multiple of upper + 1 is E_EXTENT. rlxvk_set_handle_feed copies all, as ever.
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_active_extent(rlxvk_executable *executable, int64_t actual,
                                                      int64_t upper);
/* All rows matter again. Waits and fails as set_active_extent. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_clear_active_extent(rlxvk_executable *executable);

typedef struct rlxvk_extent_report {
    bool supported;
    const char
        *reason; /* "", or a sentence: the node, its op, and why not; as long as the program */
    int64_t actual, upper;      /* 0 and 0: none is set */
    uint32_t scaled_dispatches; /* that do less for fewer rows, of the plan's */
    size_t struct_size;
} rlxvk_extent_report;
/* Whether an active extent saves work; out_report may be NULL. */
bool rlxvk_extent_supported(const rlxvk_executable *executable, rlxvk_extent_report *out_report);

#ifdef __cplusplus
}
#endif

#endif
