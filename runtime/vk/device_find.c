/*
 * Chooses the device to open: the given one, or the one that a text names. Otherwise discrete wins
 * over integrated, virtual, other and CPU; among equals the first wins. If a name matches several
 * devices, the best of them is taken. Pure.
 */
#include "vk/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank(const device_setup *setup)
{
    static const int ranks[] = {
        [RLXVK_DEVICE_DISCRETE] = 5, [RLXVK_DEVICE_INTEGRATED] = 4, [RLXVK_DEVICE_VIRTUAL] = 3,
        [RLXVK_DEVICE_OTHER] = 2,    [RLXVK_DEVICE_CPU] = 1,
    };
    return setup->usable ? ranks[setup->profile.kind] : 0;
}

static bool contains(const char *haystack, const char *needle)
{
    size_t length = strlen(needle);
    for (; strlen(haystack) >= length; haystack++)
        if (text_ascii_equal(haystack, needle, length))
            return true;
    return false;
}

/* Compares hexadecimal digits; ignores case and dashes. */
static bool uuid_equal(const device_snapshot *snapshot, const char *wanted)
{
    char digits[2 * VK_UUID_SIZE + 1];
    size_t matched = 0;
    profile_uuid_text(snapshot->id.deviceUUID, digits);
    for (; *wanted; wanted++) {
        if (*wanted == '-')
            continue;
        if (ascii_lower(*wanted) != digits[matched])
            return false;
        matched++;
    }
    return matched == 2 * VK_UUID_SIZE;
}

/* If digits are not an index of a device, they may still be part of a name. */
static bool parse_index(const char *wanted, uint32_t count, uint32_t *out)
{
    if (!*wanted || strlen(wanted) > 4 || strspn(wanted, "0123456789") != strlen(wanted))
        return false;
    unsigned long index = strtoul(wanted, NULL, 10);
    if (index >= count)
        return false;
    *out = (uint32_t)index;
    return true;
}

static void list_devices(text *t, const device_snapshot *snapshots, const device_setup *setups,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        text_append(t, "%s%u '%s'", i ? ", " : "", i, snapshots[i].properties.deviceName);
        if (!setups[i].usable)
            text_append(t, " (not usable: %s)", setups[i].reason);
    }
}

static rlxvk_status fail_selection(const device_snapshot *snapshots, const device_setup *setups,
                                   uint32_t count, const char *wanted)
{
    char list[768] = "";
    text t = {.buffer = list, .size = sizeof(list)};
    list_devices(&t, snapshots, setups, count);
    if (!count)
        return status_fail(
            RLXVK_E_NO_DEVICE,
            "no Vulkan device: the loader found no driver with a device; install one (for "
            "a software device, mesa-vulkan-drivers)");
    if (!*wanted)
        return status_fail(RLXVK_E_NO_DEVICE, "no usable Vulkan device; found %s", list);
    return status_fail(
        RLXVK_E_NO_DEVICE,
        "no usable device matches '%.100s' (an index, part of a name, or a UUID); found %s", wanted,
        list);
}

/* An empty text is part of every name, so it needs no special case. */
rlxvk_status vk_find_device(const device_snapshot *snapshots, const device_setup *setups,
                            uint32_t count, const char *wanted, uint32_t *out)
{
    uint32_t index;
    int best = 0;
    wanted = wanted ? wanted : "";
    if (parse_index(wanted, count, &index)) {
        if (!setups[index].usable)
            return fail_selection(snapshots, setups, count, wanted);
        *out = index;
        return RLXVK_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        bool matches = contains(snapshots[i].properties.deviceName, wanted) ||
                       uuid_equal(&snapshots[i], wanted);
        if (!matches || rank(&setups[i]) <= best)
            continue;
        best = rank(&setups[i]);
        *out = i;
    }
    return best ? RLXVK_OK : fail_selection(snapshots, setups, count, wanted);
}

/* The UUID is not enough, because software drivers give all their devices the same. */
static bool is_described(const device_snapshot *snapshot, const rlxvk_device_info *info)
{
    return uuid_equal(snapshot, info->uuid) &&
           strncmp(snapshot->properties.deviceName, info->name, sizeof info->name) == 0;
}

/* If devices share name and UUID, their index decides. */
rlxvk_status vk_match_device(const device_snapshot *snapshots, const device_setup *setups,
                             uint32_t count, const rlxvk_device_info *wanted, uint32_t *out)
{
    uint32_t found = count;
    for (uint32_t i = 0; i < count; i++)
        if (is_described(&snapshots[i], wanted) && (found == count || i == wanted->index))
            found = i;
    if (found == count || !setups[found].usable)
        return fail_selection(snapshots, setups, count, wanted->name);
    *out = found;
    return RLXVK_OK;
}
