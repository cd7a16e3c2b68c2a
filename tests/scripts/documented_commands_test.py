"""Tests the commands that README.md, doc/*.md and comments of configurations show:
documented_commands_test.py HONE

Every command is parsed: its program, subcommand and options must exist, and so must the files of
configs/ that it names. Those that need neither a GPU, a network nor much time are run as they are
written, in order, in a folder that looks like a checkout and has the files that a reader would have.
"""

import glob
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HONE = ""  # the program, an argument of the test
SOURCES = [
    ROOT / "README.md",
    *sorted((ROOT / "doc").glob("*.md")),
    *sorted((ROOT / "configs").rglob("*.toml")),
]
COMMAND = re.compile(r"^(?:    |# {2,})((?:hone|(?:\./)?scripts/\S+)(?: .*)?)$")

# A reader's values for words in capitals, and names that only an example has.
NAMES = {
    "TASKS": "configs/tasks",
    "FOLDER": "documents",
    "DIR": "results",
    "6844f": "{best}",
    "1adea": "{second}",
}
# Commands that are not run here, by what they contain, and why.
NOT_RUN = {
    r"cuda|policy bench|task compile|h200=": "needs a GPU",
    r"^hone (run|node|up|down|scale|status|serve|ui)\b(?!.*ring)": "other tests run such processes",
    r"^hone (report|pool portability|corpus collect --pool runs/endpoint)": "of such a run",
    r"smollm2|level1|HOST|authority (head|gpus)|runs/ssh": "needs files from elsewhere",
    r"synthesise|FOLDER --prompt|policy check FOLDER": "takes minutes, or needs a model",
    r"--references|--screen|configs/corpus/\*/\*\.md": "times everything",
    r"^(\./)?scripts/": "other tests run scripts",
    r"model_new|import model\.py": "tests/launch/translation_test.cpp does so with such files",
    r"^hone bench": "reserves cores, which other tests may hold; tests/launch/bench_test.cpp runs it",
    r"--wait|export 6844f": "waits, or needs a variant that is ok in a run that is not simulated",
}
MODULE = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2
def get_inputs():
    return [torch.randn(64, 32)]
def get_init_inputs():
    return []
