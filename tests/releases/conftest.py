"""A local Hub with a record of requests, for the tests of publishing."""

from __future__ import annotations

import os

# Read by huggingface_hub when it is imported.
os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
