// The kernel of custom_op.c: x if it is positive, otherwise slope * x. The workgroup size is
// specialization constant 0, which the library sets. Offsets count elements, not bytes. Command:
//     glslangValidator -V --target-env vulkan1.2 --vn words -o custom_op.spv.h custom_op.comp
#version 450
layout(local_size_x_id = 0) in;

layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };

layout(push_constant) uniform Arguments
{
    uint count, x_offset, y_offset;
    float slope;
};

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i >= count)
        return;
    float v = x[x_offset + i];
    y[y_offset + i] = v > 0 ? v : slope * v;
}
