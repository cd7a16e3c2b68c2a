"""Writes what `transformers` makes of SmolLM2-135M-Instruct, for tests/policy/smollm2_test.cpp.

    scripts/get-smollm2 FOLDER
    python -m pip install transformers==5.24.0 torch==2.11.0
    python tests/policy/golden/make_smollm2.py FOLDER tests/policy/golden/smollm2.json

`--lines` and `--prompts` say how much; the defaults make the file of the tree. Lines are those of
the files under version control and random ones of all of Unicode; prompts are short questions.
"""

import argparse
import json
import pathlib
import random
import subprocess

import torch
import transformers

TOPICS = [
    "softmax",
    "a matrix product",
    "layer norm",
    "the sum of a row",
    "a GPU",
    "CUDA",
    "warps",
    "shared memory",
    "bfloat16",
    "a hash map",
    "binary search",
    "the moon",
    "bread",
    "Rome",
    "prime numbers",
    "the sea",
    "a violin",
    "chess",
    "rain",
    "glass",
    "iron",
    "tea",
    "snow",
    "a bridge",
    "the heart",
]
QUESTIONS = ["Explain {} in two sentences.", "Write a short Python function about {}."]
NEW_TOKENS = 32


def source_lines():
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout
    lines = set()
    for name in listed.splitlines():
        path = pathlib.Path(name)
        if path.suffix in {".cpp", ".hpp", ".md", ".py", ".toml", ".txt", ".capnp", ".cu"}:
            lines.update(path.read_text(encoding="utf-8").splitlines())
    return sorted(line for line in lines if line.strip())


def random_line(draw):
    """Words of letters of all scripts, emoji, white space, control characters and special tokens."""
    kinds = [
        lambda: chr(draw.randrange(32, 127)),
        lambda: chr(draw.randrange(0x1F300, 0x1FAFF)),
        lambda: chr(draw.randrange(0xA0, 0x3000)),
        lambda: chr(draw.randrange(0x3040, 0xD7FF)),
        lambda: draw.choice("\t\n\r\x00\x04\x1b \u00a0\u200d\u3000\ufe0f"),
        lambda: draw.choice(["<|im_start|>", "<|im_end|>", "<repo_name>", "```cuda\n", "    "]),
        lambda: "".join(draw.choices("etaoin shrdlu", k=8)),
    ]
    return "".join(draw.choice(kinds)() for _ in range(draw.randrange(1, 40)))


def rendered_chats(tokenizer, messages):
    return [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": m}], tokenize=False, add_generation_prompt=True
        )
        for m in messages
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=400)
    parser.add_argument("--prompts", type=int, default=4)
    asked = parser.parse_args()
    draw = random.Random(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(asked.folder)
    lines = draw.sample(source_lines(), asked.lines * 3 // 4)
    lines += [random_line(draw) for _ in range(asked.lines - len(lines))]
    prompts = [q.format(t) for t in TOPICS for q in QUESTIONS][:: max(1, 50 // asked.prompts)]
    exact = transformers.AutoModelForCausalLM.from_pretrained(asked.folder, dtype=torch.float32)
    rounded = transformers.AutoModelForCausalLM.from_pretrained(asked.folder, dtype=torch.bfloat16)
    golden = {"lines": [], "chats": [], "bfloat16_errors": []}
    for line in lines:
        ids = tokenizer.encode(line, add_special_tokens=False)
        golden["lines"].append({"text": line, "ids": ids, "decoded": tokenizer.decode(ids)})
    for prompt, chat in zip(prompts, rendered_chats(tokenizer, prompts)):
        ids = tokenizer.encode(chat, add_special_tokens=False)
        with torch.no_grad():
            tokens = torch.tensor([ids])
            whole = exact.generate(
                tokens,
                attention_mask=torch.ones_like(tokens),
                max_new_tokens=NEW_TOKENS,
                do_sample=False,
            )
            difference = rounded(whole).logits.float() - exact(whole).logits
        golden["chats"].append(
            {"prompt": prompt, "chat": chat, "ids": ids, "greedy": whole[0, len(ids) :].tolist()}
        )
        golden["bfloat16_errors"].append(difference.abs().mean().item())
    asked.out.write_text(json.dumps(golden, ensure_ascii=True))


if __name__ == "__main__":
    main()
