/*
 * If the loader lists the validation layer, a context with validation opens. Otherwise the error
 * names the layer's package. The option and the environment switch do the same.
 */
#include "program/context.h"
#include "support/harness.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>
#include <cmocka.h>

static bool layer_is_there(void)
{
    VkLayerProperties list[64];
    uint32_t count = sizeof list / sizeof *list;
    bool found = false;
    void *loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    PFN_vkEnumerateInstanceLayerProperties enumerate = NULL;
    assert_non_null(loader);
    *(void **)&enumerate = dlsym(loader, "vkEnumerateInstanceLayerProperties");
    assert_non_null((void *)enumerate);
    assert_true(enumerate(&count, list) >= VK_SUCCESS);
    for (uint32_t i = 0; i < count; i++)
        found = found || strcmp(list[i].layerName, "VK_LAYER_KHRONOS_validation") == 0;
    dlclose(loader);
    return found;
}

/* Expects a context with validation, or the error without its layer. Only with validation has a
 * context a Vulkan instance of its own. */
static void expect_validation(const rlxvk_context_options *options, bool wanted)
{
    rlxvk_context *c = NULL;
    if (wanted && !layer_is_there()) {
        expect_error(rlxvk_context_create(options, &c), RLXVK_E_UNSUPPORTED,
                     "vulkan-validationlayers");
        return;
    }
    expect_ok(rlxvk_context_create(options, &c));
    assert_int_equal(!c->device->shares_instance, wanted);
    rlxvk_context_destroy(c);
}

static void validation_opens_where_its_layer_is(void **state)
{
    (void)state;
    expect_validation(&(rlxvk_context_options){.validation = RLXVK_ON}, true);
}

static void the_switch_asks_for_validation(void **state)
{
    const char *old = getenv("RLXVK_VALIDATION");
    char *kept = old ? strdup(old) : NULL;
    (void)state;
    setenv("RLXVK_VALIDATION", "1", 1);
    expect_validation(NULL, true);
    expect_validation(&(rlxvk_context_options){.validation = RLXVK_OFF}, false);
    unsetenv("RLXVK_VALIDATION");
    expect_validation(NULL, false);
    if (kept)
        setenv("RLXVK_VALIDATION", kept, 1);
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(validation_opens_where_its_layer_is),
                                       cmocka_unit_test(the_switch_asks_for_validation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
