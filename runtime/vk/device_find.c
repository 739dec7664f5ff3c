/*
 * Chooses the device to open: the given one, or the one that a text names. Otherwise discrete wins
 * over integrated, virtual, other and CPU; among equals the first wins. A text must name one usable
 * device. Pure.
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

static bool equal(const char *a, const char *b)
{
    return text_ascii_equal(a, b, SIZE_MAX);
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

/* The domain may be left out. */
static bool pci_equal(const device_snapshot *snapshot, const char *wanted)
{
    const char *address = snapshot->pci, *colon = strchr(address, ':');
    return *address && (equal(address, wanted) || equal(colon + 1, wanted));
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

static void append_device(text *t, const device_snapshot *snapshot, uint32_t index)
{
    text_append(t, "%s%u '%s'", *t->buffer ? ", " : "", index, snapshot->properties.deviceName);
}

static void list_devices(text *t, const device_snapshot *snapshots, const device_setup *setups,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        append_device(t, &snapshots[i], i);
        if (!setups[i].usable)
            text_append(t, " (not usable: %s)", setups[i].reason);
    }
}

/* If a driver's call failed, its status is the reason. */
static rlxvk_status selection_status(const device_setup *setups, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (setups[i].failure != RLXVK_OK)
            return setups[i].failure;
    return RLXVK_E_NO_DEVICE;
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
        return status_fail(selection_status(setups, count), "no usable Vulkan device; found %s",
                           list);
    return status_fail(RLXVK_E_NO_DEVICE,
                       "no usable device matches '%.100s' (an index, a name or part of it, a UUID, "
                       "or a PCI address); found %s",
                       wanted, list);
}

/* How a text may name a device. An earlier way wins, so a whole name may be part of others. */
typedef enum match { MATCH_WHOLE, MATCH_PART, MATCH_WAYS } match;

static bool is_match(const device_snapshot *snapshot, const char *wanted, match way)
{
    const char *name = snapshot->properties.deviceName;
    if (way == MATCH_PART)
        return contains(name, wanted);
    return equal(name, wanted) || uuid_equal(snapshot, wanted) || pci_equal(snapshot, wanted);
}

/* Returns how many usable devices match; *out is the first of them. Lists them in `t`. */
static uint32_t find_matches(const device_snapshot *snapshots, const device_setup *setups,
                             uint32_t count, const char *wanted, match way, text *t, uint32_t *out)
{
    char uuid[2 * VK_UUID_SIZE + 1];
    uint32_t matches = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!setups[i].usable || !is_match(&snapshots[i], wanted, way))
            continue;
        *out = matches++ ? *out : i;
        profile_uuid_text(snapshots[i].id.deviceUUID, uuid);
        append_device(t, &snapshots[i], i);
        text_append(t, " (UUID %s%s%s)", uuid, *snapshots[i].pci ? ", PCI " : "", snapshots[i].pci);
    }
    return matches;
}

static rlxvk_status find_named(const device_snapshot *snapshots, const device_setup *setups,
                               uint32_t count, const char *wanted, uint32_t *out)
{
    for (match way = MATCH_WHOLE; way < MATCH_WAYS; way++) {
        char list[768] = "";
        text t = {.buffer = list, .size = sizeof(list)};
        uint32_t matches = find_matches(snapshots, setups, count, wanted, way, &t, out);
        if (matches == 1)
            return RLXVK_OK;
        if (matches > 1)
            return status_fail(RLXVK_E_NO_DEVICE,
                               "'%.100s' names %u devices: %s; give an index, a UUID or a PCI "
                               "address of one",
                               wanted, matches, list);
    }
    return fail_selection(snapshots, setups, count, wanted);
}

rlxvk_status vk_find_device(const device_snapshot *snapshots, const device_setup *setups,
                            uint32_t count, const char *wanted, uint32_t *out)
{
    uint32_t index;
    int best = 0;
    wanted = wanted ? wanted : "";
    if (parse_index(wanted, count, &index)) {
        *out = index;
        return setups[index].usable ? RLXVK_OK : fail_selection(snapshots, setups, count, wanted);
    }
    if (*wanted)
        return find_named(snapshots, setups, count, wanted, out);
    for (uint32_t i = 0; i < count; i++)
        if (rank(&setups[i]) > best) {
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
