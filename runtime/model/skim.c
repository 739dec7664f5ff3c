/* See skim.h. The walk goes down the fields of which the weights are: the graph of a model, its
 * initializers, their raw elements. Before it reads a field's head, it loads the bytes there. */
#include "model/skim.h"

enum {
    BLOCK = 1 << 16, /* bytes loaded at a time */
    HEAD = 20,       /* a field's number and its length or value take no more */
    LEVELS = 3
};

static const uint32_t fields[LEVELS] = {7, 5, 9};

typedef struct skim {
    const input_file *file;
    uint8_t *bytes;
    uint64_t loaded;     /* all before it is loaded or left out */
    rlxvk_status status; /* of reading the file */
} skim;

/* Loads the bytes before `end`, and some more. */
static rlxvk_status load(skim *s, uint64_t end)
{
    uint64_t left = s->file->length - s->loaded, size;
    if (end <= s->loaded)
        return RLXVK_OK;
    size = MIN(MAX(end - s->loaded, BLOCK), left);
    s->status = input_read(s->file, s->loaded, size, s->bytes + s->loaded);
    s->loaded += size;
    return s->status;
}

/* Walks over the fields of a message, whose first byte may not be loaded yet. */
static rlxvk_status walk(skim *s, wire_span message, uint32_t level)
{
    wire_cursor c = wire_begin(message, s->bytes);
    wire_field f;
    rlxvk_status status = RLXVK_OK;
    while (c.at != c.end) {
        uint64_t next;
        TRY(load(s, MIN((uint64_t)(c.at - s->bytes) + HEAD, (uint64_t)(c.end - s->bytes))));
        TRY(wire_next(&c, &f));
        next = (uint64_t)(c.at - s->bytes);
        if (f.number != fields[level] || f.kind != WIRE_BYTES)
            TRY(load(s, next));
        else if (level + 1 < LEVELS)
            TRY(walk(s, f.bytes, level + 1));
        else if (f.bytes.size < SKIM_BYTES)
            TRY(load(s, next));
        else
            s->loaded = MAX(s->loaded, next);
    }
error:
    return status;
}

rlxvk_status skim_file(const input_file *file, uint8_t *bytes)
{
    skim s = {.file = file, .bytes = bytes};
    if (walk(&s, (wire_span){bytes, (size_t)file->length}, 0) == RLXVK_OK || s.status != RLXVK_OK)
        return s.status;
    return load(&s, file->length);
}

void skim_mark(const input_file *file, onnx_model *model)
{
    for (size_t i = 0; i < model->graph.initializer_count; i++) {
        onnx_tensor *t = &model->graph.initializers[i];
        if (t->location || !t->has_raw || t->raw.size < SKIM_BYTES)
            continue;
        t->source = file;
        t->offset = (uint64_t)(t->raw.bytes - model->file);
    }
}
