"""The program of one child of the engine host: a llama.cpp server on a loopback port.

llama.cpp ends the whole process where an assertion of it fails, which is why it has one of its own. The first line of
standard input is the key that its clients must show; when standard input ends, so does the server.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Any

from harnesslab.runtime.engines.configuration import Configuration

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve until standard input ends."""
    parent = os.getppid()
    configuration = Configuration.from_json(json.loads(sys.argv[1]))
    _die_with_parent(parent)
    # what llama.cpp prints must not be taken for the one line that says where it listens
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    key = sys.stdin.readline().strip()
    import xllamacpp

    parameters = _parameters(xllamacpp, configuration, key)
    server = xllamacpp.Server(parameters)
    facts = {
        "address": server.listening_address,
        "version": xllamacpp.__version__,
        "system": " ".join(xllamacpp.get_system_info().split()),
        "devices": [item["description"] for item in xllamacpp.get_device_info() if item["name"] != "CPU"],
        "kv_cache": _type_name(xllamacpp, parameters.cache_type_k),
    }
    told.write(json.dumps(facts) + "\n")
    told.close()
    sys.stdin.read()
    os._exit(0)  # its threads may be in the middle of a batch


def _parameters(xllamacpp: Any, configuration: Configuration, key: str) -> Any:
    parameters = xllamacpp.CommonParams()
    attention = xllamacpp.llama_flash_attn_type
    parameters.model.path = configuration.model
    parameters.flash_attn_type = (
        attention.LLAMA_FLASH_ATTN_TYPE_ENABLED
        if configuration.flash_attention
        else attention.LLAMA_FLASH_ATTN_TYPE_DISABLED
    )
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = configuration.threads
    parameters.n_batch, parameters.n_ubatch = configuration.n_batch, configuration.n_ubatch
    parameters.n_parallel, parameters.kv_unified = configuration.slots, False
    parameters.n_ctx = configuration.context * configuration.slots
    parameters.fit_params = False  # which would change the above to fit the memory
    parameters.n_gpu_layers = 0
    parameters.cache_prompt, parameters.cache_ram_mib = configuration.prefix_cache, 0
    parameters.cache_idle_slots = configuration.prefix_cache
    parameters.ctx_shift = False
    parameters.port, parameters.api_keys = 0, [key]
    parameters.cors_origins, parameters.ui = "", False
    parameters.endpoint_slots, parameters.endpoint_metrics = True, True
    parameters.verbosity = 1
    return parameters


def _type_name(xllamacpp: Any, value: int) -> str:
    types = xllamacpp.ggml_type
    names = [name for name in dir(types) if name.startswith("GGML_TYPE_") and int(getattr(types, name)) == int(value)]
    return names[0].removeprefix("GGML_TYPE_").lower() if names else str(value)


def _die_with_parent(parent: int) -> None:
    """Let the kernel end this process with the thread that started it, where the kernel can."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was gone before the kernel knew
            os._exit(1)


if __name__ == "__main__":
    main()
