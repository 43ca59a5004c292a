"""A small Hub on this machine: the routes that the Hub's clients use, over bare git repositories and LFS objects.

    with LocalHub(root) as hub:
        api = HfApi(endpoint=hub.endpoint, token="any")

Clients must run with `HF_HUB_DISABLE_XET=1`, set before `huggingface_hub` is imported: it uploads through Xet
otherwise, with no negotiation, and this Hub speaks LFS only. `git clone` and git-lfs read the same store.
"""

from releases.local_hub.faults import RATE_LIMITED, Fault, Faults, Recorded
from releases.local_hub.limits import Limits
from releases.local_hub.server import LOOPBACK, LocalHub
from releases.local_hub.store import Repository, Settings, Store

__all__ = [
    "LOOPBACK",
    "RATE_LIMITED",
    "Fault",
    "Faults",
    "Limits",
    "LocalHub",
    "Recorded",
    "Repository",
    "Settings",
    "Store",
]
