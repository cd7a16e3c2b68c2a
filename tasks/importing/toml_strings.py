"""Writes strings of TOML."""


def quoted(text):
    """Returns a TOML string of a text without control characters."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def basic_string(text):
    """Returns any text as a basic string of TOML."""
    out = []
    for c in text:
        if c in '"\\':
            out.append("\\" + c)
        elif c == "\n":
            out.append("\\n")
        elif ord(c) < 32 or ord(c) == 127:
            out.append(f"\\u{ord(c):04x}")
        else:
            out.append(c)
    return '"' + "".join(out) + '"'


def source_string(text):
    """Returns any text as a multi-line literal string of TOML if possible, else escaped."""
    is_plain = (
        "'''" not in text
        and not text.endswith("'")
        and all(c in "\n\t" or (ord(c) >= 32 and ord(c) != 127) for c in text)
    )
    return f"'''\n{text}'''" if is_plain else basic_string(text)
