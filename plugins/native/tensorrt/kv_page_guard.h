// KvPageGuard: the page guard as a TensorRT plugin.
//
// Inputs, INT32 and linear: page_table [B, M], page_count [B], expected_tags [B, M], page_tags [P]. Output: first_bad [B],
// as page_guard.h defines it. It has no attributes, keeps nothing and needs no workspace.

#ifndef ROUNDHOUSE_KV_PAGE_GUARD_H
#define ROUNDHOUSE_KV_PAGE_GUARD_H

#include <NvInferRuntime.h>

namespace roundhouse {

// What TensorRT finds the plugin by. The namespace is the default one, where LD_PRELOAD's registration puts it too.
constexpr char const *kPluginName = "KvPageGuard";
constexpr char const *kPluginVersion = "1";
constexpr char const *kPluginNamespace = "";

class KvPageGuard final : public nvinfer1::IPluginV3,
                          public nvinfer1::IPluginV3OneCore,
                          public nvinfer1::IPluginV3OneBuild,
                          public nvinfer1::IPluginV3OneRuntime {
public:
    nvinfer1::IPluginCapability *getCapabilityInterface(nvinfer1::PluginCapabilityType type) noexcept override;
    KvPageGuard *clone() noexcept override;

    nvinfer1::AsciiChar const *getPluginName() const noexcept override { return kPluginName; }
    nvinfer1::AsciiChar const *getPluginVersion() const noexcept override { return kPluginVersion; }
    nvinfer1::AsciiChar const *getPluginNamespace() const noexcept override { return kPluginNamespace; }

    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t configurePlugin(nvinfer1::DynamicPluginTensorDesc const *inputs, int32_t input_count,
                            nvinfer1::DynamicPluginTensorDesc const *outputs, int32_t output_count) noexcept override;
    bool supportsFormatCombination(int32_t position, nvinfer1::DynamicPluginTensorDesc const *tensors, int32_t input_count,
                                   int32_t output_count) noexcept override;
    int32_t getOutputDataTypes(nvinfer1::DataType *output_types, int32_t output_count,
                               nvinfer1::DataType const *input_types, int32_t input_count) const noexcept override;
    int32_t getOutputShapes(nvinfer1::DimsExprs const *inputs, int32_t input_count, nvinfer1::DimsExprs const *shape_inputs,
                            int32_t shape_input_count, nvinfer1::DimsExprs *outputs, int32_t output_count,
                            nvinfer1::IExprBuilder &builder) noexcept override;

    int32_t onShapeChange(nvinfer1::PluginTensorDesc const *inputs, int32_t input_count,
                          nvinfer1::PluginTensorDesc const *outputs, int32_t output_count) noexcept override;
    int32_t enqueue(nvinfer1::PluginTensorDesc const *input_descriptions, nvinfer1::PluginTensorDesc const *output_descriptions,
                    void const *const *inputs, void *const *outputs, void *workspace, cudaStream_t stream) noexcept override;
    nvinfer1::IPluginV3 *attachToContext(nvinfer1::IPluginResourceContext *context) noexcept override;
    nvinfer1::PluginFieldCollection const *getFieldsToSerialize() noexcept override;
};

class KvPageGuardCreator final : public nvinfer1::IPluginCreatorV3One {
public:
    nvinfer1::IPluginV3 *createPlugin(nvinfer1::AsciiChar const *name, nvinfer1::PluginFieldCollection const *fields,
                                      nvinfer1::TensorRTPhase phase) noexcept override;
    nvinfer1::PluginFieldCollection const *getFieldNames() noexcept override;
    nvinfer1::AsciiChar const *getPluginName() const noexcept override { return kPluginName; }
    nvinfer1::AsciiChar const *getPluginVersion() const noexcept override { return kPluginVersion; }
    nvinfer1::AsciiChar const *getPluginNamespace() const noexcept override { return kPluginNamespace; }
};

}  // namespace roundhouse
#endif
