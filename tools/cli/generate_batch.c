/*
 * Runs many prompts at once, as many as the model has sequences. Each runs in a place of its own. A
 * step runs all places. If answers have ended, their places get the next prompts, which also run
 * together.
 */
#include "cli/clock.h"
#include "cli/generate.h"
#include "cli/output.h"

/* One sequence of the model. */
typedef struct place {
    batch_item *item; /* NULL: idle */
    uint64_t left;    /* tokens that may still be generated */
} place;

typedef struct batch {
    session *session;
    uint32_t count; /* number of places */
    place *places;
    uint32_t *ids;        /* the token that each place runs next */
    llama_piece *pieces;  /* prompts of the places that just got one */
    size_t next, printed; /* indices of items */
} batch;

/* Prints finished answers in order, so one that ended early waits for those before it. */
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

/* Takes a place's new token, which may end the answer. */
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

/* Gives a free place the next prompt that leaves room for an answer. */
static rlxvk_status give_prompt(batch *b, uint32_t at)
{
    session *s = b->session;
    place *p = &b->places[at];
    rlxvk_status status = RLXVK_OK;
    b->pieces[at].count = 0;
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
        b->pieces[at] = (llama_piece){item->prompt.items, item->prompt.count};
    }
error:
    return status;
}

/* Runs once without using the results. Drivers may compile only at the first run, which also
 * touches memory for the first time. */
static rlxvk_status warm_up(batch *b)
{
    llama *m = b->session->model;
    rlxvk_status status;
    TRY(generate_run_prompts(b->session, b->pieces, b->count, b->ids));
    for (uint32_t at = 0; at < b->count; at++) {
        llama_select(m, at);
        llama_rewind(m);
    }
error:
    return status;
}

/* Fills free places, again if an answer ends with its first token. */
static rlxvk_status fill_places(batch *b)
{
    session *s = b->session;
    rlxvk_status status = RLXVK_OK;
    for (bool given = true; given;) {
        given = false;
        for (uint32_t at = 0; at < b->count; at++) {
            TRY(give_prompt(b, at));
            given = given || b->pieces[at].count;
        }
        if (!given)
            break;
        if (s->turns == 0)
            TRY(warm_up(b));
        TRY(generate_run_prompts(s, b->pieces, b->count, b->ids));
        for (uint32_t at = 0; at < b->count; at++)
            if (b->pieces[at].count)
                TRY(take_token(b, at, b->ids[at]));
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
        TRY(fill_places(b));
        for (uint32_t at = 0; at < b->count; at++)
            active += b->places[at].item != NULL;
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
    b.pieces = memory_zeroed(b.count, sizeof *b.pieces);
    if (!b.places || !b.ids || !b.pieces)
        TRY(status_fail_memory("batch"));
    for (uint32_t at = 0; at < b.count; at++)
        b.ids[at] = LLAMA_IDLE;
    TRY(run_all(&b));
error:
    memory_free(b.places);
    memory_free(b.ids);
    memory_free(b.pieces);
    return status;
}
