"""The workbench in the browser (extra: ``app``): audit, choose, repair and train without writing code."""

from fairtransport.app.server import Workbench, serve_app

__all__ = ["Workbench", "serve_app"]