"""
SOFTMAX = "torch.softmax(x * 0.125, dim=1)"


def document(expression):
    return (
        "## Code Implementation\n```python\ndef forward(x: Tensor) -> Tensor:\n"
        f"    return {expression}\n```\n"
    )


def commands():
    """Returns (file, command) in order, with continued lines joined and comments removed."""
    found = []
    for source in SOURCES:
        lines = iter(source.read_text().splitlines())
        for line in lines:
            match = COMMAND.match(line)
            if match is None:
                continue
            text = match[1]
            while text.endswith("\\"):
                text = text[:-1] + next(lines).lstrip("# ")
            text = re.sub(r"\s+# .*$", "", text)
            found.append((source.relative_to(ROOT), text))
    return found


def help_of(words):
    ended = subprocess.run([HONE, *words, "--help"], capture_output=True, text=True, timeout=30)
    return ended.stdout if ended.returncode == 0 else ""


class DocumentedCommands(unittest.TestCase):
    def test_are_many(self):
        self.assertGreater(len(commands()), 80)

    def test_have_programs_subcommands_and_options_that_exist(self):
        pages = {}
        for source, text in commands():
            words = shlex.split(text.split(" > ")[0])
            if words[0] != "hone":
                self.assertTrue((ROOT / words[0]).is_file(), (source, text))
                continue
            depth = 1
            while depth < len(words) and re.fullmatch(r"[a-z]+", words[depth]) and depth < 3:
                key = tuple(words[1 : depth + 1])
                pages.setdefault(key, help_of(key))
                if not pages[key] or f"hone {' '.join(key)}" not in pages[key]:
                    break
                depth += 1
            page = pages[tuple(words[1:depth])]
            self.assertTrue(page, (source, text))
            for option in (w.split("=")[0] for w in words if w.startswith("--")):
                self.assertRegex(page, rf"{option}\b", (str(source), text))

    def test_name_configurations_and_keys_that_exist(self):
        reference = (ROOT / "doc" / "configuration.md").read_text()
        keys = set()
        for part in reference.split("\n## ")[1:]:
            section = part.split("\n", 1)[0].strip("[]")
            keys |= {(section, key) for key in re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)}
        for source, text in commands():
            for word in shlex.split(text.split(" > ")[0]):
                if word.startswith("configs/") and "--out" not in text and "smollm2" not in word:
                    self.assertTrue(glob.glob(str(ROOT / word)), (source, text))
                setting = re.match(r"([a-z_]+)\.(?:[a-z_]+\.)?([a-z_]+)=", word)
                if setting and "scale" not in text:
                    section = "endpoint.NAME" if setting[1] == "endpoint" else setting[1]
                    self.assertIn((section, setting[2]), keys, (source, text))

    def test_quoted_messages_exist(self):
        """The quotes in the first column of the tables of troubleshooting.md are messages."""
        sources = "".join(
            file.read_text()
            for folder in ("evaluation", "launch", "network", "policy", "process", "storage")
            for file in sorted((ROOT / folder).rglob("*.cpp"))
        )
        # Parts of a literal, and of a sum of literals and values, follow one another.
        sources = re.sub(r'"\s*\n?\s*"', "", sources)
        page = (ROOT / "doc" / "troubleshooting.md").read_text()
        quotes = [
            quote
            for row in re.findall(r"^\| (.*?) \|", page, re.MULTILINE)
            for quote in re.findall(r"`([^`]+)`", row)
            if " " in quote
        ]
        self.assertGreater(len(quotes), 10)
        for quote in quotes:
            for part in re.split(r"\.\.\.| \(Address already in use", quote):
                self.assertIn(part.strip(" ,;')"), sources, quote)

    def test_do_what_they_say(self):
        with tempfile.TemporaryDirectory() as folder:
            at = pathlib.Path(folder)
            self.prepare(at)
            names = dict(NAMES)
            best = self.run_in(at, "hone pool top --pool runs/mine/pool --json").stdout
            ids = re.findall(r'"variant": ?"(\w+)"', best)
            names["6844f"], names["1adea"] = ids[0], ids[1]
            ran = 0
            for text, source in {text: source for source, text in commands()}.items():
                if any(re.search(pattern, text) for pattern in NOT_RUN):
                    continue
                for name, meant in names.items():
                    text = re.sub(rf"\b{name}\b", meant, text)
                if "hone init mine" in text or "results" in text:
                    for made in ("mine", "results"):
                        shutil.rmtree(at / made, ignore_errors=True)
                ended = self.run_in(at, text)
                # On a machine with other work, a timing may not settle.
                for _ in range(2):
                    if ended.returncode == 0 or ": unstable" not in ended.stdout:
                        break
                    ended = self.run_in(at, text)
                self.assertEqual(
                    ended.returncode, 0, (str(source), text, ended.stdout, ended.stderr)
                )
                ran += 1
            self.assertGreater(ran, 20)

    def prepare(self, at):
        """Makes what a reader has: a checkout, a module, documents, and a finished run."""
        shutil.copytree(ROOT / "configs", at / "configs")
        (at / "my_module.py").write_text(MODULE)
        (at / "variant.md").write_text(document("torch.relu(x) + torch.relu(x)"))
        task = (ROOT / "configs/tasks/softmax.toml").read_text()
        (at / "my_task.toml").write_text(task.replace('name = "softmax"', 'name = "my_task"'))
        (at / "documents/softmax").mkdir(parents=True)
        (at / "documents/softmax/one.md").write_text(document(SOFTMAX))
        for folder in ("drawn", "imported"):
            (at / folder).mkdir()
            shutil.copy(ROOT / "configs/tasks/softmax.toml", at / folder)
        ended = self.run_in(
            at,
            "hone run configs/ring.toml --dir runs/mine --set contrastive.steps=4"
            " --set 'tasks.names=[\"softmax\"]' --set generation.group_size=8"
            " --set contrastive.groups=4 --set pool.max_groups=8",
        )
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def run_in(self, at, text):
        """Runs a command of a page. A variant of softmax is one wherever the page judges softmax."""
        is_softmax = re.search(r"(eval|--task) (softmax|layer_norm)", text)
        expression = SOFTMAX if is_softmax else "torch.relu(x) + torch.relu(x)"
        (at / "variant.md").write_text(document(expression))
        text = text.replace("--task layer_norm", "--task softmax")
        if re.search(r"^hone (eval|export|task check)\b", text):
            text += " --share-cores"  # other tests may have reserved them
        return subprocess.run(
            ["bash", "-c", f'hone() {{ "{HONE}" "$@"; }}; {text}'],
            cwd=at,
            capture_output=True,
            text=True,
            timeout=120,
        )


if __name__ == "__main__":
    HONE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
