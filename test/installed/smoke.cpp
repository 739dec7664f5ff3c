// The README's program in C++17, with the installed headers and library. The exit status is 0 if
// the result is right.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <rlxvk_quant.h>
#include <string>
#include <vector>

// Checks the result of a call that must succeed.
static void must(rlxvk_status status)
{
    if (status != RLXVK_OK)
        throw std::string(rlxvk_status_name(status)) + ": " + rlxvk_last_error();
}

static std::vector<float> probabilities()
{
    rlxvk_context *context = nullptr;
    rlxvk_graph *graph = nullptr;
    rlxvk_executable *executable = nullptr;
    must(rlxvk_context_create(nullptr, &context));
    std::unique_ptr<rlxvk_context, void (*)(rlxvk_context *)> context_owner(context, rlxvk_context_destroy);
    must(rlxvk_graph_create(&graph));
    std::unique_ptr<rlxvk_graph, void (*)(rlxvk_graph *)> graph_owner(graph, rlxvk_graph_destroy);
    const rlxvk_tensor x = rlxvk_input(graph, "x", RLXVK_F32, RLXVK_SHAPE(1, 4));
    const rlxvk_tensor w = rlxvk_param(graph, "w", RLXVK_F32, RLXVK_SHAPE(4, 2));
    rlxvk_graph_output(graph, rlxvk_softmax(graph, rlxvk_matmul(graph, x, w), -1));
    must(rlxvk_compile(context, graph, nullptr, &executable));
    std::unique_ptr<rlxvk_executable, void (*)(rlxvk_executable *)> owner(executable, rlxvk_executable_destroy);
    const std::vector<float> input{1, 2, 3, 4}, weight{1, 0, 0, 1, 1, 0, 0, 1};
    std::vector<float> result(2);
    must(rlxvk_set_param(executable, "w", weight.data(), weight.size()));
    const rlxvk_run_input in{"x", input.data(), input.size(), RLXVK_F32, false, 0};
    const auto out =
        RLXVK_SIZED(rlxvk_run_output, 0, result.data(), result.size(), RLXVK_F32, false, 0);
    must(rlxvk_run(executable, &in, 1, &out, 1));
    return result;
}

int main()
{
    try {
        const std::vector<float> y = probabilities();
        const double first = 1 / (1 + std::exp(2.0)); // element 0 of softmax(4, 6)
        std::printf("%f %f\n", y[0], y[1]);
        return std::strcmp(rlxvk_version(), VERSION) != 0 || !(std::fabs(y[0] - first) < 1e-6) ||
               !(std::fabs(y[1] - (1 - first)) < 1e-6);
    } catch (const std::string &sentence) {
        std::fprintf(stderr, "%s\n", sentence.c_str());
        return 1;
    }
}
