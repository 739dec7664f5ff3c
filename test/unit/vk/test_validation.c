/*
 * If the loader lists the validation layer, a context with validation opens. Otherwise the error
 * names the layer's package.
 */
#include "support/harness.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

static void validation_opens_where_its_layer_is(void **state)
{
    const rlxvk_context_options options = {.validation = RLXVK_ON};
    rlxvk_context *c = NULL;
    (void)state;
    if (layer_is_there())
        expect_ok(rlxvk_context_create(&options, &c));
    else
        expect_error(rlxvk_context_create(&options, &c), RLXVK_E_UNSUPPORTED,
                     "vulkan-validationlayers");
    rlxvk_context_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(validation_opens_where_its_layer_is)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
