/* Draws the graph of a program: how it differs from the graph as built, and which kernels do the
 * work of each node. */
#include "exec/executable.h"
#include "op/dot.h"
#include "op/view.h"

#include <rlxvk_inspect.h>

#define TITLE_ROOM    4096
#define KERNELS_SHOWN 4 /* of a node */
#define NO_STEP       UINT32_MAX

typedef struct picture {
    const program *program;
    uint32_t *first;    /* per node: its first step; NO_STEP */
    uint32_t *next;     /* per step: the next of its node; NO_STEP */
    uint32_t *partners; /* per node: the other one of its pair; NODE_NONE */
    uint32_t before[OP_COUNT], after[OP_COUNT];
} picture;

/* ---- Nodes ---- */

static void append_step(const program *p, uint32_t index, text *label)
{
    const step *s = &p->schedule.steps.items[index];
    if (s->host) {
        text_append(label, "\non the host");
        return;
    }
    const dispatch *d = &p->schedule.dispatches.items[s->dispatch];
    text_append(label, "\n%s%s%s", kernel_find(d->kernel)->name, d->variant ? " " : "",
                d->variant ? d->variant : "");
}

static bool is_view(const rlxvk_graph *g, uint32_t id)
{
    const node *n = graph_node(g, id);
    uint64_t offset;
    return node_row(n)->family->views.view && node_row(n)->family->views.view(g, n, &offset);
}

static void describe(const void *user, uint32_t id, text *label)
{
    const picture *pic = user;
    uint32_t shown = 0, more = 0;
    for (uint32_t s = pic->first[id]; s != NO_STEP; s = pic->next[s])
        if (shown < KERNELS_SHOWN) {
            append_step(pic->program, s, label);
            shown++;
        } else {
            more++;
        }
    if (more)
        text_append(label, "\nand %u more", more);
    else if (!shown && pic->partners[id] != NODE_NONE)
        text_append(label, "\none step with %%%u", pic->partners[id]);
    else if (!shown && is_view(pic->program->graph, id))
        text_append(label, "\nview");
}

static const char *attributes(const void *user, uint32_t id)
{
    const picture *pic = user;
    const program *p = pic->program;
    uint16_t op = graph_node(p->graph, id)->op;
    uint32_t s = pic->first[id];
    if (s != NO_STEP && p->schedule.steps.items[s].host)
        return ", color=red";
    if (s == NO_STEP && is_view(p->graph, id))
        return ", style=dashed";
    return pic->after[op] > pic->before[op] ? ", penwidth=3" : "";
}

/* ---- The whole ---- */

static void count_ops(const rlxvk_graph *g, uint32_t counts[OP_COUNT])
{
    for (size_t i = 0; i < g->nodes.count; i++)
        counts[g->nodes.items[i].op]++;
}

static void write_title(const picture *pic, char title[TITLE_ROOM])
{
    const program *p = pic->program;
    text t = {.buffer = title, .size = TITLE_ROOM};
    text_append(&t, "as compiled: %zu nodes of %zu that were built", p->graph->nodes.count,
                p->source->nodes.count);
    for (uint32_t i = 0; i < OP_COUNT; i++)
        if (pic->before[i] != pic->after[i])
            text_append(&t, "\n%s: %u -> %u", op_table[i].name, pic->before[i], pic->after[i]);
}

/* Lists the steps of each node, in order of execution. */
static rlxvk_status sort_steps(const program *p, picture *pic)
{
    size_t nodes = p->graph->nodes.count, steps = p->schedule.steps.count;
    pic->first = memory_allocate((nodes + 1) * sizeof *pic->first);
    pic->next = memory_allocate((steps + 1) * sizeof *pic->next);
    pic->partners = pair_partners(p->pairs.items, p->pairs.count, nodes);
    if (!pic->first || !pic->next || !pic->partners)
        return status_fail_memory("a picture");
    for (size_t i = 0; i < nodes; i++)
        pic->first[i] = NO_STEP;
    for (size_t i = steps; i-- > 0;) {
        uint32_t *first = &pic->first[p->schedule.steps.items[i].node];
        pic->next[i] = *first;
        *first = (uint32_t)i;
    }
    return RLXVK_OK;
}

static rlxvk_status write_picture(const program *p, text_output *out)
{
    picture pic = {.program = p};
    char title[TITLE_ROOM];
    rlxvk_status status;
    TRY(sort_steps(p, &pic));
    count_ops(p->source, pic.before);
    count_ops(p->graph, pic.after);
    write_title(&pic, title);
    dot_write(p->graph, &(dot_style){title, describe, attributes, &pic}, out);
error:
    memory_free(pic.first);
    memory_free(pic.next);
    memory_free(pic.partners);
    return status;
}

rlxvk_status rlxvk_executable_dot(const rlxvk_executable *executable, char *buffer, size_t size,
                                  size_t *out_length)
{
    rlxvk_status status;
    TRY(executable_require(executable, "executable_dot"));
    TRY(status_require_items(buffer, size, "executable_dot", "buffer"));
    TRY(status_require(out_length, "executable_dot", "out_length"));
    text_output out = text_output_begin(buffer, size);
    TRY(write_picture(executable->program, &out));
    *out_length = (size_t)out.length;
error:
    return status;
}
