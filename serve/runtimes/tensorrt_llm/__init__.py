"""TensorRT-LLM engines in our engine loop: our pages, our scheduler and our page check around upstream's ``Session``.

Importing this room loads neither TensorRT nor MPI. Everything that a GPU does is behind the protocols of ``session.py``,
``device.py`` and ``link.py``.
"""

from __future__ import annotations
