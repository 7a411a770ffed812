// A Vulkan layer that corrects one instruction of the shaders CubeCL 0.11.3 makes.
//
// On drivers without VK_KHR_workgroup_memory_explicit_layout, such as Mesa's lavapipe, CubeCL declares shared memory as
// `OpVariable %pointer_to_pointer Workgroup`, which no driver compiles. The variable's type should be the pointer that it points to. This
// layer puts that in; GPU drivers have the extension and need nothing of it.

#include <stdlib.h>
#include <string.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

enum { OP_TYPE_POINTER = 32, OP_VARIABLE = 59, WORKGROUP = 4 };

static PFN_vkGetInstanceProcAddr next_instance_proc;
static PFN_vkGetDeviceProcAddr next_device_proc;
static PFN_vkCreateShaderModule next_create_shader_module;

static void correct(uint32_t *code, size_t words) {
    uint32_t bound = words > 3 ? code[3] : 0;
    uint32_t *pointee = calloc(bound, sizeof *pointee);
    for (size_t i = 5; i < words && code[i] >> 16; i += code[i] >> 16) {
        uint32_t op = code[i] & 0xffff;
        if (op == OP_TYPE_POINTER && code[i + 2] == WORKGROUP) {
            pointee[code[i + 1]] = code[i + 3];
        } else if (op == OP_VARIABLE && code[i + 3] == WORKGROUP) {
            uint32_t inner = pointee[code[i + 1]];
            if (inner && pointee[inner]) {
                code[i + 1] = inner;
            }
        }
    }
    free(pointee);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_shader_module(
    VkDevice device, const VkShaderModuleCreateInfo *info, const VkAllocationCallbacks *allocator, VkShaderModule *module) {
    VkShaderModuleCreateInfo corrected = *info;
    uint32_t *code = malloc(info->codeSize);
    memcpy(code, info->pCode, info->codeSize);
    correct(code, info->codeSize / sizeof *code);
    corrected.pCode = code;
    VkResult result = next_create_shader_module(device, &corrected, allocator, module);
    free(code);
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(
    const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator, VkInstance *instance) {
    VkLayerInstanceCreateInfo *chain = (VkLayerInstanceCreateInfo *)info->pNext;
    while (chain && !(chain->sType == VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO && chain->function == VK_LAYER_LINK_INFO)) {
        chain = (VkLayerInstanceCreateInfo *)chain->pNext;
    }
    if (!chain) return VK_ERROR_INITIALIZATION_FAILED;
    next_instance_proc = chain->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    chain->u.pLayerInfo = chain->u.pLayerInfo->pNext;
    return ((PFN_vkCreateInstance)next_instance_proc(NULL, "vkCreateInstance"))(info, allocator, instance);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(
    VkPhysicalDevice physical, const VkDeviceCreateInfo *info, const VkAllocationCallbacks *allocator, VkDevice *device) {
    VkLayerDeviceCreateInfo *chain = (VkLayerDeviceCreateInfo *)info->pNext;
    while (chain && !(chain->sType == VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO && chain->function == VK_LAYER_LINK_INFO)) {
        chain = (VkLayerDeviceCreateInfo *)chain->pNext;
    }
    if (!chain) return VK_ERROR_INITIALIZATION_FAILED;
    next_device_proc = chain->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    PFN_vkGetInstanceProcAddr instance_proc = chain->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    chain->u.pLayerInfo = chain->u.pLayerInfo->pNext;
    VkResult result = ((PFN_vkCreateDevice)instance_proc(NULL, "vkCreateDevice"))(physical, info, allocator, device);
    if (result == VK_SUCCESS) {
        next_create_shader_module = (PFN_vkCreateShaderModule)next_device_proc(*device, "vkCreateShaderModule");
    }
    return result;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetDeviceProcAddr(VkDevice device, const char *name) {
    if (!strcmp(name, "vkGetDeviceProcAddr")) return (PFN_vkVoidFunction)vkGetDeviceProcAddr;
    if (!strcmp(name, "vkCreateShaderModule")) return (PFN_vkVoidFunction)create_shader_module;
    return next_device_proc(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char *name) {
    if (!strcmp(name, "vkGetInstanceProcAddr")) return (PFN_vkVoidFunction)vkGetInstanceProcAddr;
    if (!strcmp(name, "vkGetDeviceProcAddr")) return (PFN_vkVoidFunction)vkGetDeviceProcAddr;
    if (!strcmp(name, "vkCreateInstance")) return (PFN_vkVoidFunction)create_instance;
    if (!strcmp(name, "vkCreateDevice")) return (PFN_vkVoidFunction)create_device;
    if (!strcmp(name, "vkCreateShaderModule")) return (PFN_vkVoidFunction)create_shader_module;
    return next_instance_proc ? next_instance_proc(instance, name) : NULL;
}
