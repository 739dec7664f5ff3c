/* rlxvk info: prints the devices, the choices that the library made for each and why, and the
 * environment switches. */
#include "base/system.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/probe.h"
#include "op/choice/choice.h"
#include "vk/vk.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 32 };

static const char *const kinds[] = {
    [RLXVK_DEVICE_OTHER] = "other",       [RLXVK_DEVICE_INTEGRATED] = "integrated",
    [RLXVK_DEVICE_DISCRETE] = "discrete", [RLXVK_DEVICE_VIRTUAL] = "virtual",
    [RLXVK_DEVICE_CPU] = "cpu",
};

/* A device and the choices that opening it made. They are unknown if `opened` is false. */
typedef struct entry {
    rlxvk_device_info info;
    device_setup choice;
    memory_room room; /* of device memory */
    char pci[24];
    bool opened, preferred;
    bool probed, executes; /* whether it executes anything; known only if it was probed */
    char problem[512];
} entry;

/* If the probe fails, nothing is known. */
static void probe_entry(entry *e)
{
    rlxvk_context_options options = {.device = &e->info, .cache_directory = ""};
    rlxvk_context *context = NULL;
    e->probed = rlxvk_context_create(&options, &context) == RLXVK_OK &&
                probe_executes(context, &e->executes) == RLXVK_OK;
    rlxvk_context_destroy(context);
}

static void open_entry(entry *e)
{
    switches quiet;
    device *d = NULL;
    rlxvk_context_options options = {.device = &e->info, .cache_directory = ""};
    if (!e->info.usable)
        return;
    if (switches_read_limits(&quiet) == RLXVK_OK && device_open(&options, &quiet, &d) == RLXVK_OK) {
        e->choice = d->setup;
        e->room = memory_room_of(d, MEMORY_ARENA);
        snprintf(e->pci, sizeof e->pci, "%s", d->snapshot.pci);
        e->opened = true;
        device_close(d);
        probe_entry(e);
    } else
        snprintf(e->problem, sizeof e->problem, "%s", rlxvk_last_error());
}

/* Marks the device that a context without options opens. If that fails, this returns the same
 * error. */
static rlxvk_status mark_preferred(entry *entries, size_t count)
{
    rlxvk_context *context = NULL;
    rlxvk_context_options options = {.cache_directory = ""};
    rlxvk_device_info info;
    rlxvk_status status = rlxvk_context_create(&options, &context);
    if (status != RLXVK_OK)
        return status;
    rlxvk_context_device(context, &info);
    for (size_t i = 0; i < count; i++)
        entries[i].preferred = info.index == i;
    rlxvk_context_destroy(context);
    return RLXVK_OK;
}

/* ---- Text ---- */

static double mebibytes(uint64_t bytes)
{
    return (double)bytes / 1048576.0;
}

/* The name in RLXVK_LIMITS, "" if it is off. */
static const char *limits_in_force(void)
{
    static switches environment;
    return switches_read_limits(&environment) == RLXVK_OK ? environment.limits : "";
}

static void print_limits(const rlxvk_device_info *d)
{
    if (*limits_in_force())
        printf("   limits   in force: the device is seen through '%s' (RLXVK_LIMITS)\n",
               limits_in_force());
    printf("   limits   %u invocations a workgroup, groups %u x %u x %u, subgroup %u\n",
           d->max_workgroup_invocations, d->max_group_count[0], d->max_group_count[1],
           d->max_group_count[2], d->subgroup_size);
    printf("            shared memory %u bytes, push constants %u bytes, %u storage buffers a "
           "stage\n",
           d->shared_memory_bytes, d->push_constant_bytes, d->storage_buffers_per_stage);
    printf("            memory %.0f MiB; one allocation %.0f MiB; one tensor %.0f MiB; slots "
           "aligned to %llu\n",
           mebibytes(d->device_memory_bytes), mebibytes(d->max_allocation_bytes),
           mebibytes(d->max_binding_bytes), (unsigned long long)d->slot_alignment);
}

static void print_features(const rlxvk_device_info *d)
{
    const struct {
        const char *name;
        bool present;
    } features[] = {
        {"16-bit storage", d->storage_16bit},
        {"8-bit storage", d->storage_8bit},
        {"float16", d->shader_float16},
        {"int8", d->shader_int8},
        {"subgroup arithmetic", d->subgroup_arithmetic},
        {"cooperative matrix", d->cooperative_matrix},
        {"timestamps", d->timestamps},
    };
    for (int present = 1; present >= 0; present--) {
        printf("   %s ", present ? "has     " : "lacks   ");
        const char *separator = "";
        for (size_t i = 0; i < ARRAY_COUNT(features); i++)
            if (features[i].present == (present != 0)) {
                printf("%s%s", separator, features[i].name);
                separator = ", ";
            }
        printf("%s\n", *separator ? "" : "-");
    }
}

