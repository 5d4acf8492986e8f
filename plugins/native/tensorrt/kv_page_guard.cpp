// What each method must answer is said in TensorRT's headers: 0 for success everywhere.

#include "kv_page_guard.h"

#include <limits>
#include <new>

#include "../cuda/page_guard_launch.h"

namespace roundhouse {
namespace {

using nvinfer1::DataType;
using nvinfer1::Dims;
using nvinfer1::PluginCapabilityType;
using nvinfer1::PluginFieldCollection;
using nvinfer1::PluginTensorDesc;

constexpr int32_t kRefused = -1;

enum Input : int32_t { kPageTable, kPageCount, kExpectedTags, kPageTags, kInputs };

// No attributes.
PluginFieldCollection const kNoFields{0, nullptr};

bool is_arity(int32_t inputs, int32_t outputs) { return inputs == kInputs && outputs == 1; }

bool is_size(int64_t size) { return size >= 0 && size <= std::numeric_limits<int32_t>::max(); }

// Whether these shapes go together: a kernel that is told a wrong one would read beside an array.
bool fit(Dims const &table, Dims const &count, Dims const &expected, Dims const &tags) {
    if (table.nbDims != 2 || count.nbDims != 1 || expected.nbDims != 2 || tags.nbDims != 1) return false;
    const bool same = count.d[0] == table.d[0] && expected.d[0] == table.d[0] && expected.d[1] == table.d[1];
    return same && is_size(table.d[0]) && is_size(table.d[1]) && is_size(tags.d[0]);
}

}  // namespace

nvinfer1::IPluginCapability *KvPageGuard::getCapabilityInterface(PluginCapabilityType type) noexcept {
    switch (type) {
        case PluginCapabilityType::kCORE: return static_cast<nvinfer1::IPluginV3OneCore *>(this);
        case PluginCapabilityType::kBUILD: return static_cast<nvinfer1::IPluginV3OneBuild *>(this);
        case PluginCapabilityType::kRUNTIME: return static_cast<nvinfer1::IPluginV3OneRuntime *>(this);
    }
    return nullptr;
}

KvPageGuard *KvPageGuard::clone() noexcept { return new (std::nothrow) KvPageGuard(*this); }

int32_t KvPageGuard::configurePlugin(nvinfer1::DynamicPluginTensorDesc const *, int32_t input_count,
                                     nvinfer1::DynamicPluginTensorDesc const *, int32_t output_count) noexcept {
    return is_arity(input_count, output_count) ? 0 : kRefused;
}

bool KvPageGuard::supportsFormatCombination(int32_t position, nvinfer1::DynamicPluginTensorDesc const *tensors,
                                            int32_t input_count, int32_t output_count) noexcept {
    if (!is_arity(input_count, output_count) || position < 0 || position >= input_count + output_count) return false;
    const PluginTensorDesc &tensor = tensors[position].desc;
    return tensor.type == DataType::kINT32 && tensor.format == nvinfer1::TensorFormat::kLINEAR;
}

int32_t KvPageGuard::getOutputDataTypes(DataType *output_types, int32_t output_count, DataType const *,
                                        int32_t input_count) const noexcept {
    if (!is_arity(input_count, output_count)) return kRefused;
    output_types[0] = DataType::kINT32;
    return 0;
}

int32_t KvPageGuard::getOutputShapes(nvinfer1::DimsExprs const *inputs, int32_t input_count, nvinfer1::DimsExprs const *,
                                     int32_t, nvinfer1::DimsExprs *outputs, int32_t output_count,
                                     nvinfer1::IExprBuilder &) noexcept {
    if (!is_arity(input_count, output_count) || inputs[kPageTable].nbDims != 2) return kRefused;
    outputs[0].nbDims = 1;
    outputs[0].d[0] = inputs[kPageTable].d[0];
    return 0;
}

int32_t KvPageGuard::onShapeChange(PluginTensorDesc const *inputs, int32_t input_count, PluginTensorDesc const *,
                                   int32_t output_count) noexcept {
    if (!is_arity(input_count, output_count)) return kRefused;
    const bool fits = fit(inputs[kPageTable].dims, inputs[kPageCount].dims, inputs[kExpectedTags].dims, inputs[kPageTags].dims);
    return fits ? 0 : kRefused;
}

int32_t KvPageGuard::enqueue(PluginTensorDesc const *descriptions, PluginTensorDesc const *, void const *const *inputs,
                             void *const *outputs, void *, cudaStream_t stream) noexcept {
    const Dims &table = descriptions[kPageTable].dims, &tags = descriptions[kPageTags].dims;
    if (!fit(table, descriptions[kPageCount].dims, descriptions[kExpectedTags].dims, tags)) return kRefused;
    const auto array = [&](Input input) { return static_cast<const int32_t *>(inputs[input]); };
    const RhPageGuard guard{array(kPageTable),    array(kPageCount),     array(kExpectedTags), array(kPageTags),
                            int32_t(table.d[0]), int32_t(table.d[1]), int32_t(tags.d[0])};
    return rh_page_guard_cuda(&guard, static_cast<int32_t *>(outputs[0]), stream);
}

nvinfer1::IPluginV3 *KvPageGuard::attachToContext(nvinfer1::IPluginResourceContext *) noexcept { return clone(); }

PluginFieldCollection const *KvPageGuard::getFieldsToSerialize() noexcept { return &kNoFields; }

nvinfer1::IPluginV3 *KvPageGuardCreator::createPlugin(nvinfer1::AsciiChar const *, PluginFieldCollection const *,
                                                      nvinfer1::TensorRTPhase) noexcept {
    return new (std::nothrow) KvPageGuard;
}

PluginFieldCollection const *KvPageGuardCreator::getFieldNames() noexcept { return &kNoFields; }

}  // namespace roundhouse
