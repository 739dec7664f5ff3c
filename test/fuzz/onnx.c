/*
 * Fuzzes ONNX files: the reader, names and order, and the graph that they become. Any file may be
 * refused, but with a sentence and its problems. If it is accepted, its graph is sound.
 */
#include "fuzz.h"
#include "op/op.h"
#include "support/fuzz_input.h"

#include <rlxvk_model.h>

enum { MOST_LISTED = 4 };

/* How many inputs got how far. */
static struct {
    uint64_t files, graphs;
} reached;

static void check_list(const char *what, rlxvk_status status, size_t listed, size_t count)
{
    FUZZ_CHECK(status == RLXVK_OK && listed <= MAX(count, MOST_LISTED), "%s: %s", what,
               rlxvk_last_error());
}

static void list_values(const rlxvk_model *m)
{
    rlxvk_model_info infos[MOST_LISTED];
    size_t count;
    check_list("inputs", rlxvk_model_inputs(m, infos, MOST_LISTED, &count), 0, 0);
    for (size_t i = 0; i < MIN(count, MOST_LISTED); i++)
        FUZZ_CHECK(infos[i].name && infos[i].type && infos[i].shape.rank <= RLXVK_MAX_RANK,
                   "an input without a name, type or rank");
    check_list("outputs", rlxvk_model_outputs(m, infos, MOST_LISTED, &count), 0, 0);
}

/* The problems of a refused model have an op or a name, and a text. */
static void list_problems(const rlxvk_model *m)
{
    rlxvk_model_problem problems[MOST_LISTED];
    size_t count;
    check_list("problems", rlxvk_model_problems(m, problems, MOST_LISTED, &count), 0, 0);
    for (size_t i = 0; i < MIN(count, MOST_LISTED); i++)
        FUZZ_CHECK(problems[i].status != RLXVK_OK && *problems[i].text, "a problem without a text");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rlxvk_model *m = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_status status = rlxvk_model_open_bytes(data, size, NULL, &m);
    FUZZ_CHECK((status == RLXVK_OK) == (m != NULL), "a model and an error");
    FUZZ_CHECK(m || *rlxvk_last_error(), "no model and no sentence");
    if (m) {
        reached.files++;
        list_values(m);
        status = rlxvk_model_graph(m, NULL, &g);
        FUZZ_CHECK((status == RLXVK_OK) == (g != NULL), "a graph and an error");
        list_problems(m);
        if (g) {
            reached.graphs++;
            status = op_verify(g);
            FUZZ_CHECK(status == RLXVK_OK || status == RLXVK_E_NO_OUTPUTS, "the graph: %s",
                       rlxvk_last_error());
        }
    }
    rlxvk_graph_destroy(g);
    rlxvk_model_destroy(m);
    return 0;
}

void fuzz_report(void)
{
    printf("accepted: %llu files, %llu graphs\n", (unsigned long long)reached.files,
           (unsigned long long)reached.graphs);
}
