/*
 * Many prompts at once: as many as the model has sequences, each in a place of its own. Prompts run
 * one by one; a step runs all places, and one whose answer has ended is given the next prompt.
 */
#include "cli/clock.h"
#include "cli/generate.h"
#include "cli/output.h"

/* One sequence of the model. */
typedef struct place {
    batch_item *item; /* NULL: idle */
    uint64_t left;    /* tokens that may still follow */
} place;

typedef struct batch {
    session *session;
    uint32_t count; /* places */
    place *places;
    uint32_t *ids;        /* what each place runs next */
    size_t next, printed; /* items */
} batch;

/* What ended first waits for those before it. */
static rlxvk_status print_finished(batch *b)
{
    const session *s = b->session;
    rlxvk_status status = RLXVK_OK;
    if (s->options->json)
        return RLXVK_OK;
    for (; b->printed < s->items.count && s->items.items[b->printed].done; b->printed++)
        TRY(generate_print_line(s, &s->items.items[b->printed].made));
error:
    return status;
}

/* The latest token of a place; the answer may end with it. */
static rlxvk_status take_token(batch *b, uint32_t at, uint32_t token)
{
    place *p = &b->places[at];
    if (!VECTOR_PUSH(&p->item->made, token))
        return status_fail_memory("tokens");
    b->ids[at] = token;
    if (--p->left > 0 && !tokenizer_is_end(b->session->tokenizer, token))
        return RLXVK_OK;
    p->item->done = true;
    p->item = NULL;
    b->ids[at] = LLAMA_IDLE;
    return print_finished(b);
}

/* Gives a free place prompts until one has an answer of more than a token. */
static rlxvk_status fill_place(batch *b, uint32_t at)
{
    session *s = b->session;
    place *p = &b->places[at];
    rlxvk_status status = RLXVK_OK;
    while (!p->item && b->next < s->items.count) {
        batch_item *item = &s->items.items[b->next++];
        llama_select(s->model, at);
        llama_rewind(s->model);
        p->left = MIN(s->options->tokens, llama_room(s->model) - item->prompt.count);
        if (p->left == 0) {
            item->done = true;
            TRY(print_finished(b));
            continue;
        }
        p->item = item;
        TRY(generate_run_prompt(s, &item->prompt));
        TRY(take_token(b, at, s->next));
    }
error:
    return status;
}

static rlxvk_status step(batch *b, uint32_t active)
{
    session *s = b->session;
    double start = clock_seconds();
    rlxvk_status status;
    TRY(llama_step(s->model, b->ids, NULL, b->ids));
    generate_time_step(s, clock_seconds() - start, active);
    for (uint32_t at = 0; at < b->count; at++)
        if (b->places[at].item)
            TRY(take_token(b, at, b->ids[at]));
error:
    return status;
}

static rlxvk_status run_all(batch *b)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t active = 1; active > 0;) {
        active = 0;
        for (uint32_t at = 0; at < b->count; at++) {
            TRY(fill_place(b, at));
            active += b->places[at].item != NULL;
        }
        if (active)
            TRY(step(b, active));
    }
error:
    return status;
}

rlxvk_status generate_batch(session *s)
{
    batch b = {.session = s, .count = (uint32_t)MIN(s->items.count, s->options->parallel)};
    rlxvk_status status = RLXVK_OK;
    b.places = memory_zeroed(b.count, sizeof *b.places);
    b.ids = memory_zeroed(b.count, sizeof *b.ids);
    if (!b.places || !b.ids)
        TRY(status_fail_memory("batch"));
    for (uint32_t at = 0; at < b.count; at++)
        b.ids[at] = LLAMA_IDLE;
    TRY(run_all(&b));
error:
    memory_free(b.places);
    memory_free(b.ids);
    return status;
}
