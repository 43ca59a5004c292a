"""What every route works with: the store, the limits, and who may do what."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

from releases.local_hub.limits import Limits
from releases.local_hub.names import HubError

if TYPE_CHECKING:
    from releases.local_hub.http import Request
    from releases.local_hub.store import Repository, Store

OWNER = "local"


@dataclass(frozen=True)
class Hub:
    """One Hub: with a token, only its holder writes, and reads what is private or gated.

    Without a token anyone on this machine writes, nobody is known, and what is private or gated cannot be read.
    """

    store: Store
    token: str | None = None
    limits: Limits = field(default_factory=Limits)
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def knows(self, request: Request) -> bool:
        """Whether the request carries the token.

        Raises:
            HubError: 401, it carries another.
        """
        header = request.headers.get("Authorization")
        if self.token is None or not header:
            return False
        if not hmac.compare_digest(header.encode(), f"Bearer {self.token}".encode()):
            raise HubError(HTTPStatus.UNAUTHORIZED, "Invalid credentials in Authorization header")
        return True

    def check_write(self, request: Request) -> None:
        """Raise 401 unless the request may write."""
        if not self.knows(request) and self.token is not None:
            raise HubError(HTTPStatus.UNAUTHORIZED, "Invalid username or password.")

    def check_read(self, request: Request, repository: Repository) -> None:
        """Raise 401 if the repository is private and the request does not carry the token."""
        if not self.knows(request) and repository.settings().private:
            raise HubError(HTTPStatus.UNAUTHORIZED, "Invalid username or password.", code="RepoNotFound")

    def check_content(self, request: Request, repository: Repository) -> None:
        """Raise 403 if the repository is gated and the request does not carry the token."""
        if not self.knows(request) and repository.settings().gated:
            message = f"Access to dataset {repository.repo_id} is restricted and you are not in the authorized list."
            raise HubError(HTTPStatus.FORBIDDEN, message, code="GatedRepo")

    def sign(self, *parts: object) -> str:
        """A signature that only this server can make, for the addresses that it hands out."""
        return hmac.new(self.secret, "\n".join(map(str, parts)).encode(), hashlib.sha256).hexdigest()

    def check_signature(self, request: Request, *parts: object) -> None:
        """Raise 403 unless the address was handed out by this server."""
        if not hmac.compare_digest(request.query.get("signature", "").encode(), self.sign(*parts).encode()):
            raise HubError(HTTPStatus.FORBIDDEN, "The signature of this address is wrong")
