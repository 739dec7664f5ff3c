/*
 * rlxvk: graphs with symbolic dims. A symbol is a dim that gets its size later, for example a batch
 * size or a sequence length; see rlxvk_symbol in rlxvk.h. There are two ways to give it a size.
 * Either rlxvk_graph_bind makes a graph of numbers. Or the graph is compiled with its symbols, and
 * the executable takes sizes at run time, from rlxvk_bind_symbols or the lengths of its inputs.
 *
 * This header also has rlxvk_graph_verify, which lists everything that is wrong with a graph. Its
 * last part is the active extent: runs that use only the first rows of a graph compiled for more.
 */
#ifndef RLXVK_SYMBOLS_H
#define RLXVK_SYMBOLS_H

#include <rlxvk.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Building ---- */

/* Computes a dim from others: a + b, a - b, a * b, or a / b rounded down. Builders of this graph
 * take the result as a size. If both are numbers, so is the result. After an error the call
 * returns 0, and the error sticks to the graph:
 *   E_SHAPE         a dim is negative and not a symbol; b is 0 in a / b; or a - b of two numbers is
 *                   negative
 *   E_UNSUPPORTED   rlxvk_shape_text prints the dim as ?
 *   E_TOO_LARGE     the result overflows
 * If a or b has symbols, rlxvk_dim_sub succeeds, although a - b may be negative for some sizes. A
 * builder call that takes it as a size then fails, unless the graph finds examples that fit. To
 * name one, call rlxvk_set_symbol_example. A binding at which it is negative fails with the
 * builder's error, for example E_SHAPE. */
int64_t rlxvk_dim_add(rlxvk_graph *graph, int64_t a, int64_t b);
int64_t rlxvk_dim_sub(rlxvk_graph *graph, int64_t a, int64_t b);
int64_t rlxvk_dim_multiply(rlxvk_graph *graph, int64_t a, int64_t b);
int64_t rlxvk_dim_div(rlxvk_graph *graph, int64_t a, int64_t b);

/* Writes a shape as text: "BATCHx(SEQ+PAST_SEQ)x64" or "scalar". The text with its final 0 is cut
 * to `size` bytes, or to 128 if `size` is larger. Without a graph, the shape may have only symbols
 * and numbers. "?" is a dim of which the graph does not know how it depends on the symbols.
 * Builders do not take it as a size. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_shape_text(const rlxvk_graph *graph, rlxvk_shape shape,
                                               char *buffer, size_t size);

/* Sets the size of a symbol in the first example. A graph with symbols tries every builder call at
 * three examples, each of which has a size for every symbol. If an example does not fit a call, the
 * graph searches for other sizes. For example, a window must divide a length, or a symbol must
 * equal a number. If the search fails, begin it with a size that fits. The symbol may be in use
 * already. The error sticks to the graph:
 *   E_RANGE   the size is outside 0 .. 2^31 - 1
 *   and the builders' errors, for example E_SHAPE, if the graph cannot have that size. */
void rlxvk_set_symbol_example(rlxvk_graph *graph, uint32_t symbol, int64_t size);

/*
 * Makes a graph in which symbols are replaced by sizes, as if it had been built with these numbers.
 * Shapes are inferred anew; names, outputs and checkpoints stay. A symbol that is not bound stays a
 * symbol. A binding of a symbol that the graph does not have is ignored. If BATCH and SEQ are bound
 * and ROWS is not, ROWS is BATCH * SEQ.
 *
 * The result has no symbols if all are bound. It then suits calls that need numbers; they say so in
 * their contracts. To find a tensor of the source in the result, call
 * rlxvk_graph_tensor.
 *   E_RANGE           a size is outside 0 .. 2^31 - 1
 *   E_BIND_CONFLICT   one symbol is given two sizes
 *   and the builders' errors, if a node cannot have these sizes.
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_bind(const rlxvk_graph *graph,
                                               const rlxvk_binding *bindings, size_t count,
                                               rlxvk_graph **out_graph);

/* Find a tensor in a graph if you do not have the handle that its builder call returned:
 *   graph_tensor          by a tensor of this graph, or of the graph from which this one was bound
 *   graph_tensor_named    by name; if a leaf (an input, param or constant) has it, the leaf
 *   graph_output_tensor   by the index of an output
 *
 * If there is no such tensor, they return RLXVK_NONE and leave a sentence. */
rlxvk_tensor rlxvk_graph_tensor(const rlxvk_graph *graph, rlxvk_tensor tensor);
rlxvk_tensor rlxvk_graph_tensor_named(const rlxvk_graph *graph, const char *name);
rlxvk_tensor rlxvk_graph_output_tensor(const rlxvk_graph *graph, size_t index);

