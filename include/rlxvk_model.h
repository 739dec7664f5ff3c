/*
 * rlxvk: models from files. A model file has a graph and its weights, as a framework has exported
 * them. It becomes an rlxvk_graph, or an executable in one step:
 *
 *   rlxvk_model *model = NULL;
 *   rlxvk_executable *executable = NULL;
 *   rlxvk_model_binding batch = {.name = "batch", .size = 1};
 *   rlxvk_model_graph_options options = {.bindings = &batch, .binding_count = 1};
 *   if (rlxvk_model_open("net.onnx", NULL, &model) ||
 *       rlxvk_model_executable(model, context, &options, NULL, &executable))
 *       puts(rlxvk_last_error());
 *
 * The format is ONNX or GGUF; the file's content tells. ONNX.md, beside this header, lists the ops
 * of ONNX that rlxvk takes. What cannot be expressed is refused before anything runs:
 * rlxvk_model_problems lists all of it.
 *
 * A GGUF file is a language model. Its graph runs whole texts, without caches: input "tokens"
 * [batch, length], I32, to output "logits" [batch, length, vocabulary]. Both dims have these names.
 * A text begins at position 0, and each position sees only those before it. Params have the names
 * of the file, and matrices stay packed. Tables of rotations are computed: "rope.table", and
 * "rope.table.local" if some blocks rotate differently. MODELS.md lists the architectures. A split
 * model is opened by the path of any of its files. Since 0.3.
 *
 * Sizes. A dim of an input may have a name instead of a number. It then becomes a symbol of the
 * graph (rlxvk_symbols.h), or a number if the options bind it. Some ops take a size from an
 * operand, for example the shape of Reshape. What the file computes from shapes and constants is
 * computed while the graph is built. If such an operand is an input, the options give its value,
 * and it is no input of the graph.
 *
 * Some ops give as many elements as the data of a run decides, for example NonZero. Their results
 * have the largest size that they can have. If such a result is an output, the graph has one more
 * output, behind those of the file, which says how many elements there are (count_output in
 * rlxvk_model_info). Ops that do not keep these elements apart are refused.
 *
 * Types. The graph's tensors have the types of the file. But UINT16 becomes U32, UINT64 becomes
 * I64, integers of 4 and 2 bits become I8 or U8, floats of 8 and 4 bits become F32, and results of
 * F64 have the precision of f32. Integers are exact up to 2^24
 * in magnitude, because tensors are f32 words. Integers of 8 bits wrap around as they should; wider
 * ones do not. A larger constant is refused.
 *
 * Files are not trusted. Every length is checked before memory is allocated for it.
 *
 * A model is used by one thread at a time. Graphs and executables do not need it any more once they
 * are made.
 */
#ifndef RLXVK_MODEL_H
#define RLXVK_MODEL_H

#include <rlxvk.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlxvk_model rlxvk_model;

/* ---- Opening ---- */

typedef struct rlxvk_model_options {
    /* The folder of weights that are in files of their own. NULL: that of the model's path; a model
     * from bytes then has no such files. Only files in it, or in folders below, are read. */
    const char *folder;
    size_t struct_size;
} rlxvk_model_options;

/*
 * Reads a model and checks its names and order. The first takes a path. It keeps the file open,
 * because large weights are read when they are needed: the file must stay as it is until
 * rlxvk_model_destroy. The second takes bytes, which are not copied and must stay, too.
 *   E_FILE            the file cannot be read, is damaged, or is no model
 *   E_DUP_NAME        two values have one name
 *   E_UNKNOWN_NAME    a name is of no value
 *   E_ORDER           nodes need each other in a circle
 *   E_UNSUPPORTED     graphs are nested more than 64 deep, a tensor has more than 8 axes, or a GGUF
 *                     file has an architecture or a type of weights that is not supported
 *   E_SHAPE, E_RANGE  numbers or shapes of a GGUF file contradict each other
 *   E_TOO_LARGE       the file does not fit the address space
 *   E_ATTR, E_OUT_OF_HOST_MEMORY
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_model_open(const char *path, const rlxvk_model_options *options,
                                               rlxvk_model **out_model);
RLXVK_MUST_CHECK rlxvk_status rlxvk_model_open_bytes(const void *bytes, size_t size,
                                                     const rlxvk_model_options *options,
                                                     rlxvk_model **out_model);
void rlxvk_model_destroy(rlxvk_model *model);

/* An input or output of a model. Strings live as long as the model. */
typedef struct rlxvk_model_info {
    const char *name;
    const char *type;  /* as the format names it: "FLOAT", "UINT16"; "?" for other than tensors */
    rlxvk_dtype dtype; /* in the graph; RLXVK_DTYPE_COUNT if rlxvk has no such type */
    bool has_shape;    /* the file tells the shape of an output seldom, of an input nearly always */
    rlxvk_shape shape; /* of an input, dims that are no numbers are symbols; of an output, -1 */
    const char *dim_names[RLXVK_MAX_RANK]; /* of dims that are no numbers; else NULL. If the file
                                              has none, "input.axis", for example "x.0" */
    /* An input of which the last rlxvk_model_graph or rlxvk_model_executable needed the value and
     * did not have it. */
    bool needs_value;
    /* Of an output whose size the data of a run decides, after the last rlxvk_model_graph or
     * rlxvk_model_executable with all outputs: axis count_axis of the output has the largest size
     * that it can have. Output `count_output` of the graph, I64, tells how many indices of it
     * matter in a run; the others are 0 or have no meaning. 0: the output has its own size. */
    uint32_t count_output, count_axis;
    size_t struct_size;
} rlxvk_model_info;

