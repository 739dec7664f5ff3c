/*
 * Continues a text with a language model: ./generate_text MODEL.gguf TEXT prints at most 60 tokens
 * as they come. Without arguments it shows how it is called.
 */
#include <rlxvk.h>
#include <rlxvk_language.h>
#include <stdio.h>
#include <string.h>

static bool print(void *user, uint32_t token, const char *bytes, size_t length)
{
    (void)user, (void)token;
    fwrite(bytes, 1, length, stdout);
    return fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    const rlxvk_language_options options = {.capacity = 512};
    const rlxvk_generate_options generate = {.tokens = 60, .reader = print};
    rlxvk_context *context = NULL;
    rlxvk_model *model = NULL;
    rlxvk_tokenizer *tokenizer = NULL;
    rlxvk_language *language = NULL;
    if (argc < 3) {
        printf("usage: %s MODEL.gguf TEXT\n", argv[0]);
        return 0;
    }
    bool failed = rlxvk_context_create(NULL, &context) || rlxvk_model_open(argv[1], NULL, &model) ||
                  rlxvk_tokenizer_open(model, NULL, &tokenizer) ||
                  rlxvk_language_create(tokenizer, context, &options, &language) ||
                  rlxvk_language_write(language, argv[2], strlen(argv[2]), &generate);
    if (failed)
        fprintf(stderr, "%s\n", rlxvk_last_error());
    else
        printf("\n");
    rlxvk_language_destroy(language);
    rlxvk_tokenizer_destroy(tokenizer);
    rlxvk_model_destroy(model);
    rlxvk_context_destroy(context);
    return failed;
}
