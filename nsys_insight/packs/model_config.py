"""The parameters of a transformer that each token uses, from the `config.json` that Hugging Face transformers writes.

The embedding of the input is a lookup, not a product, and is not counted; the projection to the vocabulary is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nsys_insight.errors import UsageError, describe_cause
from nsys_insight.records import RecordError, parse_json

# Suffixes of numbers: 8B, 350M.
_FACTORS = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
# The names of the same number in the configs of different models.
_NAMES = {
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "layers": ("num_hidden_layers", "n_layer"),
    "heads": ("num_attention_heads", "n_head"),
    "intermediate": ("moe_intermediate_size", "intermediate_size", "n_inner", "ffn_dim"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
}
# Activations of feed-forward parts with three matrices, one of them a gate. Gemma has a gate with another one.
_GATED_ACTIVATIONS = ("silu", "swish")
# What makes the count of this module wrong: other layers than attention and a feed-forward part, or with other shapes.
_OTHER_SHAPES = ("q_lora_rank", "kv_lora_rank", "is_encoder_decoder", "ssm_cfg", "state_size", "first_k_dense_replace")


def count_parameters(text: str) -> float:
    """Return the number of parameters that a text means: `8e9`, `8B`, or the file of a model's config.

    Raises:
        UsageError: It is neither, or the config is not that of a transformer whose layers are all alike.
    """
    number, factor = (text[:-1], _FACTORS[text[-1].lower()]) if text[-1:].lower() in _FACTORS else (text, 1.0)
    try:
        return float(number) * factor
    except ValueError:
        pass
    path = Path(text)
    if not path.is_file():
        raise UsageError(
            f"--parameters takes a number such as 8e9 or 8B, or a model's config.json, not {text!r}",
            "the number that the model's card states, or the file beside its weights",
        )
    try:
        config = parse_json(path.read_bytes())
    except (OSError, RecordError) as error:
        raise UsageError(
            f"{path} cannot be read: {describe_cause(error)}", "give the number: --parameters 8e9"
        ) from None
    count = _count_in_config(config) if isinstance(config, dict) else None
    if count is None:
        raise UsageError(
            f"{path} is not the config of a transformer whose layers are all attention and a feed-forward part",
            "give the number of parameters that each token uses: --parameters 8e9",
        )
    return count


def _count_in_config(config: dict[str, Any]) -> float | None:
    """Return the parameters that each token uses; None if the config does not tell."""

    def read(name: str) -> float | None:
        values = (config.get(key) for key in _NAMES.get(name, (name,)))
        return next((float(value) for value in values if isinstance(value, int | float) and value > 0), None)

    if any(config.get(key) for key in _OTHER_SHAPES):
        return None
    hidden, layers, heads, vocabulary = (read(name) for name in ("hidden", "layers", "heads", "vocab_size"))
    if not (hidden and layers and heads and vocabulary):
        return None
    query = heads * (read("head_dim") or hidden / heads)
    key_or_value = query * (read("num_key_value_heads") or heads) / heads
    attention = hidden * (2 * query + 2 * key_or_value)
    activation = str(config.get("hidden_act") or config.get("hidden_activation") or config.get("activation_function"))
    is_gated = activation in _GATED_ACTIVATIONS or str(config.get("model_type")).startswith("gemma")
    expert = hidden * (read("intermediate") or 4 * hidden) * (3 if is_gated else 2)
    experts = read("experts") or 0
    feed_forward = expert
    if experts > 1:
        used_experts = read("num_experts_per_tok")
        if not used_experts:
            return None
        shared_experts = hidden * (read("shared_expert_intermediate_size") or 0) * 3
        feed_forward = expert * used_experts + shared_experts + hidden * experts
    return layers * (attention + feed_forward) + hidden * vocabulary