/* Lists the inputs or outputs in the order of the file. Weights are no inputs. Writes at most
 * `capacity` items (`infos` may be NULL if it is 0). *out_count is how many there are. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_model_inputs(const rlxvk_model *model, rlxvk_model_info *infos,
                                                 size_t capacity, size_t *out_count);
RLXVK_MUST_CHECK rlxvk_status rlxvk_model_outputs(const rlxvk_model *model, rlxvk_model_info *infos,
                                                  size_t capacity, size_t *out_count);

/* ---- Graphs and executables ---- */

/* The size of a named dim. */
typedef struct rlxvk_model_binding {
    const char *name;
    int64_t size; /* >= 0 */
    size_t struct_size;
} rlxvk_model_binding;

/* The value of an input that decides sizes. */
typedef struct rlxvk_model_value {
    const char *name;
    const void *data;  /* in the host encoding of `dtype` */
    size_t length;     /* values, not bytes. They have the input's shape; if the file does not tell
                          it, they are a row */
    rlxvk_dtype dtype; /* I64, F32, F64 or BOOL; rounded to the input's type */
    size_t struct_size;
} rlxvk_model_value;

typedef struct rlxvk_model_graph_options {
    const rlxvk_model_binding *bindings; /* dims that are not bound stay symbols */
    size_t binding_count;
    const rlxvk_model_value *values;
    size_t value_count;
    const char *const *outputs; /* names of values to be the outputs; NULL: those of the file */
    size_t output_count;
    size_t struct_size;
} rlxvk_model_graph_options;

/* One thing that keeps a model from becoming a graph. Strings live until the next
 * rlxvk_model_graph or rlxvk_model_executable of the model, or its end. */
typedef struct rlxvk_model_problem {
    rlxvk_status status;
    const char *node;      /* its name, or that of its first output; "" if it is of no node */
    const char *op;        /* "Resize", "com.microsoft:Attention"; "" if it is of no node */
    const char *attribute; /* "" if it is of none */
    const char *text;      /* why, and the nearest remedy */
    size_t struct_size;
} rlxvk_model_problem;

/*
 * Builds the graph with the builder calls of the other headers. Inputs, params and outputs have the
 * names and the order of the file. Floating-point weights become params, unless they have only one
 * element. All others become constants. rlxvk_model_executable sets the params. If you compile the
 * graph yourself, set them from elsewhere, for example by rlxvk_load_params.
 *   E_UNKNOWN_NAME   a binding, value or output names nothing in the model
 *   E_RANGE          a size is outside 0 .. 2^31 - 1, or a length above a language model's context
 *   E_LENGTH         a value has another length than its input's shape says
 *   E_DTYPE          a value's dtype is none of those above
 *   E_NULL, E_ATTR   a name is NULL; a bad struct_size
 *   E_UNSUPPORTED    an op, an attribute or a type is not taken; or an operand decides a size, and
 *                    is not known
 *   E_RANGE          an integer constant is beyond 2^24
 *   and the errors of builder calls. The first problem of rlxvk_model_problems is the error.
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_model_graph(rlxvk_model *model,
                                                const rlxvk_model_graph_options *options,
                                                rlxvk_graph **out_graph);

/* Lists the problems of the last rlxvk_model_graph or rlxvk_model_executable, in the order of the
 * nodes. Nodes that read results of a bad node are left out. After a builder call has failed, later
 * nodes are looked at for unknown ops only. Writes at most `capacity`; *out_count is how many there
 * are. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_model_problems(const rlxvk_model *model,
                                                   rlxvk_model_problem *problems, size_t capacity,
                                                   size_t *out_count);

/* A node of the file. Strings live as long as the model. */
typedef struct rlxvk_model_source {
    const char *name; /* of the node, or of its first output; "" for inputs of the model */
    const char *op;   /* "Conv"; "" */
    size_t struct_size;
} rlxvk_model_source;

/* Finds the node of the file for which node `node` of the last graph was made. Reports of the graph
 * and of its executable have such numbers: node_id of rlxvk_step_time, node of rlxvk_wrong_node. If
 * a function or a graph inside a node was inlined, it is the innermost node. The results of nodes
 * also have the names of the file in the graph. Errors: E_NULL. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_model_node(const rlxvk_model *model, uint32_t node,
                                               rlxvk_model_source *out_source);

/* Builds the graph, compiles it, and sets its params. Params that are shared with another
 * executable (compile option share_with) keep their content: so a second binding of a model
 * uploads nothing. Errors are those of rlxvk_model_graph, rlxvk_compile and
 * rlxvk_set_params. E_FILE: weights cannot be read from the model's file, or from one beside it. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_model_executable(rlxvk_model *model, rlxvk_context *context,
                                                     const rlxvk_model_graph_options *options,
                                                     const rlxvk_compile_options *compile_options,
                                                     rlxvk_executable **out_executable);

#ifdef __cplusplus
}
#endif

#endif
