"""The text of /metrics, for a program that has a dozen values and a budget of 30 MB."""

from __future__ import annotations


def render(samples: list[tuple[str, str, str, dict[str, str], float]]) -> str:
    """Prometheus text of ``(name, type, help, labels, value)``; samples of one name stand together."""
    lines: list[str] = []
    last = ""
    for name, kind, text, labels, value in samples:
        if name != last:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
            last = name
        inner = ",".join(f'{key}="{_escape(word)}"' for key, word in labels.items())
        lines.append(f"{name}{{{inner}}} {value:g}" if inner else f"{name} {value:g}")
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
