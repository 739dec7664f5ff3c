/* The random state of an executable. It is an input of the library's own, which every run writes.
 * The upload is skipped if the state has not changed. */
#include "exec/rng.h"
#include "exec/upload.h"
#include "op/random/random.h"

void rng_prepare(rlxvk_executable *e)
{
    e->rng = e->program->options.rng;
    e->rng_input = executable_own_input(e, RNG_STATE_NAME);
}

rlxvk_status rng_upload(rlxvk_executable *e, uint32_t ticket)
{
    float words[RNG_STATE_WORDS];
    rlxvk_run_input item = {RNG_STATE_NAME, words, RNG_STATE_WORDS, RLXVK_F32, true};
    if (!e->rng_input)
        return RLXVK_OK;
    random_state_write(&e->rng, words);
    return upload_input(e, e->rng_input, ticket, &item);
}

rlxvk_status rlxvk_set_rng(rlxvk_executable *executable, const rlxvk_rng_options *options)
{
    rlxvk_status status;
    rlxvk_rng_options chosen;
    TRY(status_require(executable, "set_rng", "executable"));
    TRY(options_read_rng(options, &chosen));
    executable->rng = chosen;
error:
    return status;
}

void rlxvk_get_rng(const rlxvk_executable *executable, rlxvk_rng_options *out_options)
{
    rlxvk_rng_options options = {0};
    if (status_require(out_options, "get_rng", "out_options") != RLXVK_OK)
        return;
    if (status_require(executable, "get_rng", "executable") == RLXVK_OK)
        options = executable->rng;
    sized_write(SIZED(rlxvk_rng_options), &options, out_options);
}
