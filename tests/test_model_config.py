"""`--parameters`: a number, or the config of a model. The counts are those that the models' cards state."""

from __future__ import annotations

import json

import pytest

from nsys_insight.cli.main import app
from nsys_insight.errors import UsageError
from nsys_insight.packs.model_config import count_parameters

LLAMA_3_8B = {
    "model_type": "llama", "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
}  # fmt: skip
GPT_2 = {
    "model_type": "gpt2", "activation_function": "gelu_new", "n_embd": 768, "n_layer": 12, "n_head": 12,
    "vocab_size": 50257,
}  # fmt: skip
MIXTRAL_8X7B = LLAMA_3_8B | {
    "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000,
}  # fmt: skip


@pytest.mark.parametrize(("text", "count"), [("8e9", 8e9), ("8B", 8e9), ("350m", 3.5e8), ("124000", 124000)])
def test_a_number_may_have_a_suffix(text, count):
    assert count_parameters(text) == count


@pytest.mark.parametrize(
    ("config", "stated", "lookups"),
    [
        (LLAMA_3_8B, 8.03e9, 128256 * 4096),  # the input embedding is not shared with the output
        (GPT_2, 124.4e6, 1024 * 768),  # it is; positions are a lookup
        (MIXTRAL_8X7B, 12.88e9, 32000 * 4096),  # active parameters
    ],
)
def test_a_config_has_the_parameters_of_the_model_without_lookups(tmp_path, config, stated, lookups):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert count_parameters(str(path)) == pytest.approx(stated - lookups, rel=0.002)


@pytest.mark.parametrize(
    "text",
    [
        "{}", "[1]", "{", '{"hidden_size": "large"}',
        json.dumps(LLAMA_3_8B | {"kv_lora_rank": 512}),
        json.dumps(LLAMA_3_8B | {"is_encoder_decoder": True}),
        json.dumps(MIXTRAL_8X7B | {"num_experts_per_tok": None}),
    ],
)  # fmt: skip
def test_a_config_that_does_not_tell_is_refused(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"config\.json"):
        count_parameters(str(path))


def test_the_command_takes_a_config(sample, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GPT_2))
    app(
        ["speed-of-light", str(sample("decode_eager")), "--parameters", str(path), "--tokens", "32", "-f", "json"],
        standalone_mode=False,
    )
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["flop_count"] == 2 * count_parameters(str(path))


def test_something_else_is_refused_in_one_sentence(sample):
    with pytest.raises(UsageError, match="--parameters takes a number"):
        app(["speed-of-light", str(sample("decode_eager")), "--parameters", "many"], standalone_mode=False)
