// What TensorRT asks a library for that is loaded with load_library.

#include "kv_page_guard.h"

#define ROUNDHOUSE_EXPORT extern "C" __attribute__((visibility("default")))

ROUNDHOUSE_EXPORT nvinfer1::IPluginCreatorInterface *const *getCreators(int32_t &count) {
    static roundhouse::KvPageGuardCreator creator;
    static nvinfer1::IPluginCreatorInterface *const creators[] = {&creator};
    count = 1;
    return creators;
}

// The plugin never logs: what goes wrong is the code that enqueue returns, and TensorRT reports it.
ROUNDHOUSE_EXPORT void setLoggerFinder(nvinfer1::ILoggerFinder *) {}
