"""Scores over HTTP: a server of one model, and the live page (extra: ``serve``)."""

from fairtransport.serving.app import create_app
from fairtransport.serving.server import serve
from fairtransport.serving.settings import ServerSettings

__all__ = ["ServerSettings", "create_app", "serve"]
