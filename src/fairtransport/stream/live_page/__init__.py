"""Live page of a stream, served to browsers on the same machine."""

from fairtransport.stream.live_page._server import LivePage, serve_page

__all__ = ["LivePage", "serve_page"]