static void print_matrix_unit(const char *type, matrix_shape unit)
{
    if (unit.m)
        printf("            %s matrix units of %u x %u x %u, when a precision asks for them\n",
               type, unit.m, unit.n, unit.k);
}

static void print_choice(const entry *e)
{
    const device_setup *c = &e->choice;
    printf("   chosen   uploads %s\n",
           c->arena_mapped ? "write device memory in place: it is mapped"
                           : "go through staging: device memory is not mapped, or only through a "
                             "small window");
    printf("            reads %s\n",
           c->arena_cached ? "device memory in place: it is host-cached"
                           : "through host-cached staging: uncached device memory reads slowly");
    if (e->room.told)
        printf("            %.0f MiB of device memory are free: the driver gives this process %.0f "
               "MiB, and it uses %.0f\n",
               mebibytes(memory_room_free(&e->room)), mebibytes(e->room.budget),
               mebibytes(e->room.used));
    else
        printf("            free device memory is unknown: the driver lacks %s\n",
               VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    printf("            workgroups of %u: the device allows %u\n", c->profile.workgroup_size,
           c->profile.max_workgroup_invocations);
    printf("            kernels for %s\n",
           c->profile.portable ? "a software or translated driver: plain ones preferred" : "a GPU");
    if (c->profile.unit_registers)
        printf("            variants that need more registers are passed over: a compute unit has "
               "%u, a thread %u\n",
               c->profile.unit_registers, c->profile.thread_registers);
    print_matrix_unit("f16", c->profile.matrix_f16);
    print_matrix_unit("bf16", c->profile.matrix_bf16);
    printf("            work split for about %u compute units; queue family %u; memory types %u "
           "(arena), %u (upload), %u (readback)\n",
           c->profile.compute_units, c->queue_family, c->arena_type, c->upload_type,
           c->readback_type);
}

static void print_entry(const entry *e, size_t index)
{
    const rlxvk_device_info *d = &e->info;
    printf("%zu  %s%s\n   driver   %s\n   kind     %s, Vulkan %u.%u.%u, UUID %s%s%s\n", index,
           d->name, e->preferred ? "   (the default)" : "", d->driver, kinds[d->kind],
           d->api_version >> 22 & 127, d->api_version >> 12 & 1023, d->api_version & 4095, d->uuid,
           *e->pci ? ", PCI " : "", e->pci);
    if (!d->usable)
        printf("   cannot be used: %s\n", d->reason);
    if (e->probed && !e->executes)
        printf(
            "   executes nothing: a dispatch wrote no result; only bench --pipelines is of use\n");
    print_limits(d);
    print_features(d);
    if (e->opened)
        print_choice(e);
    else if (*e->problem)
        printf("   cannot be opened: %s\n", e->problem);
    printf("\n");
}

static void print_variants(void)
{
    printf("Kernel variants (RLXVK_VARIANT=kind=row):\n");
    for (size_t i = 0; i < CHOICE_COUNT; i++) {
        const char *row;
        printf("  %-25s", choice_kinds[i].name);
        for (size_t k = 0; (row = choice_row_name(&choice_kinds[i], k)); k++)
            printf(" %s", row);
        printf("\n");
    }
}

static void print_text(const entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        print_entry(&entries[i], i);
    printf("Switches (unset, 0, false, off and no are off):\n");
    for (size_t i = 0; switches_name(i); i++) {
        const char *value = system_environment(switches_name(i));
        printf("  %-25s %s%s%s%s\n", switches_name(i), switches_effect(i), value ? " [now '" : "",
               value ? value : "", value ? "']" : "");
    }
    print_variants();
}

/* ---- JSON ---- */

static void json_string(const char *key, const char *value)
{
    printf("\"%s\": ", key);
    print_json_string(stdout, value);
    printf(", ");
}

static void json_limits(const rlxvk_device_info *d)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"subgroup_size", d->subgroup_size},
        {"max_workgroup_invocations", d->max_workgroup_invocations},
        {"shared_memory_bytes", d->shared_memory_bytes},
        {"push_constant_bytes", d->push_constant_bytes},
        {"storage_buffers_per_stage", d->storage_buffers_per_stage},
        {"max_allocation_bytes", d->max_allocation_bytes},
        {"max_binding_bytes", d->max_binding_bytes},
        {"device_memory_bytes", d->device_memory_bytes},
        {"slot_alignment", d->slot_alignment},
    };
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        printf("\"%s\": %llu, ", numbers[i].key, (unsigned long long)numbers[i].value);
    printf("\"max_group_count\": [%u, %u, %u], ", d->max_group_count[0], d->max_group_count[1],
           d->max_group_count[2]);
}

