"""Live page of a stream or of a server that adjusts its model."""

from fairtransport.serving.live_page._routes import LiveView
from fairtransport.serving.live_page._server import LivePage, serve_page

__all__ = ["LivePage", "LiveView", "serve_page"]