/* ---- Problems ---- */

typedef struct rlxvk_problem {
    rlxvk_status status;
    rlxvk_tensor tensor; /* the result of the node; RLXVK_NONE if there is no such node, for example
                            because a builder call failed (`text` then has its number) */
    uint32_t node;       /* its number in sentences and dumps; UINT32_MAX if there is none */
    char text[512];      /* a sentence: the problem, its place, the values, a remedy */
    size_t struct_size;
} rlxvk_problem;

/*
 * Lists everything that is wrong with a graph: first problems that are not of one node, then those
 * of nodes, in order. Without bindings it checks the graph as built: its sticky error, nodes whose
 * shape does not follow from their operands, and outputs. With bindings, which must name every
 * symbol, it also checks whether each node can have these sizes.
 *
 * Two kinds of consequences are not listed: nodes that read a bad node, and builder calls after one
 * that failed. The first problem in the list is the error of rlxvk_compile and rlxvk_graph_bind.
 * Only E_NO_OUTPUTS is not an error of rlxvk_graph_bind, because you may go on building its result.
 *
 * Writes at most `capacity` problems; *out_count is how many there are, 0 for a sound graph. This
 * call succeeds even if it finds problems. It fails with:
 *   E_UNBOUND_SYMBOL   the bindings lack a symbol of the graph
 *   E_RANGE            a binding's size is outside 0 .. 2^31 - 1
 *   E_BIND_CONFLICT    one symbol is given two sizes
 *   E_OUT_OF_HOST_MEMORY
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_verify(const rlxvk_graph *graph,
                                                 const rlxvk_binding *bindings,
                                                 size_t binding_count, rlxvk_problem *problems,
                                                 size_t capacity, size_t *out_count);

/* ---- Executables ---- */

/*
 * Executables of graphs with symbols. The graph is compiled the first time that a set of sizes (a
 * binding) comes up. The compiled program is kept. If there are more than the compile option
 * cached_bindings (0: 8), the one used longest ago is dropped. Every call works on the present
 * binding, which the last rlxvk_bind_symbols or run has set.
 *
 * A run keeps the present binding if its inputs have the lengths of that binding. Otherwise it
 * computes the sizes from the lengths. If one symbol of an input's shape is unknown, it is the
 * length divided by the product of the other dims. If that symbol stands there k times, it is the
 * k-th root of this quotient. Symbols that another input tells count as known. ROWS is BATCH * SEQ.
 * A symbol that no input tells keeps its size.
 *   E_LENGTH           a length is not a multiple of the product of the known dims
 *   E_BIND_AMBIGUOUS   an input has two unknown symbols; a root is not whole; or a known dim is 0
 *   E_BIND_CONFLICT    two inputs tell different sizes, or ROWS is not BATCH * SEQ
 *   E_UNBOUND_SYMBOL   a symbol has no size
 *   and the errors of rlxvk_compile if the binding is new.
 *
 * If the run itself fails after that, the new binding stays.
 *
 * If the shape of a param or input has no symbol, all bindings have it in common: it is uploaded
 * once. Such params, feeds and random options may be set before any binding. A param with symbols
 * in its shape must be set for each binding. An input with symbols in its shape must be given again
 * after a change of binding, because its content is not kept; a run without it fails with
 * E_MISSING_INPUT. Handles are kept. If the shape of a handle would change, the call fails with
 * E_HANDLE_SHAPE and the binding stays: unbind the handle first. If nothing is bound yet, calls
 * that need a binding fail with E_UNBOUND_SYMBOL and reports are zeros. Each program has its own
 * constants.
 */

/* Binds symbols for the coming runs; symbols that are not named keep their sizes. If the binding
 * changes, this waits for all tickets. After an error the binding is the old one.
 *   E_RANGE            a size is outside 0 .. 2^31 - 1
 *   E_BIND_CONFLICT    one symbol is given two sizes
 *   E_UNBOUND_SYMBOL   a symbol has no size
 *   E_HANDLE_SHAPE     a handle would change its shape
 *   E_UNSUPPORTED      the executable has no symbols, for example because the compile option
 *                      `bindings` gave the sizes of all
 *   and the errors of rlxvk_compile. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_bind_symbols(rlxvk_executable *executable,
                                                 const rlxvk_binding *bindings, size_t count);

/* Lists the symbols of an executable with their present sizes, which are -1 before any is bound.
 * Writes at most `capacity`; *out_count is how many there are, 0 if the executable has none. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_symbols(const rlxvk_executable *executable,
                                                       rlxvk_binding *bindings, size_t capacity,
                                                       size_t *out_count);

/* The bindings whose programs an executable with symbols keeps: how many there are (`members`), and
 * how often a change of binding found one (hits), compiled one (misses) or dropped one (evictions).
 */