static void json_flags(const entry *e)
{
    const rlxvk_device_info *d = &e->info;
    const struct {
        const char *key;
        bool value;
    } flags[] = {
        {"usable", d->usable},
        {"default", e->preferred},
        {"direct_upload", d->direct_upload},
        {"cached_readback", d->cached_readback},
        {"storage_16bit", d->storage_16bit},
        {"storage_8bit", d->storage_8bit},
        {"shader_float16", d->shader_float16},
        {"shader_int8", d->shader_int8},
        {"subgroup_arithmetic", d->subgroup_arithmetic},
        {"cooperative_matrix", d->cooperative_matrix},
        {"timestamps", d->timestamps},
    };
    for (size_t i = 0; i < ARRAY_COUNT(flags); i++)
        printf("\"%s\": %s, ", flags[i].key, flags[i].value ? "true" : "false");
}

static void json_choice(const entry *e)
{
    const device_setup *c = &e->choice;
    printf("\"chosen\": ");
    if (!e->opened) {
        printf("null");
        return;
    }
    printf("{\"workgroup_size\": %u, \"compute_units\": %u, \"unit_registers\": %u, "
           "\"thread_registers\": %u, \"portable\": %s, "
           "\"queue_family\": %u, \"arena_memory_type\": %u, \"upload_memory_type\": %u, "
           "\"readback_memory_type\": %u, ",
           c->profile.workgroup_size, c->profile.compute_units, c->profile.unit_registers,
           c->profile.thread_registers, c->profile.portable ? "true" : "false", c->queue_family,
           c->arena_type, c->upload_type, c->readback_type);
    if (e->room.told)
        printf("\"memory_budget_bytes\": %llu, \"memory_used_bytes\": %llu}",
               (unsigned long long)e->room.budget, (unsigned long long)e->room.used);
    else
        printf("\"memory_budget_bytes\": null, \"memory_used_bytes\": null}");
}

static void print_json(const entry *entries, size_t count)
{
    printf("{\n  \"version\": \"%s\",\n  \"devices\": [", rlxvk_version());
    for (size_t i = 0; i < count; i++) {
        const rlxvk_device_info *d = &entries[i].info;
        printf("%s\n    {\"index\": %zu, ", i ? "," : "", i);
        json_string("name", d->name);
        json_string("driver", d->driver);
        json_string("uuid", d->uuid);
        json_string("pci", entries[i].pci);
        json_string("kind", kinds[d->kind]);
        printf("\"vulkan\": \"%u.%u.%u\", ", d->api_version >> 22 & 127,
               d->api_version >> 12 & 1023, d->api_version & 4095);
        json_limits(d);
        json_flags(&entries[i]);
        printf("\"executes\": %s, ", !entries[i].probed    ? "null"
                                     : entries[i].executes ? "true"
                                                           : "false");
        json_string("reason", d->usable ? entries[i].problem : d->reason);
        json_choice(&entries[i]);
        printf("}");
    }
    printf("%s],\n  \"limits\": ", count ? "\n  " : "");
    if (*limits_in_force())
        print_json_string(stdout, limits_in_force());
    else
        printf("null");
    printf(",\n  \"switches\": {");
    for (size_t i = 0; switches_name(i); i++) {
        const char *value = system_environment(switches_name(i));
        printf("%s\n    \"%s\": ", i ? "," : "", switches_name(i));
        if (value)
            print_json_string(stdout, value);
        else
            printf("null");
    }
    printf("\n  }\n}\n");
}

/* ---- Command ---- */

static const char help[] = "usage: rlxvk info [--json]\n\n"
                           "Lists the devices in the order of their index, what the library chose "
                           "for each and why,\nand the environment switches. Marks a device "
                           "that executes nothing.\n\n"
                           "Exit status 0 only if there is a device to run on.\n";

static const struct option long_options[] = {{"json", no_argument, NULL, 'J'},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

/* If there is no device, it still prints the switches (and an empty list in JSON), then the reason.
 */
static int show(bool json)
{
    rlxvk_device_info *infos = memory_zeroed(MOST_DEVICES, sizeof *infos);
    entry *entries = memory_zeroed(MOST_DEVICES, sizeof *entries);
    size_t count = 0;
    rlxvk_status status = infos && entries ? rlxvk_device_list(infos, MOST_DEVICES, &count)
                                           : status_fail_memory("device list");
    count = status == RLXVK_OK ? MIN(count, MOST_DEVICES) : 0;
    for (size_t i = 0; i < count; i++) {
        entries[i].info = infos[i];
        open_entry(&entries[i]);
    }
    if (status == RLXVK_OK)
        status = mark_preferred(entries, count);
    (json ? print_json : print_text)(entries, count);
    if (status != RLXVK_OK)
        report_status(status);
    memory_free(infos);
    memory_free(entries);
    return status == RLXVK_OK ? EXIT_OK : EXIT_FAILED;
}

int command_info(int argc, char **argv)
{
    bool json = false;
    for (int letter; (letter = getopt_long(argc, argv, "h", long_options, NULL)) != -1;) {
        if (letter == 'h')
            return print_help(help);
        if (letter != 'J')
            return EXIT_USAGE;
        json = true;
    }
    return parse_end(argc, argv, optind) ? show(json) : EXIT_USAGE;
}
