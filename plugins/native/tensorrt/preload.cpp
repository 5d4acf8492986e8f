// Registers the plugin as soon as the library is loaded. Linked into the library for LD_PRELOAD only: in the one for
// load_library the plugin would be registered twice.

#include "kv_page_guard.h"

using roundhouse::KvPageGuardCreator;

REGISTER_TENSORRT_PLUGIN(KvPageGuardCreator);
