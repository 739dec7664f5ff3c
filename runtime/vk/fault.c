/*
 * What a driver tells of a lost device (VK_EXT_device_fault). Only here and in marks.c
 * are calls made on a lost device, because their extensions allow them.
 */
#include "vk/internal.h"

enum { TOLD_ADDRESSES = 3, TOLD_VENDOR_FAULTS = 2 };

static const char *address_kind(VkDeviceFaultAddressTypeEXT type)
{
    static const char *const kinds[] = {
        [VK_DEVICE_FAULT_ADDRESS_TYPE_NONE_EXT] = "no fault",
        [VK_DEVICE_FAULT_ADDRESS_TYPE_READ_INVALID_EXT] = "invalid read",
        [VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_EXT] = "invalid write",
        [VK_DEVICE_FAULT_ADDRESS_TYPE_EXECUTE_INVALID_EXT] = "invalid execution",
        [VK_DEVICE_FAULT_ADDRESS_TYPE_INSTRUCTION_POINTER_UNKNOWN_EXT] = "instruction pointer",
        [VK_DEVICE_FAULT_ADDRESS_TYPE_INSTRUCTION_POINTER_INVALID_EXT] =
            "invalid instruction pointer",
        [VK_DEVICE_FAULT_ADDRESS_TYPE_INSTRUCTION_POINTER_FAULT_EXT] =
            "instruction pointer of the fault",
    };
    return (size_t)type < ARRAY_COUNT(kinds) ? kinds[type] : "address";
}

static void append_info(const VkDeviceFaultCountsEXT *counts, const VkDeviceFaultInfoEXT *info,
                        text *out)
{
    text_append(out, "; the driver says: '%.*s'", (int)sizeof info->description, info->description);
    for (uint32_t i = 0; i < MIN(counts->addressInfoCount, TOLD_ADDRESSES); i++)
        text_append(out, ", %s at 0x%llx", address_kind(info->pAddressInfos[i].addressType),
                    (unsigned long long)info->pAddressInfos[i].reportedAddress);
    for (uint32_t i = 0; i < MIN(counts->vendorInfoCount, TOLD_VENDOR_FAULTS); i++)
        text_append(out, ", '%.*s' (0x%llx, 0x%llx)", (int)sizeof info->pVendorInfos->description,
                    info->pVendorInfos[i].description,
                    (unsigned long long)info->pVendorInfos[i].vendorFaultCode,
                    (unsigned long long)info->pVendorInfos[i].vendorFaultData);
}

/* The call writes only as many items as the counts say, so room for the told ones is enough. */
void vk_append_fault(device *d, text *out)
{
    VkDeviceFaultAddressInfoEXT addresses[TOLD_ADDRESSES] = {0};
    VkDeviceFaultVendorInfoEXT vendor[TOLD_VENDOR_FAULTS] = {0};
    VkDeviceFaultCountsEXT counts = {.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_COUNTS_EXT};
    VkDeviceFaultInfoEXT info = {.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_EXT,
                                 .pAddressInfos = addresses,
                                 .pVendorInfos = vendor};
    if (!d->snapshot.fault || !d->fn.GetDeviceFaultInfoEXT || !vk_is_lost(d) || vk_is_foreign(d) ||
        VK_RESULT(d, GetDeviceFaultInfoEXT(d->handle, &counts, NULL)) != VK_SUCCESS)
        return;
    counts.addressInfoCount = MIN(counts.addressInfoCount, TOLD_ADDRESSES);
    counts.vendorInfoCount = MIN(counts.vendorInfoCount, TOLD_VENDOR_FAULTS);
    counts.vendorBinarySize = 0;
    VkResult result = VK_RESULT(d, GetDeviceFaultInfoEXT(d->handle, &counts, &info));
    if (result == VK_SUCCESS || result == VK_INCOMPLETE)
        append_info(&counts, &info, out);
}
