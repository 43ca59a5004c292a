"""A local Hub with a record of requests, for the tests of publishing."""

from __future__ import annotations
