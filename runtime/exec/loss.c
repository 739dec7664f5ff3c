/* See loss.h. The kernels that were submitted last are known from the last batch of command
 * buffers, which nobody has changed since. */
#include "exec/loss.h"
#include "exec/bounded.h"

enum { NAMED_KERNELS = 8 };

/* The kernels of dispatches in order. Equal neighbours are one entry. */
typedef struct kernel_list {
    struct {
        uint16_t kernel;
        uint32_t count;
    } items[NAMED_KERNELS]; /* the last ones, as a ring */
    uint64_t entries, dispatches;
} kernel_list;

static void add_kernel(kernel_list *list, uint16_t kernel)
{
    size_t last = (list->entries + NAMED_KERNELS - 1) % NAMED_KERNELS;
    list->dispatches++;
    if (list->entries && list->items[last].kernel == kernel) {
        list->items[last].count++;
        return;
    }
    last = list->entries++ % NAMED_KERNELS;
    list->items[last].kernel = kernel;
    list->items[last].count = 1;
}

static void add_segment(const rlxvk_executable *e, const segment *g, kernel_list *list)
{
    const schedule *s = &e->program->schedule;
    for (uint32_t i = g->first; i < g->first + g->count; i++)
        add_kernel(list, s->dispatches.items[s->steps.items[i].dispatch].kernel);
}

/* Whether these are commands of a segment, whole or in parts. Of parts, all dispatches of the
 * segment are told. */
static bool is_of(const rlxvk_executable *e, uint32_t index, VkCommandBuffer commands)
{
    const bounded_segment *s = e->bounded ? &e->bounded->segments[index] : NULL;
    bool found = e->segments[index] == commands || e->rests[index] == commands;
    for (size_t i = 0; s && i < s->commands.count; i++)
        found = found || s->commands.items[i] == commands;
    return found || (s && s->group == commands);
}

/* Adds the dispatches of a command buffer, if it is that of a segment. */
static void add_commands(const rlxvk_executable *e, VkCommandBuffer commands, kernel_list *list)
{
    const plan *p = &e->program->plan;
    for (uint32_t i = 0; i < p->segments.count; i++)
        if (!p->segments.items[i].host && is_of(e, i, commands))
            add_segment(e, &p->segments.items[i], list);
}

static void append_kernels(const kernel_list *list, text *out)
{
    uint64_t first = list->entries - MIN(list->entries, NAMED_KERNELS);
    if (!list->entries)
        return;
    text_append(out, "; submitted last (%llu dispatches):%s", (unsigned long long)list->dispatches,
                first ? " .." : "");
    for (uint64_t i = first; i < list->entries; i++) {
        text_append(out, "%s%s", i > first ? ", " : " ",
                    kernel_table[list->items[i % NAMED_KERNELS].kernel].name);
        if (list->items[i % NAMED_KERNELS].count > 1)
            text_append(out, " x %u", list->items[i % NAMED_KERNELS].count);
    }
}

/* Appends the kernel and the node of a dispatch, by its number from 1. */
static void append_dispatch(const rlxvk_executable *e, uint32_t number, text *out)
{
    const dispatch *d = &e->program->schedule.dispatches.items[number - 1];
    char label[NODE_LABEL];
    text_append(out, "%u (%s of %s)", number, kernel_table[d->kernel].name,
                op_node_label(e->program->graph, d->node, label));
}

static void append_marks(const rlxvk_executable *e, text *out)
{
    const schedule *s = &e->program->schedule;
    if (!e->program->options.marks)
        return;
    vk_marks marks =
        vk_marks_read(e->device, &e->marks, s->dispatches.items, (uint32_t)s->dispatches.count);
    if (!marks.begun)
        return;
    text_append(out, "; the device had begun dispatch ");
    append_dispatch(e, marks.begun, out);
    if (marks.reached) {
        text_append(out, ", and ended all before dispatch ");
        append_dispatch(e, marks.reached, out);
    }
}

static rlxvk_status explain(const rlxvk_executable *e, rlxvk_status status)
{
    kernel_list list = {0};
    char more[LAST_ERROR_SIZE] = "";
    text out = {more, sizeof more, 0};
    for (uint32_t i = 0; i < e->last_batch_count; i++)
        add_commands(e, e->batch[i], &list);
    append_kernels(&list, &out);
    append_marks(e, &out);
    vk_append_fault(e->device, &out);
    return status_fail(status, "%s%s", rlxvk_last_error(), more);
}

rlxvk_status loss_explain(const rlxvk_executable *e, rlxvk_status status)
{
    bool lost = status == RLXVK_E_DEVICE_LOST && !vk_is_foreign(e->device);
    return lost ? explain(e, status) : status;
}
