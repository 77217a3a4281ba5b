"""Description of the server for programs (OpenAPI) and for people (a page)."""

from fairtransport.serving.documentation._openapi import openapi_document
from fairtransport.serving.documentation._page import documentation_routes

__all__ = ["documentation_routes", "openapi_document"]
