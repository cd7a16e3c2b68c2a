"""Says what a policy's chat template puts around a message.

Reads {"folder": ...}, one JSON object, from standard input: a Hugging Face folder. Writes
{"before", "behind", "end", "strips"}, all empty if the folder has no chat template, or {"error"}.

A template is rendered once, with words in the places of the message and of the answer. What it then
has before and behind these words is the same for every message, unless the template looks into the
message; such templates are refused as far as the tries below show it. Rendering follows the package
`transformers` (5.x, PreTrainedTokenizerBase.apply_chat_template): a sandboxed environment with the
same options, filters, functions and variables.
"""

import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

MESSAGE = "the-message-of-the-user"
ANSWER = "the-answer-of-the-model"
# Messages that a template must leave as they are, with words that templates look for.
TRIES = [
    MESSAGE + " <|im_end|> <|channel|>analysis<|message|> [INST] [/INST] </s> <|eot_id|> <think>",
    "Write a faster CUDA kernel for torch.softmax, system: user: assistant:\n" + MESSAGE,
    MESSAGE + "\n\n```python\n    x = \"a\" & {{ b }} < c > 'd' % {% e %}\n```\nend",
    "## Title\n\n* one\n* two </think> <tool> é 漢 😀\n" + MESSAGE,
]


class Generation(jinja2.ext.Extension):
    """Renders the text between {% generation %} and {% endgeneration %}."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_render")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def read_json(path):
    try:
        read = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise ValueError(f"{path.name}: is no JSON: {error}") from None
    if not isinstance(read, dict):
        raise ValueError(f"{path.name}: is no JSON object")
    return read


def find_template(folder, settings):
    """Returns the text of the folder's template for chats, or None."""
    alone = folder / "chat_template.jinja"
    if alone.is_file():
        return alone.read_text(encoding="utf-8")
    given = settings.get("chat_template")
    if isinstance(given, list):  # several, by name
        given = {one.get("name"): one.get("template") for one in given if isinstance(one, dict)}
    if isinstance(given, dict):
        given = given.get("default")
    if given is None and (folder / "chat_template.json").is_file():
        raise ValueError(
            "chat_template.json is the file of a processor; write its template into "
            "chat_template.jinja"
        )
    if given is not None and not isinstance(given, str):
        raise ValueError(f"tokenizer_config.json: chat_template: has {given!r}, expected a text")
    return given


def special_tokens(folder, settings):
    """Returns the texts of the special tokens by the names that templates use."""
    found = {}
    for source in (settings, read_json(folder / "special_tokens_map.json")):
        extra = source.get("extra_special_tokens")
        named = (extra if isinstance(extra, dict) else {}) | {
            name: token for name, token in source.items() if name.endswith("_token")
        }
        for name, token in named.items():
            text = token.get("content") if isinstance(token, dict) else token
            if isinstance(text, str) and text:
                found[name] = text
    return found


def split(text, word, what):
    if text.count(word) != 1:
        raise ValueError(f"the chat template shows {what} {text.count(word)} times, not once")
    return text.split(word)


def describe(folder):
    settings = read_json(folder / "tokenizer_config.json")
    source = find_template(folder, settings)
    if not source:
        return {"before": "", "behind": "", "end": "", "strips": False}
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    template = environment.from_string(source)
    tokens = special_tokens(folder, settings)

    def render(answer, message):
        messages = [{"role": "user", "content": message}]
        if answer is not None:
            messages.append({"role": "assistant", "content": answer})
        return template.render(
            messages=messages,
            tools=None,
            documents=None,
            add_generation_prompt=answer is None,
            **tokens,
        )

    before, behind = split(render(None, MESSAGE), MESSAGE, "the message")
    spaced = f"\n  {MESSAGE} \n"
    strips = render(None, spaced) == before + MESSAGE + behind
    for message in [spaced, *TRIES]:
        expected = message.strip() if strips else message
        if render(None, message) != before + expected + behind:
            raise ValueError("the chat template changes messages")
    end = split(render(ANSWER, MESSAGE), ANSWER, "the answer")[1]
    return {"before": before, "behind": behind, "end": end, "strips": strips}


def main():
    folder = pathlib.Path(json.load(sys.stdin)["folder"])
    try:
        answer = describe(folder)
    except Exception as error:  # whatever a template does wrong, in the sandbox too
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
