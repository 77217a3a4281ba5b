"""Scores over HTTP: a server of one model, and the live page (extra: ``serve``)."""

from fairtransport._validation import describe_error
from fairtransport.serving.app import create_app
from fairtransport.serving.server import serve
from fairtransport.serving.settings import OneTimeToken, SecurityHeaders, ServerSettings

__all__ = ["OneTimeToken", "SecurityHeaders", "ServerSettings", "create_app", "describe_error", "serve"]
