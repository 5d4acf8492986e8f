// Takes the TensorRT plugin from its exports and calls it as TensorRT does, on random tables; the CPU's guard stands in for
// the launch. Needs TensorRT's headers and nothing else of it.

#include <cstdio>
#include <cstring>
#include <memory>

#include "cuda/page_guard_launch.h"
#include "guard_problem.h"
#include "tensorrt/kv_page_guard.h"

extern "C" nvinfer1::IPluginCreatorInterface *const *getCreators(int32_t &count);

int32_t rh_page_guard_cuda(const RhPageGuard *guard, int32_t *first_bad, void *) { return rh_page_guard(guard, first_bad); }

namespace {

using namespace nvinfer1;

PluginTensorDesc tensor(std::initializer_list<int64_t> shape, DataType type = DataType::kINT32,
                        TensorFormat format = TensorFormat::kLINEAR) {
    PluginTensorDesc made{};
    made.type = type, made.format = format, made.dims.nbDims = int32_t(shape.size());
    int32_t at = 0;
    for (int64_t size : shape) made.dims.d[at++] = size;
    return made;
}

template <class Part>
Part *part(IPluginV3 &plugin, PluginCapabilityType type) {
    return static_cast<Part *>(plugin.getCapabilityInterface(type));
}

bool right_formats(IPluginV3OneBuild &build) {
    DynamicPluginTensorDesc all[5]{};
    for (DynamicPluginTensorDesc &each : all) each.desc = tensor({1});
    for (int32_t position = 0; position < 5; position++) {
        if (!build.supportsFormatCombination(position, all, 4, 1)) return false;
        for (PluginTensorDesc wrong : {tensor({1}, DataType::kINT64), tensor({1}, DataType::kINT32, TensorFormat::kCHW4)}) {
            std::swap(all[position].desc, wrong);
            if (build.supportsFormatCombination(position, all, 4, 1)) return false;
            std::swap(all[position].desc, wrong);
        }
    }
    return !build.supportsFormatCombination(5, all, 4, 1) && !build.supportsFormatCombination(0, all, 3, 1);
}

bool right_outputs(IPluginV3OneBuild &build) {
    DataType type = DataType::kFLOAT;
    const DataType inputs[4] = {DataType::kINT32, DataType::kINT32, DataType::kINT32, DataType::kINT32};
    if (build.getNbOutputs() != 1 || build.getOutputDataTypes(&type, 1, inputs, 4) || type != DataType::kINT32) return false;
    DimsExprs shapes[4]{}, output{};
    shapes[0].nbDims = 2, shapes[0].d[0] = reinterpret_cast<IDimensionExpr const *>(&type);  // only passed on
    IExprBuilder &unused = *reinterpret_cast<IExprBuilder *>(&type);
    if (build.getOutputShapes(shapes, 4, nullptr, 0, &output, 1, unused)) return false;
    if (output.nbDims != 1 || output.d[0] != shapes[0].d[0] || build.configurePlugin(nullptr, 4, nullptr, 1)) return false;
    return build.configurePlugin(nullptr, 3, nullptr, 1) && build.getOutputShapes(shapes, 3, nullptr, 0, &output, 1, unused);
}

bool refuses_shapes(IPluginV3OneRuntime &runtime) {
    const PluginTensorDesc good[4] = {tensor({2, 3}), tensor({2}), tensor({2, 3}), tensor({9})}, output = tensor({2});
    if (runtime.onShapeChange(good, 4, &output, 1)) return false;
    const PluginTensorDesc bad[4] = {tensor({2, int64_t(1) << 31}), tensor({3}), tensor({2, 2}), tensor({9, 1})};
    for (int32_t at = 0; at < 4; at++) {
        PluginTensorDesc mixed[4] = {good[0], good[1], good[2], good[3]};
        mixed[at] = bad[at];
        if (!runtime.onShapeChange(mixed, 4, &output, 1)) return false;
        if (!runtime.enqueue(mixed, &output, nullptr, nullptr, nullptr, nullptr)) return false;
    }
    return true;
}

bool right_answers(IPluginV3OneRuntime &runtime) {
    for (int round = 0; round < 100; round++) {
        GuardProblem problem;
        const int64_t rows = problem.rows, columns = problem.columns;
        const PluginTensorDesc inputs[4] = {tensor({rows, columns}), tensor({rows}), tensor({rows, columns}),
                                            tensor({problem.pages})};
        const PluginTensorDesc output = tensor({rows});
        const RhPageGuard guard = problem.guard();
        void const *const in[4] = {guard.page_table, guard.page_count, guard.expected_tags, guard.page_tags};
        void *const out[1] = {problem.first_bad.data()};
        if (runtime.onShapeChange(inputs, 4, &output, 1)) return false;
        if (runtime.enqueue(inputs, &output, in, out, nullptr, nullptr) || problem.wrong_row() >= 0) return false;
    }
    return true;
}

bool check(bool right, const char *what) {
    if (!right) std::printf("wrong: %s\n", what);
    return right;
}

}  // namespace

int main() {
    int32_t count = 0;
    auto &creator = *static_cast<IPluginCreatorV3One *>(getCreators(count)[0]);
    const std::unique_ptr<IPluginV3> built(creator.createPlugin("guard", creator.getFieldNames(), TensorRTPhase::kBUILD));
    const std::unique_ptr<IPluginV3> plugin(built->clone());
    auto &core = *part<IPluginV3OneCore>(*plugin, PluginCapabilityType::kCORE);
    auto &build = *part<IPluginV3OneBuild>(*plugin, PluginCapabilityType::kBUILD);
    auto &runtime = *part<IPluginV3OneRuntime>(*plugin, PluginCapabilityType::kRUNTIME);
    const std::unique_ptr<IPluginV3> attached(runtime.attachToContext(nullptr));
    const bool named = !std::strcmp(core.getPluginName(), creator.getPluginName()) &&
                       !std::strcmp(core.getPluginName(), "KvPageGuard") && !std::strcmp(core.getPluginNamespace(), "") &&
                       !std::strcmp(core.getPluginVersion(), creator.getPluginVersion());
    const bool right = check(count == 1 && named && attached, "names") &&
                       check(runtime.getFieldsToSerialize()->nbFields == 0, "fields") && check(right_formats(build), "formats") &&
                       check(right_outputs(build), "outputs") &&
                       check(refuses_shapes(runtime), "shapes") && check(right_answers(runtime), "answers");
    if (right) std::puts("agreed");
    return !right;
}