typedef struct rlxvk_cached_bindings_report {
    uint32_t members, capacity;
    uint64_t hits, misses, evictions;
    size_t struct_size;
} rlxvk_cached_bindings_report;
void rlxvk_executable_cached_bindings(const rlxvk_executable *executable,
                                      rlxvk_cached_bindings_report *out_report);
/* Their names in 0.1. */
typedef rlxvk_cached_bindings_report rlxvk_family_report;
void rlxvk_executable_family(const rlxvk_executable *executable,
                             rlxvk_cached_bindings_report *out_report);

/* ---- Active extent: runs on the first rows of a bucket ---- */

/*
 * Makes runs use only the first rows. Compile for inputs of up to `upper` rows (compile option
 * bucket_axes); from this call on, only the first `actual` of these rows are active, and nothing is
 * compiled again. Buffers of inputs, outputs and feeds keep their full lengths.
 *
 * Each output that depends on such inputs has `upper` rows along one axis, or r times as many. Its
 * first `actual` rows, or r times as many, are those of a full run, bit for bit. Contents of the
 * other rows mean nothing, in inputs and in outputs. The same holds for rows that
 * rlxvk_attention_step appends to caches for them. A run costs less if `actual` is smaller, also if
 * each entry of a batch has such rows. Only dispatches whose workgroups do not go row by row still
 * compute all rows.
 *
 * This needs a graph in which no active row depends on an inactive one. For example, a sum over the
 * rows does not allow it, nor a reshape after which an output's rows are not along one axis. The
 * compiler checks every op. If one does not allow it, the extent has no effect and every run is a
 * full one. To learn whether that is so and which node is the reason, call rlxvk_extent_supported.
 *
 * RLXVK_EXTENT_SHORTER (compile option extent_promise) allows ops to compute across the rows. The
 * result is then that of the graph compiled for only the active rows. Reductions, softmax, norms,
 * running sums, products along the rows and the keys of attention end at the last active row. An
 * encoder can so take every length in one recorded program. A product of the rows of a batch,
 * [B, S, K] or [B * S, K], takes as long as a product of the active rows. For that, one copy before
 * it packs these rows and one after it unpacks them (rlxvk_pack_first). Results are within the
 * bounds of their ops. They have the same bits in every run, whatever the inactive rows hold. Norms
 * along the rows square without scaling, so rows with values above 1e19 give infinity. If `actual`
 * is 0, results mean nothing. If a node can neither keep rows apart nor end them, rlxvk_compile
 * fails with E_UNSUPPORTED and names the node.
 *
 * The extent stays until it is set again or cleared. Clones begin with it. If the executable has
 * symbols, it belongs to the present binding. The call waits for all tickets and writes a few
 * bytes; it records nothing except prefix feeds. If nothing changes, it does nothing.
 *
 * Prefix feeds (rlxvk_set_handle_feed_prefix) expect an output of upper + 1 rows: the old ones and
 * one new. They copy its first `actual` rows, even if the extent is not supported.
 * rlxvk_set_handle_feed still copies everything.
 *   E_EXTENT   not 0 <= actual <= upper, or upper is 0
 *   E_EXTENT   `upper` does not divide the rows of a declared input
 *   E_EXTENT   the elements of an output with a prefix feed are not a multiple of upper + 1
 *   E_DEVICE_LOST, E_TIMEOUT, E_OUT_OF_*_MEMORY
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_active_extent(rlxvk_executable *executable, int64_t actual,
                                                      int64_t upper);
/* All rows are active again. Waits and fails as rlxvk_set_active_extent. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_clear_active_extent(rlxvk_executable *executable);

typedef struct rlxvk_extent_report {
    bool supported;
    const char *reason;    /* "", or the node, its op and why not; lives as long as the program */
    int64_t actual, upper; /* both 0 if none is set */
    uint32_t scaled_dispatches; /* how many dispatches do less for fewer rows */
    size_t struct_size;
} rlxvk_extent_report;
/* Whether an active extent has an effect, that is, saves work; out_report may be NULL. */
bool rlxvk_extent_supported(const rlxvk_executable *executable, rlxvk_extent_report *out_report);

#ifdef __cplusplus
}
#endif

#endif
