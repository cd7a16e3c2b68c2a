"""Makes the golden files of the policy's tests with Hugging Face's own code.

    python -m pip install transformers==5.23.0 tokenizers==0.23.3 torch==2.11.0 peft==0.21.2
    python tests/policy/golden/make.py

The files, which this script writes next to itself, are a few kilobytes of random weights for each
kind of decoder, the logits and greedy continuations that `transformers` computes from these
weights, and the token ids that `tokenizers` gives for awkward texts.
"""

import json
import pathlib
import shutil

import torch
import transformers
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
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
    "a \u3000<left> b <right>\u00a0\n c <left><right>",
    "word words sword (word) \u00e9word word\u00e9 word_ word",
    "bytes \x00\x04 that \x1b may \x7f lack \u0378\U0010fffd tokens",
]

# Chat templates that use what those of widespread models use, written for these tests: the file that
# holds each, the special tokens, and the template.
CHATS = {
    "default_system": (
        "tokenizer_config.json",
        {"eos_token": "<|end|>"},
        """{%- if messages[0]['role'] != 'system' -%}
<|start|>system
You help.<|end|>
{% endif %}
{%- for message in messages %}
    {{- '<|start|>' + message.role + '\\n' + message.content + '<|end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start|>assistant\\n' }}
{%- endif %}""",
    ),
    "headers": (
        "chat_template.jinja",
        {"bos_token": "<|text|>", "eos_token": "<|turn|>"},
        """{%- macro header(role) -%}
<|head|>{{ role }}<|body|>

{% endmacro -%}
{{- bos_token }}
{%- set date = '26 Jul 2024' if not strftime_now is defined else strftime_now('%d')[:0] + 'now' %}
{{- header('system') }}Today: {{ date }}{% if tools %}{{ tools | tojson(indent=4) }}{% endif %}<|turn|>
{%- for message in messages %}
    {%- generation %}{{- header(message['role']) + message['content'] | trim + '<|turn|>' }}{% endgeneration %}
{%- endfor %}
{%- if add_generation_prompt %}{{ header('assistant') }}{% endif %}""",
    ),
    "instructions": (
        "tokenizer_config.json",
        {"bos_token": {"content": "<s>"}, "eos_token": {"content": "</s>"}},
        """{{ bos_token }}{% for message in messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('roles must alternate') }}
{% endif %}
{% if message['role'] == 'user' %}
{{ '[INST] ' + message['content'] + ' [/INST]' }}
{% else %}
{{ message['content'] + eos_token }}
{% endif %}
{% endfor %}""",
    ),
    "thoughts": (
        "chat_template.jinja",
        {"eos_token": "<|end|>"},
        """{%- set found = namespace(last=0) %}
{%- for message in messages[::-1] %}
    {%- if message.role != 'user' %}{% continue %}{% endif %}
    {%- set found.last = (messages | length - 1) - loop.index0 %}
    {%- break %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role == 'assistant' and '</think>' in content %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {{- '<|start|>' ~ message.role ~ '\\n' ~ content ~ '<|end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start|>assistant\\n<think>\\n\\n</think>\\n\\n' }}{% endif %}""",
    ),
}
MESSAGES = [
    "Say hello.",
    "  spaces at both ends \n",
    "# A title\n\n```python\nx = {'a': \"b\"}  # {{ not a place }} {% nor this %}\n```\n",
    "emoji \U0001f680, <|end|> and <b>&amp;</b>",
]


def make_chats() -> None:
    """Writes a folder with each chat template, and what `transformers` renders from it."""
    words = Tokenizer(models.BPE())
    for name, (file, tokens, template) in CHATS.items():
        folder = here / "chats" / name
        folder.mkdir(parents=True, exist_ok=True)
        if file.endswith(".jinja"):
            (folder / file).write_text(template)
            (folder / "special_tokens_map.json").write_text(json.dumps(tokens, indent=1))
        else:
            (folder / file).write_text(json.dumps({"chat_template": template} | tokens, indent=1))
        plain = {k: v["content"] if isinstance(v, dict) else v for k, v in tokens.items()}
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, **plain)
        golden = []
        for message in MESSAGES:
            chat = [{"role": "user", "content": message}]
            answered = [*chat, {"role": "assistant", "content": "Hello!"}]
            golden.append(
                {
                    "message": message,
                    "asked": tokenizer.apply_chat_template(
                        chat, chat_template=template, tokenize=False, add_generation_prompt=True
                    ),
                    "answered": tokenizer.apply_chat_template(
                        answered, chat_template=template, tokenize=False
                    ),
                }
            )
        (folder / "golden.json").write_text(json.dumps(golden, indent=1))


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
        write_golden(model, folder)


def write_golden(model: torch.nn.Module, folder: pathlib.Path) -> None:
    """Writes golden.json: tokens, and what the model computes from them."""
    tokens = torch.randint(
        0, SHAPE["vocab_size"], (2, 40), generator=torch.Generator().manual_seed(3)
    )
    with torch.no_grad():
        logits = model(tokens).logits
        greedy = model.generate(
            input_ids=tokens[:1, :5],
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


def make_adapters() -> None:
    """Writes a folder of adapters of the decoder `llama`, as the package `peft` saves them."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(8)
    model = LlamaForCausalLM.from_pretrained(here / "llama")
    modules = ["q_proj", "o_proj", "up_proj"]
    adapted = get_peft_model(
        model, LoraConfig(r=3, lora_alpha=6, target_modules=modules, task_type="CAUSAL_LM")
    ).eval()
    for name, parameter in adapted.named_parameters():
        if "lora_" in name:
            parameter.data.normal_(0, 0.3)
    folder = here / "llama_adapters"
    shutil.rmtree(folder, ignore_errors=True)
    adapted.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    shutil.copy(here / "llama" / "config.json", folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = "../llama"
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
    write_golden(adapted, folder)


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
        # As SmolLM2's: a vocabulary that lacks bytes.
        "partial": (
            None,
            pre_tokenizers.Sequence(
                [
                    pre_tokenizers.Digits(individual_digits=True),
                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
                ]
            ),
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
        alphabet = (
            {"limit_alphabet": 90}
            if name == "partial"
            else {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet()}
        )
        trainer = trainers.BpeTrainer(
            vocab_size=420,
            **alphabet,
            show_progress=False,
            special_tokens=[
                AddedToken("<|begin|>", special=True),
                AddedToken("<|end|>", special=True),
            ],
        )
        tokenizer.train_from_iterator(corpus, trainer)
        if name == "partial":
            tokenizer.add_tokens(
                [
                    AddedToken("<left>", lstrip=True, normalized=False),
                    AddedToken("<right>", rstrip=True, normalized=False),
                    AddedToken("word", single_word=True, normalized=False),
                ]
            )
            tokenizer.post_processor = processors.TemplateProcessing(
                single="<|begin|> $A", special_tokens=[("<|begin|>", 0)]
            )
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
    make_adapters()
    make_tokenizers()
    make_chats()
