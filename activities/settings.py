"""
What the steps read from the environment, and nothing else does.

    GATEWRIGHT_DATA_DIR   where jobs, profiles and releases are kept; `data` below the working directory if unset
    GATEWRIGHT_MODEL      the Gemini model that drafts release notes; a template writes them if unset

The model's own settings (GEMINI_API_KEY, GOOGLE_API_KEY, GOOGLE_GENAI_USE_VERTEXAI, GOOGLE_GEMINI_BASE_URL and so on)
are read by google-genai itself.
"""

import os
from pathlib import Path

DATA_DIR = "GATEWRIGHT_DATA_DIR"
MODEL = "GATEWRIGHT_MODEL"


def data_dir() -> Path:
    """The absolute path of the folder that holds jobs, profiles and releases; it need not exist yet."""
    return Path(os.environ.get(DATA_DIR, "").strip() or "data").resolve()


def model() -> str | None:
    """The name of the model that drafts release notes, or nothing if the template is to write them."""
    return os.environ.get(MODEL, "").strip() or None
