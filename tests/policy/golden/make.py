"""Makes the golden files of the policy's tests with Hugging Face's own code.

    python -m pip install transformers==5.23.0 tokenizers==0.23.3 torch==2.11.0
    python tests/policy/golden/make.py

The files, which this script writes beside itself, are a few kilobytes of random weights for each
kind of decoder, the logits and greedy continuations that `transformers` computes from these
weights, and the token ids that `tokenizers` gives for awkward texts.
"""

import json
import pathlib
import shutil

import torch
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

here = pathlib.Path(__file__).parent
SHAPE = dict(
    vocab_size=61,
    hidden_size=24,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=6,
    num_key_value_heads=2,
    max_position_embeddings=64,
    initializer_range=0.3,
)
DECODERS = {
    "llama": (
        LlamaConfig,
        LlamaForCausalLM,
        dict(head_dim=4, tie_word_embeddings=False, rope_theta=500.0),
    ),
    "llama_tied_scaled": (
        LlamaConfig,
        LlamaForCausalLM,
        dict(
            head_dim=4,
            tie_word_embeddings=True,
            rope_scaling={
                "rope_type": "llama3",
                "factor": 4.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16,
            },
        ),
    ),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, dict(tie_word_embeddings=True)),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, dict(head_dim=8, tie_word_embeddings=False)),
}
TEXTS = [
    "",
    " ",
    "hello world",
    "Hello, World!  It's   12345 o'clock.\n\n\ttabbed",
    "def f(x):\n    return x + 1\n",
    "naïve café — “quotes” …",
    "日本語のテキスト",
    "emoji 👩‍👩‍👧‍👦 and \U0001f680",
    "e\u0301 composed from two code points",
    "<|begin|>text<|end|> after",
    "a<|begin|><|begin|>b",
    "mixed\r\nline\rends",
    "    leading spaces",
    "trailing spaces    ",
    "x" * 70,
    "0123456789" * 5,
    "won't can't I'LL we'd",
    "#include <cuda_runtime.h>\n__global__ void k(float* a) { a[threadIdx.x] += 1.0f; }\n",
]


def make_decoders() -> None:
    """Writes a folder for each decoder: a checkpoint and golden.json."""
    for name, (config_class, model_class, extra) in DECODERS.items():
        torch.manual_seed(7)
        model = model_class(config_class(**SHAPE, **extra)).eval()
        # Norms and biases would otherwise be all ones and zeros.
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.data.add_(torch.randn_like(parameter) * 0.2)
        folder = here / name
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        tokens = torch.randint(
            0, SHAPE["vocab_size"], (2, 40), generator=torch.Generator().manual_seed(3)
        )
        with torch.no_grad():
            logits = model(tokens).logits
            greedy = model.generate(
                tokens[:1, :5],
                max_new_tokens=20,
                do_sample=False,
                eos_token_id=None,
                pad_token_id=0,
            )
        golden = {
            "tokens": tokens.tolist(),
            "logits": [
                [round(v, 6) for v in row]
                for row in logits.double().reshape(-1, SHAPE["vocab_size"]).tolist()
            ],
            "greedy": greedy[0, 5:].tolist(),
        }
        (folder / "golden.json").write_text(json.dumps(golden))


def make_tokenizers() -> None:
    """Writes each tokenizer's JSON file and its golden file for `TEXTS`."""
    corpus = TEXTS * 3 + [
        "the quick brown fox jumps over the lazy dog " * 4,
        "for (int i = 0; i < n; ++i) { c[i] = a[i] * b[i]; }\n" * 4,
    ]
    llama3 = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    kinds = {
        "llama3": (
            None,
            pre_tokenizers.Sequence(
                [
                    pre_tokenizers.Split(Regex(llama3), "isolated"),
                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
                ]
            ),
        ),
        "gpt2_nfc": (
            normalizers.NFC(),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ),
        "lines": (
            None,
            pre_tokenizers.Sequence(
                [
                    pre_tokenizers.Split(Regex(r"\d+|[^\d\n]+|\n"), "isolated"),
                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
                ]
            ),
        ),
    }
    for name, (normalizer, splitter) in kinds.items():
        tokenizer = Tokenizer(models.BPE())
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = splitter
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=420,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
            special_tokens=[
                AddedToken("<|begin|>", special=True),
                AddedToken("<|end|>", special=True),
            ],
        )
        tokenizer.train_from_iterator(corpus, trainer)
        tokenizer.save(str(here / f"tokenizer_{name}.json"))
        golden = [
            {
                "text": text,
                "ids": tokenizer.encode(text, add_special_tokens=False).ids,
                "decoded": tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids),
            }
            for text in TEXTS
        ]
        (here / f"tokenizer_{name}.golden.json").write_text(json.dumps(golden, ensure_ascii=False))


if __name__ == "__main__":
    make_decoders()
    make_tokenizers()
