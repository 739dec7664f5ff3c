/* See dot.h. Labels are quoted UTF-8 strings; names in them may have any bytes. */
#include "op/dot.h"
#include "graph/symbol.h"

#include <rlxvk_inspect.h>
#include <string.h>

#define LABEL_ROOM      2048
#define ATTRIBUTES_ROOM 256 /* of a label; the description of a region may be long */

/* The number of bytes of the UTF-8 sequence that begins here; 0 if there is no valid one. */
static size_t sequence(const unsigned char *at)
{
    size_t length = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
    if (*at > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

static void write_string(text_output *out, const char *string)
{
    text_output_bytes(out, "\"", 1);
    for (const unsigned char *at = (const unsigned char *)string; *at;) {
        size_t length = sequence(at);
        if (*at == '\n')
            text_output_bytes(out, "\\n", 2);
        else if (*at == '"' || *at == '\\')
            text_output_format(out, "\\%c", *at);
        else if (length == 0 || *at < 0x20 || *at == 0x7f)
            text_output_format(out, "\\\\x%02x", *at); /* shows as \x07 */
        else
            text_output_bytes(out, (const char *)at, length);
        at += MAX(length, 1);
    }
    text_output_bytes(out, "\"", 1);
}

static const char *leaf_style(const node *n)
{
    if (node_is_input(n))
        return ", shape=ellipse, style=filled, fillcolor=lightblue";
    if (node_is_param(n))
        return ", style=filled, fillcolor=khaki";
    return node_is_constant(n) ? ", style=filled, fillcolor=lightgray" : "";
}

static void write_node(const rlxvk_graph *g, uint32_t id, const dot_style *style, text_output *out)
{
    const node *n = graph_node(g, id);
    rlxvk_shape shape = symbol_shape(g, id);
    char label[LABEL_ROOM] = "", attributes[ATTRIBUTES_ROOM] = "", shown[SHAPE_TEXT];
    text t = {.buffer = label, .size = sizeof label};
    bool leaf = n->input_count == 0 && leaf_style(n)[0];
    text_append(&t, "%%%u %s", id, node_row(n)->name);
    if (n->name)
        text_append(&t, " '%.1000s'", n->name);
    text_append(&t, "\n%s %s", rlxvk_dtype_name((rlxvk_dtype)n->dtype),
                symbol_shape_text(g, &shape, shown));
    if (node_row(n)->family->describe)
        node_row(n)->family->describe(n, &(text){.buffer = attributes, .size = sizeof attributes});
    if (*attributes)
        text_append(&t, "\n%s", attributes + (attributes[0] == ' '));
    if (!leaf && style->describe)
        style->describe(style->user, id, &t);
    text_output_format(out, "  n%u [label=", id);
    write_string(out, label);
    text_output_format(out, "%s%s];\n", leaf_style(n),
                       !leaf && style->attributes ? style->attributes(style->user, id) : "");
}

static void write_edges(const rlxvk_graph *g, uint32_t id, text_output *out)
{
    const node *n = graph_node(g, id);
    uint32_t writes = node_writes(n);
    for (uint32_t i = 0; i < n->input_count; i++) {
        text_output_format(out, "  n%u -> n%u", n->inputs[i], id);
        bool both = i < 32 && (writes >> i & 1), several = n->input_count > 1;
        if (several)
            text_output_format(out, " [label=\"%u\"%s]", i, both ? ", dir=both" : "");
        else if (both)
            text_output_format(out, " [dir=both]");
        text_output_format(out, ";\n");
    }
}

void dot_write(const rlxvk_graph *g, const dot_style *style, text_output *out)
{
    text_output_format(out, "digraph rlxvk {\n  node [shape=box];\n");
    if (style->title) {
        text_output_format(out, "  labelloc=t;\n  label=");
        write_string(out, style->title);
        text_output_format(out, ";\n");
    }
    for (uint32_t id = 0; id < g->nodes.count; id++)
        write_node(g, id, style, out);
    for (size_t i = 0; i < g->outputs.count; i++)
        text_output_format(out,
                           "  out%zu [label=\"output %zu\", shape=doubleoctagon, style=filled, "
                           "fillcolor=palegreen];\n",
                           i, i);
    for (uint32_t id = 0; id < g->nodes.count; id++)
        write_edges(g, id, out);
    for (size_t i = 0; i < g->outputs.count; i++)
        text_output_format(out, "  n%u -> out%zu;\n", g->outputs.items[i], i);
    text_output_format(out, "}\n");
}

rlxvk_status rlxvk_graph_dot(const rlxvk_graph *graph, char *buffer, size_t size,
                             size_t *out_length)
{
    rlxvk_status status;
    TRY(status_require(graph, "graph_dot", "graph"));
    TRY(status_require_items(buffer, size, "graph_dot", "buffer"));
    TRY(status_require(out_length, "graph_dot", "out_length"));
    text_output out = text_output_begin(buffer, size);
    dot_write(graph, &(dot_style){0}, &out);
    *out_length = (size_t)out.length;
error:
    return status;
}
