"""Page tags in TensorRT-LLM's PyTorch backend: every rank's KV cache manager and executor, with the check between them.

TensorRT-LLM imports ``connector.py`` in every rank, because its arguments name it as the KV connector; nothing else does. No
module here imports tensorrt_llm before that.
"""
